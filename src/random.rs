//! Random numbers of the operating system: keys, nonces and ids.

use crate::{Error, Result};

/// Random bytes that cannot be predicted.
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
