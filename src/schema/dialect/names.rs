//! Names that a provider accepts, made of names that it does not.

use std::borrow::Cow;
use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use super::Loss;

/// How much of a name is kept beside the digits that tell it from others.
const KEPT: usize = 50;

/// The name if it is accepted, else one that is: letters that are not accepted become underscores, and eight digits of the name's hash
/// keep two names apart that would look the same. It depends on nothing else, so that it stays the same whatever is registered.
pub(crate) fn safe(name: &str, is_name: fn(&str) -> bool) -> Cow<'_, str> {
    if is_name(name) {
        return Cow::Borrowed(name);
    }
    let mut safe = String::with_capacity(KEPT + 10);
    if !name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        safe.push('_');
    }
    safe.extend(name.chars().take(KEPT).map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }));
    safe.push('_');
    for byte in &Sha256::digest(name.as_bytes())[..4] {
        let _ = write!(safe, "{byte:02x}");
    }
    Cow::Owned(safe)
}

/// What the model is told of a name that was changed.
pub(crate) fn in_full(name: &str) -> String {
    format!("Its full name is `{}`.", super::words::short(name, 200))
}

/// What the report says of a tool's name that was changed.
pub(crate) fn renamed(name: &str, safe: &str) -> Loss {
    Loss {
        path: String::new(),
        what: format!("name `{}`", super::words::short(name, 200)),
        instead: format!("it is called `{safe}`, and its full name is in the description"),
    }
}
