//! Galloping search in sorted rows, from a position that is likely to be close.

/// The partition point of sorted rows, searched in growing steps from `near`.
pub(crate) fn partition_point_near<T>(rows: &[T], near: usize, before: impl Fn(&T) -> bool) -> usize {
    let (mut low, mut high) = (near, near);
    let mut step = 1;
    while high < rows.len() && before(&rows[high]) {
        low = high + 1;
        high = rows.len().min(high + step);
        step *= 2;
    }
    while low > 0 && !before(&rows[low - 1]) {
        high = low - 1;
        low = low.saturating_sub(step);
        step *= 2;
    }
    low + rows[low..high].partition_point(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_or_far_the_partition_point_is_the_same() {
        let calls: Vec<u32> = (0..40).collect();
        for point in 0..=40 {
            for near in 0..=40 {
                assert_eq!(partition_point_near(&calls, near, |&call| call < point), point as usize);
            }
        }
    }
}
