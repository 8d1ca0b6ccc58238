//! Arithmetic on the lanes of several hypotheses.

#![expect(clippy::inline_always, reason = "lanes are processed together only where they stay in registers")]

/// Adds to all lanes.
#[inline(always)]
pub(super) fn add<const K: usize>(to: &mut [i64; K], ticks: &[i64; K]) {
    for k in 0..K {
        to[k] = to[k].wrapping_add(ticks[k]);
    }
}

/// Raises all lanes to the larger of two times.
#[inline(always)]
pub(super) fn raise<const K: usize>(to: &mut [i64; K], other: &[i64; K]) {
    if K == 1 {
        to[0] = to[0].max(other[0]);
        return;
    }
    for k in 0..K {
        // Not every processor compares several such numbers at once; the sign of the difference is as good.
        let later = other[k].wrapping_sub(to[k]);
        to[k] = to[k].wrapping_add(later & !(later >> 63));
    }
}

/// A number of ticks in one lane, nothing in the others: adding this is faster than adding to one number of an array
/// whose other numbers are used next.
#[inline(always)]
pub(super) fn in_lane<const K: usize>(lane: u32, ticks: i64) -> [i64; K] {
    let mut all = const { masks::<K>() }[lane as usize];
    for of in &mut all {
        *of &= ticks;
    }
    all
}

/// For each lane, a mask of the bits of this lane.
const fn masks<const K: usize>() -> [[i64; K]; K] {
    let mut masks = [[0; K]; K];
    let mut lane = 0;
    while lane < K {
        masks[lane][lane] = -1;
        lane += 1;
    }
    masks
}
