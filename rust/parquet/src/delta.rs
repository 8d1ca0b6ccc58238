//! Integers as Parquet packs them by their differences, which are equal where locations follow each other.
//!
//! Source: Parquet, "Delta Encoding (`DELTA_BINARY_PACKED` = 5)".

use crate::hybrid::{pack, varint};

/// Differences in a block.
const BLOCK: usize = 128;
/// Differences in each of the parts of a block that have a width of their own.
const MINIBLOCK: usize = 32;

/// Append `numbers`.
pub(crate) fn encode(numbers: impl ExactSizeIterator<Item = i32>, out: &mut Vec<u8>) {
    let mut numbers = numbers;
    varint(BLOCK as u64, out);
    varint((BLOCK / MINIBLOCK) as u64, out);
    varint(numbers.len() as u64, out);
    let mut last = numbers.next().unwrap_or_default();
    varint(zigzag(last), out);
    let mut steps = [0_i32; BLOCK];
    loop {
        let mut count = 0;
        for (step, number) in steps.iter_mut().zip(&mut numbers) {
            *step = number.wrapping_sub(last);
            last = number;
            count += 1;
        }
        if count == 0 {
            return;
        }
        let least = steps[..count].iter().copied().min().unwrap_or_default();
        let mut beyond = [0_u32; BLOCK];
        for (beyond, step) in beyond.iter_mut().zip(&steps[..count]) {
            *beyond = step.wrapping_sub(least) as u32;
        }
        varint(zigzag(least), out);
        let width = |part: &[u32]| u32::BITS - part.iter().fold(0, |bits, &beyond| bits | beyond).leading_zeros();
        out.extend(beyond.chunks(MINIBLOCK).map(|part| width(part) as u8));
        // Parts after the last number are omitted; the part that contains it is complete.
        for part in beyond.chunks(MINIBLOCK).take(count.div_ceil(MINIBLOCK)).filter(|part| width(part) > 0) {
            pack(part, width(part), out);
        }
    }
}

/// A number of either sign as one without: those near zero are small.
fn zigzag(number: i32) -> u64 {
    let number = i64::from(number);
    (number << 1 ^ number >> 63) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_numbers_take_five_bytes_a_block() {
        let numbers: Vec<i32> = (0..=BLOCK as i32 * 10).collect();
        let mut bytes = Vec::new();
        encode(numbers.into_iter(), &mut bytes);
        assert_eq!(bytes.len(), 2 + 1 + 2 + 1 + 10 * 5);
    }
}
