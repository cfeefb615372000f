//! Suggestions for a name that is not known.

use super::problem::{Expected, clean};

/// How many known names are told.
const KNOWN: usize = 10;

/// The known names that are expected in the place of one that is not known.
pub(super) fn no_such(noun: &'static str, key: &str, known: &[&str]) -> Expected {
    let shown = |name: &&str| clean(name, 64).into_owned();
    let near = known.iter().find(|name| is_near(key, name)).map(shown);
    let names = known.iter().take(KNOWN).map(shown).collect();
    Expected::Name { noun, near, known: names, more: known.len().saturating_sub(KNOWN) }
}

/// True if two names differ by a slip: case, separators, or up to two letters of a longer one.
pub(crate) fn is_near(one: &str, other: &str) -> bool {
    let fold = |name: &str| -> Vec<char> {
        name.chars().filter(|character| character.is_alphanumeric()).flat_map(char::to_lowercase).take(65).collect()
    };
    let (one, other) = (fold(one), fold(other));
    if one.len() > 64 || other.len() > 64 || one.is_empty() || other.is_empty() {
        return false;
    }
    let allowed = match one.len().min(other.len()) {
        0..=2 => 0,
        3..=5 => 1,
        _ => 2,
    };
    distance(&one, &other) <= allowed
}

fn distance(one: &[char], other: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (above, left) in one.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], above + 1);
        for (index, right) in other.iter().enumerate() {
            let next = (diagonal + usize::from(left != right)).min(row[index] + 1).min(row[index + 1] + 1);
            diagonal = std::mem::replace(&mut row[index + 1], next);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised() {
        assert_eq!(
            no_such("argument", "querry", &["limit", "query"]).to_string(),
            "no such argument (did you mean query? known: limit, query)"
        );
        assert_eq!(
            no_such("argument", "maxResults", &["max_results"]).to_string(),
            "no such argument (did you mean max_results? known: max_results)"
        );
        assert_eq!(no_such("key", "foo", &["a", "b"]).to_string(), "no such key (known: a, b)");
        assert_eq!(no_such("key", "foo", &[]).to_string(), "no such key (there are none)");
    }

    #[test]
    fn only_ten_names_are_told() {
        let names: Vec<String> = (0..200).map(|index| format!("parameter{index}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();

        let text = no_such("argument", "x", &names).to_string();

        assert!(text.ends_with("parameter9, … (190 more))"), "{text}");
    }
}
