//! SHA-256 as the text that files carry.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// Sums up bytes in 64 hexadecimal digits.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
