//! What is wrong with a rule, and where in it.

use std::fmt;

/// One thing that is wrong with a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    /// The keys that lead to it; none if it is about the whole rule.
    pub(super) field: Vec<String>,
    pub(super) reason: String,
    pub(super) suggestion: Option<String>,
}

impl Fault {
    pub(super) fn whole(reason: impl Into<String>) -> Self {
        Self { field: Vec::new(), reason: reason.into(), suggestion: None }
    }

    pub(super) fn at(field: &str, reason: impl Into<String>) -> Self {
        Self { field: vec![field.to_owned()], ..Self::whole(reason) }
    }

    pub(super) fn suggest(self, suggestion: impl Into<String>) -> Self {
        Self { suggestion: Some(suggestion.into()), ..self }
    }

    /// The same fault, seen from one level further out.
    pub(super) fn under(mut self, key: &str) -> Self {
        self.field.insert(0, key.to_owned());
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.field.is_empty() {
            write!(formatter, "`{}`: ", self.field.join("."))?;
        }
        formatter.write_str(&self.reason)?;
        match &self.suggestion {
            Some(suggestion) => write!(formatter, " ({suggestion})"),
            None => Ok(()),
        }
    }
}

/// A word that is none of those that are known, with the one that may be meant.
pub(super) fn unknown(what: &str, word: &str, known: &[&str]) -> Fault {
    let closest = known
        .iter()
        .map(|known| (strsim::damerau_levenshtein(&word.to_lowercase(), known), *known))
        .filter(|(distance, known)| *distance <= known.len().max(word.len()).div_ceil(3))
        .min();
    let suggestion = match closest {
        Some((_, known)) => format!("did you mean `{known}`?"),
        None => format!("there are {}", listed(known)),
    };
    Fault::whole(format!("there is no {what} `{word}`")).suggest(suggestion)
}

/// Words as people list them.
pub(super) fn listed(words: &[&str]) -> String {
    let quoted: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}
