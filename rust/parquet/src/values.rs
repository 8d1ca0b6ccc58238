//! The values of a leaf: the distinct ones, and their numbers in order of the rows.

use std::borrow::Cow;

use parquet::basic::Encoding;
use parquet::data_type::ByteArray;
use parquet::file::statistics::Statistics;
use rustc_hash::FxHashMap;

use crate::parts::{Parts, append};
use crate::schema::Kind;
use crate::{delta, hybrid};

/// Numbers below this are looked up in a vector.
const DENSE: u64 = 1 << 16;

/// Real numbers that are compared or split together.
const LANES: usize = 8;

/// No number yet.
pub(crate) const NONE: u32 = u32::MAX;

/// Distinct values, numbered in order of first occurrence.
#[derive(Debug)]
pub(crate) enum Distinct {
    /// Values of a fixed length, by their bits; negative numbers of 32 bits with their sign in all 64.
    Numbers { bits: Vec<u64>, dense: Vec<u32>, sparse: FxHashMap<u64, u32> },
    /// Texts.
    Texts { texts: Vec<Box<str>>, known: FxHashMap<Box<str>, u32> },
}

impl Distinct {
    pub(crate) fn new(kind: Kind) -> Self {
        match kind {
            Kind::Text => Self::Texts { texts: Vec::new(), known: FxHashMap::default() },
            _ => Self::Numbers { bits: Vec::new(), dense: Vec::new(), sparse: FxHashMap::default() },
        }
    }

    /// The number of a numeric value.
    #[inline]
    pub(crate) fn number(&mut self, value: u64) -> u32 {
        match self {
            Self::Numbers { dense, .. } if dense.get(value as usize).is_some_and(|&found| found != NONE) => {
                dense[value as usize]
            }
            _ => self.number_of_new(value),
        }
    }

    /// The number of a numeric value that may have none, or that is large.
    #[inline(never)]
    fn number_of_new(&mut self, value: u64) -> u32 {
        let Self::Numbers { bits, dense, sparse } = self else { unreachable!("a text is no number") };
        let next = bits.len() as u32;
        let found = if value < DENSE {
            let at = value as usize;
            if at >= dense.len() {
                dense.resize((at + 1).next_power_of_two(), NONE);
            }
            if dense[at] == NONE {
                dense[at] = next;
            }
            dense[at]
        } else {
            *sparse.entry(value).or_insert(next)
        };
        if found == next {
            bits.push(value);
        }
        found
    }

    /// The number of a text.
    pub(crate) fn text(&mut self, value: &str) -> u32 {
        let Self::Texts { texts, known } = self else { unreachable!("a number is no text") };
        if let Some(&found) = known.get(value) {
            return found;
        }
        let next = texts.len() as u32;
        texts.push(value.into());
        known.insert(value.into(), next);
        next
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Numbers { bits, .. } => bits.len(),
            Self::Texts { texts, .. } => texts.len(),
        }
    }

    /// Append a value in Parquet's plain encoding.
    fn plain(&self, kind: Kind, number: usize, out: &mut Vec<u8>) {
        match self {
            Self::Numbers { bits, .. } => out.extend_from_slice(&bits[number].to_le_bytes()[..kind.bytes()]),
            Self::Texts { texts, .. } => {
                out.extend_from_slice(&(texts[number].len() as u32).to_le_bytes());
                out.extend_from_slice(texts[number].as_bytes());
            }
        }
    }

    fn statistics(&self, kind: Kind, nulls: u64) -> Statistics {
        match self {
            Self::Numbers { bits, .. } => match kind {
                Kind::Bool => {
                    let range = range(bits.iter().map(|&bits| bits != 0));
                    Statistics::boolean(range.map(|it| it.0), range.map(|it| it.1), None, Some(nulls), false)
                }
                Kind::Signed32 => int32(range(bits.iter().map(|&bits| bits as i32)), nulls),
                Kind::Unsigned32 => {
                    int32(range(bits.iter().map(|&bits| bits as u32)).map(|it| (it.0 as i32, it.1 as i32)), nulls)
                }
                Kind::Signed64 => int64(range(bits.iter().map(|&bits| bits as i64)), nulls),
                Kind::Unsigned64 => int64(range(bits.iter().copied()).map(|it| (it.0 as i64, it.1 as i64)), nulls),
                Kind::Double | Kind::Text => {
                    double(&bits.iter().map(|&bits| f64::from_bits(bits)).collect::<Vec<_>>(), nulls)
                }
            },
            Self::Texts { texts, .. } => {
                let text = |text: Option<&Box<str>>| text.map(|text| ByteArray::from(text.as_bytes().to_vec()));
                let (least, most) = (text(texts.iter().min()), text(texts.iter().max()));
                Statistics::byte_array(least, most, None, Some(nulls), false)
            }
        }
    }
}

fn range<T: Copy + Ord>(values: impl Iterator<Item = T>) -> Option<(T, T)> {
    values.fold(None, |range, value| match range {
        None => Some((value, value)),
        Some((least, most)) => Some((least.min(value), most.max(value))),
    })
}

fn int32(range: Option<(i32, i32)>, nulls: u64) -> Statistics {
    Statistics::int32(range.map(|it| it.0), range.map(|it| it.1), None, Some(nulls), false)
}

fn int64(range: Option<(i64, i64)>, nulls: u64) -> Statistics {
    Statistics::int64(range.map(|it| it.0), range.map(|it| it.1), None, Some(nulls), false)
}

/// Statistics of real numbers, which ignore NaN, and include both signs of zero.
fn double(values: &[f64], nulls: u64) -> Statistics {
    // Comparisons with NaN are false, so it changes neither.
    let less = |least: f64, value: f64| if value < least { value } else { least };
    let more = |most: f64, value: f64| if value > most { value } else { most };
    let (mut lows, mut highs) = ([f64::INFINITY; LANES], [f64::NEG_INFINITY; LANES]);
    let (whole, rest) = values.as_chunks::<LANES>();
    for values in whole {
        for (i, &value) in values.iter().enumerate() {
            (lows[i], highs[i]) = (less(lows[i], value), more(highs[i], value));
        }
    }
    let least = lows.iter().chain(rest).copied().fold(f64::INFINITY, less);
    let most = highs.iter().chain(rest).copied().fold(f64::NEG_INFINITY, more);
    let known = least <= most;
    let least = if least == 0.0 { -0.0 } else { least };
    let most = if most == 0.0 { 0.0 } else { most };
    Statistics::double(known.then_some(least), known.then_some(most), None, Some(nulls), false)
}

/// The values of a leaf, without nulls.
#[derive(Debug)]
pub(crate) enum Values {
    /// Real numbers that seldom repeat.
    Doubles(Vec<f64>),
    /// The bits of integers of 32 bits.
    Integers(Vec<u32>),
    /// The number of each value among the distinct ones.
    Numbered { codes: Vec<u32>, distinct: Distinct },
}

/// Encoded values.
pub(crate) struct Encoded {
    pub(crate) encoding: Encoding,
    /// The distinct values and their number, if `data` refers to them.
    pub(crate) dictionary: Option<(Vec<u8>, usize)>,
    pub(crate) statistics: Statistics,
}

impl Values {
    /// Append the values to `data`; those of a nested column by its parts and their order.
    pub(crate) fn encode(&self, kind: Kind, parts: Option<Parts<'_>>, nulls: u64, data: &mut Vec<u8>) -> Encoded {
        match self {
            Self::Doubles(values) => {
                let values = &*in_order(values, parts);
                let encoding = if repeat(values) { Encoding::PLAIN } else { Encoding::BYTE_STREAM_SPLIT };
                let begin = data.len();
                data.resize(begin + size_of_val(values), 0);
                if encoding == Encoding::PLAIN {
                    for (bytes, value) in data[begin..].chunks_exact_mut(size_of::<f64>()).zip(values) {
                        bytes.copy_from_slice(&value.to_le_bytes());
                    }
                } else {
                    split(values, &mut data[begin..]);
                }
                let statistics = double(values, nulls);
                Encoded { encoding, dictionary: None, statistics }
            }
            Self::Integers(numbers) => {
                let numbers = &*in_order(numbers, parts);
                let is_signed = kind == Kind::Signed32;
                if follow(numbers) {
                    let numbers = || numbers.iter().map(|&number| number.cast_signed());
                    let bits = |(least, most): (u32, u32)| (least.cast_signed(), most.cast_signed());
                    let range =
                        if is_signed { range(numbers()) } else { range(numbers().map(i32::cast_unsigned)).map(bits) };
                    delta::encode(numbers(), data);
                    let (encoding, statistics) = (Encoding::DELTA_BINARY_PACKED, int32(range, nulls));
                    return Encoded { encoding, dictionary: None, statistics };
                }
                let mut distinct = Distinct::new(kind);
                let wide =
                    |number: u32| if is_signed { i64::from(number.cast_signed()) as u64 } else { u64::from(number) };
                let codes: Vec<u32> = numbers.iter().map(|&number| distinct.number(wide(number))).collect();
                distinct.encode(&codes, None, kind, nulls, data)
            }
            Self::Numbered { codes, distinct } if kind == Kind::Text => {
                distinct.encode(codes, parts, kind, nulls, data)
            }
            Self::Numbered { codes, distinct } => distinct.encode(&in_order(codes, parts), None, kind, nulls, data),
        }
    }
}

impl Distinct {
    /// Append the values with these numbers to `data`, or those of its parts in their order.
    fn encode(&self, codes: &[u32], parts: Option<Parts<'_>>, kind: Kind, nulls: u64, data: &mut Vec<u8>) -> Encoded {
        let statistics = self.statistics(kind, nulls);
        if kind == Kind::Bool {
            booleans(codes.iter().map(|&code| self.is_true(code)), data);
            return Encoded { encoding: Encoding::PLAIN, dictionary: None, statistics };
        }
        let mut dictionary = Vec::new();
        for number in 0..self.len() {
            self.plain(kind, number, &mut dictionary);
        }
        let width = hybrid::width(self.len().saturating_sub(1) as u32);
        let fixed = kind.bytes();
        if fixed > 0 && dictionary.len() + codes.len() * width as usize / 8 > codes.len() * fixed {
            for &code in codes {
                self.plain(kind, code as usize, data);
            }
            return Encoded { encoding: Encoding::PLAIN, dictionary: None, statistics };
        }
        data.push(width as u8);
        append(codes, parts, |part| &part.values, width, data);
        let dictionary = Some((dictionary, self.len()));
        Encoded { encoding: Encoding::RLE_DICTIONARY, dictionary, statistics }
    }

    fn is_true(&self, number: u32) -> bool {
        let Self::Numbers { bits, .. } = self else { unreachable!("a text is no number") };
        bits[number as usize] != 0
    }
}

/// The values of all rows, if these are in parts.
fn in_order<'a, T: Copy>(values: &'a [T], parts: Option<Parts<'_>>) -> Cow<'a, [T]> {
    let Some((parts, order)) = parts else { return Cow::Borrowed(values) };
    let rows = order.runs.iter().flat_map(|&(part, times)| std::iter::repeat_n(&parts[part as usize], times as usize));
    rows.flat_map(|part| &values[part.values.clone()]).copied().collect()
}

/// Whether most integers follow the one in front, as locations do in tables with a row for each.
fn follow(numbers: &[u32]) -> bool {
    numbers.windows(2).filter(|pair| pair[1] == pair[0].wrapping_add(1)).count() * 4 > numbers.len() * 3
}

/// Whether half of the real numbers are the same as the one in front, as where a table has many zeros.
fn repeat(values: &[f64]) -> bool {
    values.windows(2).filter(|pair| pair[0].to_bits() == pair[1].to_bits()).count() * 2 >= values.len()
}

/// Write first the first byte of each real number, then the second of each, and so on: the high bytes of times are much
/// alike, so the compressor takes a third of the time that it takes for whole numbers.
fn split(values: &[f64], out: &mut [u8]) {
    let mut streams = out.chunks_exact_mut(values.len().max(1));
    let mut streams: [&mut [u8]; LANES] = std::array::from_fn(|_| streams.next().unwrap_or_default());
    let (whole, rest) = values.as_chunks::<LANES>();
    for (i, values) in whole.iter().enumerate() {
        for (bytes, stream) in transposed(values.map(f64::to_bits)).into_iter().zip(&mut streams) {
            stream[i * LANES..(i + 1) * LANES].copy_from_slice(&bytes.to_le_bytes());
        }
    }
    for (i, value) in (whole.len() * LANES..).zip(rest) {
        for (byte, stream) in value.to_bits().to_le_bytes().into_iter().zip(&mut streams) {
            stream[i] = byte;
        }
    }
}

/// Exchanges the rows and columns of eight by eight bytes, by exchanging quarters, their quarters, and bytes.
fn transposed(mut rows: [u64; 8]) -> [u64; 8] {
    for (distance, mask) in [(4, 0x0000_0000_ffff_ffff_u64), (2, 0x0000_ffff_0000_ffff), (1, 0x00ff_00ff_00ff_00ff)] {
        for i in (0..8).filter(|i| i & distance == 0) {
            let shift = distance as u32 * u8::BITS;
            let exchanged = (rows[i] >> shift ^ rows[i + distance]) & mask;
            rows[i] ^= exchanged << shift;
            rows[i + distance] ^= exchanged;
        }
    }
    rows
}

/// Append Booleans, eight per byte.
fn booleans(values: impl Iterator<Item = bool>, data: &mut Vec<u8>) {
    let begin = data.len();
    for (i, value) in values.enumerate() {
        if i % 8 == 0 {
            data.push(0);
        }
        data[begin + i / 8] |= u8::from(value) << (i % 8);
    }
}
