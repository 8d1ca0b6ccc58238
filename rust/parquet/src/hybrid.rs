//! Parquet's hybrid encoding of small numbers: runs of one number, and bit-packed groups of eight.
//!
//! Source: Parquet, "Run Length Encoding / Bit-Packing Hybrid (RLE = 3)".

/// Numbers in a group.
const GROUP: usize = 8;

/// The number of bits for numbers up to `largest`.
pub(crate) fn width(largest: u32) -> u32 {
    // Not all readers support a width of zero bits.
    (u32::BITS - largest.leading_zeros()).max(1)
}

/// Append `numbers`, each of which has at most `width` bits.
pub(crate) fn encode<T: Copy + PartialEq + Into<u32>>(numbers: &[T], width: u32, out: &mut Vec<u8>) {
    let mut rest = numbers;
    while let Some(&first) = rest.first() {
        let groups = rest.chunks(GROUP).take_while(|group| !is_run(group)).count();
        if groups == 0 {
            let run = rest.iter().take_while(|&&number| number == first).count();
            encode_run(first, run, width, out);
            rest = &rest[run..];
        } else {
            let (packed, others) = rest.split_at(rest.len().min(groups * GROUP));
            varint((groups as u64) << 1 | 1, out);
            pack(packed, width, out);
            rest = others;
        }
    }
}

/// Append `count` times the same number.
pub(crate) fn encode_run<T: Into<u32>>(number: T, count: usize, width: u32, out: &mut Vec<u8>) {
    varint((count as u64) << 1, out);
    out.extend_from_slice(&number.into().to_le_bytes()[..width.div_ceil(8) as usize]);
}

fn is_run<T: Copy + PartialEq>(group: &[T]) -> bool {
    group == [group[0]; GROUP]
}

/// Append bit-packed numbers; the last group is padded with zeros.
pub(crate) fn pack<T: Copy + Into<u32>>(numbers: &[T], width: u32, out: &mut Vec<u8>) {
    out.reserve(numbers.len().div_ceil(GROUP) * width as usize + 2 * size_of::<u128>());
    for group in numbers.chunks(GROUP) {
        let end = out.len() + width as usize;
        if width <= 8 {
            let bits = group.iter().rev().fold(0_u64, |bits, &number| bits << width | u64::from(number.into()));
            out.extend_from_slice(&bits.to_le_bytes());
        } else {
            let (low, high) = group.split_at(group.len().min(GROUP / 2));
            let [low, high] = [low, high]
                .map(|half| half.iter().rev().fold(0_u128, |bits, &number| bits << width | u128::from(number.into())));
            let begin = GROUP as u32 / 2 * width;
            out.extend_from_slice(&(low | high.checked_shl(begin).unwrap_or(0)).to_le_bytes());
            out.extend_from_slice(&high.checked_shr(u128::BITS - begin).unwrap_or(0).to_le_bytes());
        }
        out.truncate(end);
    }
}

/// Append numbers that come in parts, as one bit-packed run of `count` numbers. `order` has the number of each part in
/// turn, and how often it comes one after the other.
pub(crate) fn join<'a, T: Copy + Into<u32> + 'a>(
    parts: impl Iterator<Item = &'a [T]>,
    order: &[(u32, u32)],
    count: usize,
    width: u32,
    out: &mut Vec<u8>,
) {
    if count == 0 {
        return;
    }
    let groups = count.div_ceil(GROUP);
    varint((groups as u64) << 1 | 1, out);
    let end = out.len() + groups * width as usize;
    out.reserve(groups * width as usize + size_of::<u64>());

    // Each part is packed once, into words: the first of each, and where its others are.
    let (mut firsts, mut others) = (Vec::new(), Vec::new());
    for part in parts {
        let mut words = part.chunks((u64::BITS / width) as usize).map(|numbers| {
            let bits = numbers.iter().rev().fold(0_u64, |bits, &number| bits << width | u64::from(number.into()));
            (bits, numbers.len() as u32 * width)
        });
        let (first, begin) = (words.next().unwrap_or_default(), others.len());
        others.extend(words);
        firsts.push((first, begin..others.len()));
    }
    let (mut buffer, mut used) = (0_u64, 0);
    let mut append = |(bits, length): (u64, u32)| {
        buffer |= bits << used;
        used += length;
        if used >= u64::BITS {
            out.extend_from_slice(&buffer.to_le_bytes());
            used -= u64::BITS;
            buffer = bits.checked_shr(length - used).unwrap_or(0);
        }
    };
    for &(part, times) in order {
        let (first, more) = &firsts[part as usize];
        for _ in 0..times {
            append(*first);
            others[more.clone()].iter().copied().for_each(&mut append);
        }
    }
    out.extend_from_slice(&buffer.to_le_bytes());
    out.resize(end, 0);
}

/// Append a number, seven bits a byte.
pub(crate) fn varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Numbers back from their encoding, as the specification reads it.
    fn decode(mut bytes: &[u8], width: u32, count: usize) -> Vec<u32> {
        let mut numbers = Vec::new();
        while numbers.len() < count {
            let (mut header, mut shift) = (0_u64, 0);
            loop {
                let byte = bytes[0];
                bytes = &bytes[1..];
                header |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte < 0x80 {
                    break;
                }
            }
            if header & 1 == 0 {
                let (value, others) = bytes.split_at(width.div_ceil(8) as usize);
                let value = value.iter().rev().fold(0, |number, &byte| number << 8 | u32::from(byte));
                numbers.extend(std::iter::repeat_n(value, (header >> 1) as usize));
                bytes = others;
            } else {
                let count = (header >> 1) as usize * GROUP;
                let bit = |at: usize| u32::from(bytes[at / 8] >> (at % 8) & 1);
                let number = |i: usize| (0..width as usize).fold(0, |n, b| n | bit(i * width as usize + b) << b);
                numbers.extend((0..count).map(number));
                bytes = &bytes[count * width as usize / 8..];
            }
        }
        assert!(bytes.is_empty());
        numbers.truncate(count);
        numbers
    }

    proptest! {
        #[test]
        fn comes_back(
            runs in prop::collection::vec((0_u32..=u32::MAX, 1_usize..40), 0..40),
            width in 1_u32..=32,
        ) {
            let numbers: Vec<u32> =
                runs.iter().flat_map(|&(n, count)| std::iter::repeat_n(n >> (32 - width), count)).collect();
            let mut bytes = Vec::new();
            encode(&numbers, width, &mut bytes);
            prop_assert_eq!(decode(&bytes, width, numbers.len()), numbers);
        }
    }

    proptest! {
        #[test]
        fn parts_come_back(
            parts in prop::collection::vec(prop::collection::vec(0_u32..=u32::MAX, 0..9), 1..6),
            order in prop::collection::vec((0_usize..6, 0_u32..4), 0..20),
            width in 1_u32..=32,
        ) {
            let parts: Vec<Vec<u32>> =
                parts.into_iter().map(|part| part.into_iter().map(|n| n >> (32 - width)).collect()).collect();
            let order: Vec<(u32, u32)> =
                order.into_iter().map(|(part, times)| ((part % parts.len()) as u32, times)).collect();
            let numbers: Vec<u32> = order
                .iter()
                .flat_map(|&(part, times)| std::iter::repeat_n(&parts[part as usize], times as usize))
                .flatten()
                .copied()
                .collect();
            let mut bytes = Vec::new();
            join(parts.iter().map(Vec::as_slice), &order, numbers.len(), width, &mut bytes);
            prop_assert_eq!(decode(&bytes, width, numbers.len()), numbers);
        }
    }

    #[test]
    fn a_run_is_a_few_bytes() {
        let mut bytes = Vec::new();
        encode(&[1_u8; 1000], width(1), &mut bytes);
        assert_eq!(bytes, [0xd0, 0x0f, 1]);
    }
}
