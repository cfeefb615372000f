//! What to say about a name that nobody asked for.

use super::problem::clean;

/// How many known names are told.
const KNOWN: usize = 10;

/// What is expected in the place of a name that is not known.
pub(super) fn no_such(noun: &str, key: &str, known: &[&str]) -> String {
    let near = known.iter().find(|name| is_near(key, name)).map(|name| format!("did you mean {}? ", clean(name, 64)));
    let mut names: Vec<String> = known.iter().take(KNOWN).map(|name| clean(name, 64).into_owned()).collect();
    if known.len() > KNOWN {
        names.push(format!("… ({} more)", known.len() - KNOWN));
    }
    if names.is_empty() {
        return format!("no such {noun} (there are none)");
    }
    format!("no such {noun} ({}known: {})", near.unwrap_or_default(), names.join(", "))
}

/// Whether two names differ by a slip: case, separators, or up to two letters of a longer one.
fn is_near(one: &str, other: &str) -> bool {
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
            no_such("argument", "querry", &["limit", "query"]),
            "no such argument (did you mean query? known: limit, query)"
        );
        assert_eq!(
            no_such("argument", "maxResults", &["max_results"]),
            "no such argument (did you mean max_results? known: max_results)"
        );
        assert_eq!(no_such("key", "foo", &["a", "b"]), "no such key (known: a, b)");
        assert_eq!(no_such("key", "foo", &[]), "no such key (there are none)");
    }

    #[test]
    fn only_ten_names_are_told() {
        let names: Vec<String> = (0..200).map(|index| format!("parameter{index}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();

        let text = no_such("argument", "x", &names);

        assert!(text.ends_with("parameter9, … (190 more))"), "{text}");
    }
}
