//! Bytes: as text, as hexadecimal text, and random ones.

use std::fmt::Write;

use crate::{Error, Result};

/// Unpredictable bytes from the operating system: for keys, nonces and ids.
///
/// # Errors
///
/// [`Error::FileAccess`] if the operating system has none.
pub(crate) fn random_bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| Error::FileAccess {
        path: "the system's random numbers".to_owned(),
        doing: "read",
        code: None,
        reason: error.to_string(),
    })?;
    Ok(bytes)
}

/// The text of some bytes, without a copy if all of them are UTF-8. The others are replaced.
pub(crate) fn into_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Two lower-case hexadecimal digits for each byte.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Parses exactly `N` bytes; upper-case digits are refused, so that each value has one spelling.
pub(crate) fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |letter: u8| match letter {
        b'0'..=b'9' => Some(letter - b'0'),
        b'a'..=b'f' => Some(letter - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    if text.len() != 2 * N {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_survive_the_round_trip() {
        let bytes: [u8; 256] = std::array::from_fn(|byte| u8::try_from(byte).unwrap());

        assert_eq!(from_hex(&hex(&bytes)), Some(bytes));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "0", "000", "0000", "0A", "+1", "é", "0 "] {
            assert_eq!(from_hex::<1>(text), None, "{text}");
        }
    }
}
