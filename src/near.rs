//! Misspelt names: the known name that was probably meant.

/// True if two names differ by a typing error: case, separators, a pair of letters in the wrong order, or up to two letters of a
/// longer name.
pub(crate) fn is_near(one: &str, other: &str) -> bool {
    distance_if_near(&folded(one), &folded(other)) < usize::MAX
}

/// The letters and digits of a name, in lower case. A longer name is cut, so that comparing names stays cheap.
fn folded(name: &str) -> Vec<char> {
    let letters = name.chars().filter(|character| character.is_alphanumeric());
    letters.flat_map(char::to_lowercase).take(LONGEST + 1).collect()
}

/// The longest name that is compared, in letters.
const LONGEST: usize = 64;

/// The number of edits between two names; `usize::MAX` if they are too many for a typing error.
fn distance_if_near(one: &[char], other: &[char]) -> usize {
    let allowed = match one.len().min(other.len()) {
        0..=2 => 0,
        3..=5 => 1,
        _ => 2,
    };
    let is_comparable = (1..=LONGEST).contains(&one.len()) && (1..=LONGEST).contains(&other.len());
    if !is_comparable || one.len().abs_diff(other.len()) > allowed {
        return usize::MAX;
    }
    let edits = strsim::generic_damerau_levenshtein(one, other);
    if edits <= allowed { edits } else { usize::MAX }
}

/// The known name that is most like a word, if one is like it.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = folded(word);
    let is_candidate = |(distance, _): &(usize, &str)| *distance < usize::MAX;
    let candidates = known.into_iter().map(|name| (distance_if_near(&word, &folded(name)), name)).filter(is_candidate);
    candidates.min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// The words `: did you mean ...?` for the end of a message, or nothing if no known name is like the word.
pub(crate) fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, known).map_or_else(String::new, |name| format!(": did you mean `{name}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_similar_name_is_suggested() {
        let known = ["search_web", "search", "web", "read_file"];

        assert_eq!(nearest("serch", known), Some("search"));
        assert_eq!(nearest("Read-File", known), Some("read_file"));
        assert_eq!(nearest("wbe", ["web"]), Some("web"));
        assert_eq!(nearest("delete", known), None);
        assert_eq!(nearest("", known), None);
    }

    #[test]
    fn a_message_without_a_similar_name_ends_there() {
        assert_eq!(did_you_mean("serch", ["search"]), ": did you mean `search`?");
        assert_eq!(did_you_mean("x", ["search"]), "");
    }
}
