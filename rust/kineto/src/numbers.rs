//! Numbers as the profiler writes them: decimal text, never through a double.

/// Times beyond this many nanoseconds are damage.
pub(crate) const LARGEST_TIME: i64 = 1 << 62;
/// And so are times this long before 1970: differences of two times fit.
pub(crate) const EARLIEST_TIME: i64 = -(1 << 61);

/// More digits than any value can have.
const MOST_DIGITS: i64 = 40;

/// The text of a number: tokens may be quoted.
pub(crate) fn unquoted(token: &[u8]) -> &[u8] {
    match token {
        [b'"', text @ .., b'"'] => text,
        _ => token,
    }
}

/// A decimal number times ten to the power of `shift`, rounded half up; `None` if it is no number or does not fit.
fn decimal(token: &[u8], shift: i64) -> Option<i128> {
    let text = unquoted(token).trim_ascii();
    let (negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let (mantissa, exponent) = match text.iter().position(|byte| matches!(byte, b'e' | b'E')) {
        Some(at) => (&text[..at], std::str::from_utf8(&text[at + 1..]).ok()?.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = match mantissa.iter().position(|byte| *byte == b'.') {
        Some(at) => (&mantissa[..at], &mantissa[at + 1..]),
        None => (mantissa, &mantissa[mantissa.len()..]),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    // The digit at position p stands for ten to the power of (number of whole digits - 1 - p).
    let kept = whole.len() as i64 + i64::from(exponent) + shift;
    let mut value: i128 = 0;
    let mut digits = 0;
    let mut round_up = false;
    for (at, byte) in (0..).zip(whole.iter().chain(fraction)) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        if at < kept {
            value = value * 10 + i128::from(digit);
            digits += i64::from(digits > 0 || digit > 0);
            if digits >= MOST_DIGITS - 4 {
                return None;
            }
        } else if at == kept {
            round_up = digit >= 5;
        }
    }
    let missing = kept - (whole.len() + fraction.len()) as i64;
    if missing > 0 && value != 0 {
        if digits + missing >= MOST_DIGITS - 4 {
            return None;
        }
        value *= 10_i128.pow(u32::try_from(missing).ok()?);
    }
    value += i128::from(round_up);
    Some(if negative { -value } else { value })
}

/// Decimal microseconds as nanoseconds.
pub(crate) fn nanoseconds(token: &[u8]) -> Option<i64> {
    fast(token).or_else(|| i64::try_from(decimal(token, 3)?).ok()).filter(|time| time.abs() <= LARGEST_TIME)
}

/// What the profiler writes now: digits, a point, three digits.
fn fast(token: &[u8]) -> Option<i64> {
    let (whole, fraction) = match token {
        [whole @ .., b'.', a, b, c] => (whole, [*a, *b, *c]),
        _ => (token, [b'0'; 3]),
    };
    if whole.is_empty() || whole.len() > 15 {
        return None;
    }
    whole.iter().chain(&fraction).try_fold(0_i64, |value, byte| {
        let digit = byte.wrapping_sub(b'0');
        (digit <= 9).then(|| value * 10 + i64::from(digit))
    })
}

/// A number without sign; `None` if it is negative or too large.
pub(crate) fn unsigned(token: &[u8]) -> Option<u64> {
    let plain = || {
        if token.is_empty() || token.len() > 19 {
            return None;
        }
        token.iter().try_fold(0_u64, |value, byte| {
            let digit = byte.wrapping_sub(b'0');
            (digit <= 9).then(|| value * 10 + u64::from(digit))
        })
    };
    plain().or_else(|| u64::try_from(decimal(token, 0)?).ok())
}

/// A number with sign.
pub(crate) fn signed(token: &[u8]) -> Option<i64> {
    i64::try_from(decimal(token, 0)?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_are_exact() {
        for (text, time) in [
            ("5000000.000", 5_000_000_000),
            ("1694128201435377", 1_694_128_201_435_377_000),
            ("1712195495520871.25", 1_712_195_495_520_871_250),
            ("12.5", 12_500),
            ("0.0005", 1),
            ("0.00049", 0),
            ("1.5e3", 1_500_000),
            ("5.0E+6", 5_000_000_000),
            ("15e-4", 2),
            ("-1.5", -1500),
            ("\"7.25\"", 7250),
            (".5", 500),
            ("7.", 7000),
            ("1234e-9", 0),
        ] {
            assert_eq!(nanoseconds(text.as_bytes()), Some(time), "{text}");
        }
        for text in [
            "",
            "-",
            "NaN",
            "Infinity",
            "1e99",
            "99999999999999999999",
            "1.2.3",
            "e5",
            "0x10",
            "1e",
            "null",
            "1e999999999999",
        ] {
            assert_eq!(nanoseconds(text.as_bytes()), None, "{text}");
        }
        assert_eq!(nanoseconds(b"0e999999999"), Some(0));
    }

    #[test]
    fn large_numbers_keep_all_digits() {
        assert_eq!(unsigned(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(unsigned(b"18446744073709551616"), None);
        assert_eq!(unsigned(b"-1"), None);
        assert_eq!(unsigned(b"12.0"), Some(12));
        assert_eq!(unsigned(b"\"12\""), Some(12));
        assert_eq!(signed(b"-7"), Some(-7));
        assert_eq!(signed(b"stream 7"), None);
    }

    proptest! {
        #[test]
        fn a_written_time_is_read_back(time in -LARGEST_TIME..LARGEST_TIME, shift in 0..6) {
            let (sign, whole, rest) = (if time < 0 { "-" } else { "" }, time.unsigned_abs() / 1000, time.unsigned_abs() % 1000);
            prop_assert_eq!(nanoseconds(format!("{sign}{whole}.{rest:03}").as_bytes()), Some(time));
            let shifted = format!("{sign}{}{rest:03}e-{}", whole, 3 + shift);
            let expected = decimal(format!("{time}").as_bytes(), -i64::from(shift)).unwrap();
            prop_assert_eq!(nanoseconds(shifted.as_bytes()), i64::try_from(expected).ok());
        }

        #[test]
        fn any_bytes_are_a_number_or_none(bytes: Vec<u8>) {
            let _ = (nanoseconds(&bytes), unsigned(&bytes), signed(&bytes));
        }
    }
}
