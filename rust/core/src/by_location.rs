//! Rows in the order of their locations.

/// Puts rows in the order of their locations, given as `location(row) < locations`; those of a location keep their order.
pub(crate) fn by_location<T: Clone>(mut rows: Vec<T>, locations: usize, location: impl Fn(&T) -> usize) -> Vec<T> {
    if rows.len() < locations {
        rows.sort_by_key(location);
        return rows;
    }
    let mut next = vec![0; locations + 1];
    for row in &rows {
        next[location(row) + 1] += 1;
    }
    for i in 0..locations {
        next[i + 1] += next[i];
    }
    let mut ordered = rows.clone();
    for row in rows {
        let at = &mut next[location(&row)];
        ordered[*at] = row;
        *at += 1;
    }
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_rows_come_in_the_same_order() {
        let rows = vec![(2, 'a'), (0, 'b'), (2, 'c'), (1, 'd'), (0, 'e')];
        let expected = [(0, 'b'), (0, 'e'), (1, 'd'), (2, 'a'), (2, 'c')];
        for locations in [3, 5, 6, 100] {
            assert_eq!(by_location(rows.clone(), locations, |&(location, _)| location), expected);
        }
        assert_eq!(by_location(Vec::<usize>::new(), 0, |&location| location), []);
    }
}
