//! Names of the tools of servers: valid for every provider, stable, one for each tool, and told from names that look alike.

use sha2::{Digest, Sha256};

use crate::bytes::hex;
use crate::json::invisible::is_invisible;
use crate::provider::Dialect;

/// The longest name that every provider accepts.
const LONGEST: usize = 64;

/// The lengths of suffixes in hexadecimal digits; a longer one is used only if the name with a shorter one is taken.
const SUFFIXES: [usize; 3] = [10, 20, 40];

/// The separator of a namespace and a name.
const SEPARATOR: &str = "__";

/// Makes the name under which a tool of a server is registered: `name`, or `namespace__name`. `server` is the host's own name
/// of the server.
///
/// A name that every provider accepts and that is free stays as it is. In any other one, characters that a provider refuses
/// become underscores, it is cut to 64 characters, and the first digits of a digest of the exact server, namespace and name
/// follow. So names that differ only in what was replaced stay apart, as do namesakes of several servers, and a tool gets the
/// same name in each run, whatever is registered before it. A namespace that makes the parts ambiguous, such as `a__b`, counts as changed.
///
/// ```
/// use toolcrib::mcp::provider_name;
///
/// assert_eq!(provider_name("calc", Some("math"), "add", |_| false), "math__add");
/// assert_eq!(provider_name("calc", None, "größe", |_| false), "gr__e_90b88d0632");
/// assert_eq!(provider_name("calc", None, "add", |name| name == "add"), "add_c56d1d38b9");
/// ```
#[must_use]
pub fn provider_name(server: &str, namespace: Option<&str>, name: &str, taken: impl Fn(&str) -> bool) -> String {
    let whole = namespace.map_or_else(|| name.to_owned(), |namespace| [namespace, SEPARATOR, name].concat());
    let is_ambiguous = namespace.is_some_and(|namespace| namespace.contains(SEPARATOR) || namespace.ends_with('_'));
    if !is_ambiguous && is_portable(&whole) && !taken(&whole) {
        return whole;
    }
    let digest = digest(server, namespace, name);
    let portable = portable(&whole);
    let candidates = SUFFIXES.map(|length| {
        // The name is ASCII by now, so that a byte is a character.
        let kept = portable.len().min(LONGEST - 1 - length);
        format!("{}_{}", &portable[..kept], &digest[..length])
    });
    let free = candidates.iter().find(|candidate| !taken(candidate));
    free.unwrap_or(&candidates[candidates.len() - 1]).clone()
}

/// True if every provider accepts a name.
fn is_portable(name: &str) -> bool {
    Dialect::ALL.iter().all(|dialect| dialect.tool_name(name) == name)
}

/// The name in the characters that every provider accepts, of any length.
fn portable(name: &str) -> String {
    let letter = |letter: char| if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '_' };
    let starts_well = name.starts_with(|first: char| !first.is_ascii_digit() && first != '-');
    let start = if starts_well { "" } else { "_" };
    start.chars().chain(name.chars().map(letter)).collect()
}

/// The digest of a server, namespace and name, as hexadecimal digits.
fn digest(server: &str, namespace: Option<&str>, name: &str) -> String {
    let mut hash = Sha256::new();
    // The lengths tell where the parts end, and no namespace has the length of none.
    hash.update((server.len() as u64).to_be_bytes());
    hash.update(server);
    hash.update(namespace.map_or(u64::MAX, |namespace| namespace.len() as u64).to_be_bytes());
    hash.update(namespace.unwrap_or_default());
    hash.update(name);
    hex(&hash.finalize())
}

/// True if two different names are displayed almost alike: they differ in case, in separators, in letters of other scripts,
/// in digits for letters, or in invisible characters.
///
/// The table of letters is small: it has those that look the same in most fonts.
///
/// ```
/// use toolcrib::mcp::is_look_alike;
///
/// assert!(is_look_alike("send_mail", "s\u{435}nd-Mail"));
/// assert!(is_look_alike("list", "1ist"));
/// assert!(!is_look_alike("send_mail", "send_mails"));
/// ```
#[must_use]
pub fn is_look_alike(one: &str, other: &str) -> bool {
    one != other && skeletons(one).iter().zip(&skeletons(other)).any(|(one, other)| one == other)
}

/// The form of a name in which look-alikes are equal, and the number of that form.
pub(super) type Skeleton = (u8, String);

/// The skeletons of a name. Two names look alike if they share one.
pub(super) fn skeletons(name: &str) -> [Skeleton; 2] {
    // A capital `I` is the `i` of another case, and the look-alike of `l`.
    [(0, skeleton(name, |letter| letter)), (1, skeleton(name, |letter| if letter == 'I' { 'l' } else { letter }))]
}

/// The name with each letter replaced by the one that it looks like.
fn skeleton(name: &str, fold: fn(char) -> char) -> String {
    let visible = name.chars().filter(|letter| !is_invisible(*letter));
    let folded: String = visible.map(|letter| fold(latin(letter))).collect();
    let folded = folded.to_lowercase().replace("rn", "m").replace("vv", "w");
    folded
        .chars()
        .map(|letter| match letter {
            '0' => 'o',
            '1' | '|' => 'l',
            '-' | '.' | '/' | ' ' | ':' => '_',
            other => other,
        })
        .collect()
}

/// True for a letter of another script that looks like a Latin one.
pub(super) fn is_disguise(letter: char) -> bool {
    !letter.is_ascii() && latin(letter) != letter
}

/// The Latin letter that a letter of another script looks like.
fn latin(letter: char) -> char {
    const ALIKE: [(&str, char); 40] = [
        ("аα", 'a'),
        ("АΑ", 'A'),
        ("ВΒ", 'B'),
        ("сϲ", 'c'),
        ("СϹ", 'C'),
        ("ԁ", 'd'),
        ("её", 'e'),
        ("ЕΕ", 'E'),
        ("һհ", 'h'),
        ("НΗ", 'H'),
        ("іιї", 'i'),
        ("ІΙЇ", 'I'),
        ("јϳ", 'j'),
        ("Ј", 'J'),
        ("кκ", 'k'),
        ("КΚ", 'K'),
        ("ӏ", 'l'),
        ("МΜ", 'M'),
        ("п", 'n'),
        ("Ν", 'N'),
        ("оοօ", 'o'),
        ("ОΟՕ", 'O'),
        ("рρ", 'p'),
        ("РΡ", 'P'),
        ("ԛգ", 'q'),
        ("Ԛ", 'Q'),
        ("г", 'r'),
        ("ѕ", 's'),
        ("ЅՏ", 'S'),
        ("тτ", 't'),
        ("ТΤ", 'T'),
        ("υս", 'u'),
        ("Ս", 'U'),
        ("νѵ", 'v'),
        ("ԝѡω", 'w'),
        ("хχ", 'x'),
        ("ХΧ", 'X'),
        ("уγ", 'y'),
        ("УΥҮ", 'Y'),
        ("Ζ", 'Z'),
    ];
    if let '\u{ff01}'..='\u{ff5e}' = letter {
        return char::from_u32(u32::from(letter) - 0xfee0).unwrap_or(letter);
    }
    match ALIKE.iter().find(|(others, _)| others.contains(letter)) {
        Some((_, latin)) if !letter.is_ascii() => *latin,
        _ => letter,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn free(_: &str) -> bool {
        false
    }

    #[test]
    fn a_hostile_name_is_made_valid() {
        for name in ["", " ", "a\u{200b}d d\n", "1st", "-x", "ünïcode", &"x".repeat(300), "a/b", "a.b", "𝒶", "__"]
        {
            for namespace in [None, Some("s"), Some(""), Some("größe"), Some("9")] {
                let made = provider_name("server", namespace, name, free);

                assert!(is_portable(&made), "{name:?} {namespace:?} {made:?}");
            }
        }
    }

    #[test]
    fn ambiguous_parts_do_not_meet() {
        let parts = [("b__c", "a"), ("c", "a__b"), ("_b", "a"), ("b", "a_"), ("__b", "a"), ("_b", "a_")];

        let names: HashSet<String> =
            parts.iter().map(|(name, namespace)| provider_name("server", Some(namespace), name, free)).collect();

        assert_eq!(names.len(), parts.len());
    }

    #[test]
    fn a_name_that_is_always_taken_still_ends() {
        let name = provider_name("calc", Some("math"), "add", |_| true);

        assert!(is_portable(&name));
    }

    #[test]
    fn the_order_of_registration_does_not_change_a_suffix() {
        let names = ["a b", "a.b", "a/b", "a_b"];
        let register = |order: &[&str]| {
            let mut known: Vec<(String, String)> = Vec::new();
            for name in order {
                let made = provider_name("server", None, name, |made| known.iter().any(|(_, known)| known == made));
                known.push(((*name).to_owned(), made));
            }
            known.sort();
            known
        };

        let forward = register(&names);
        let backward = register(&names.iter().rev().copied().collect::<Vec<_>>());

        assert_eq!(forward, backward);
    }

    #[test]
    fn namesakes_of_several_servers_have_suffixes_of_one_length() {
        let first = provider_name("first", None, "add", |name| name == "add");
        let second = provider_name("second", None, "add", |name| name == "add" || name == first);

        assert_ne!(first, second);
        assert_eq!(first.len(), second.len());
    }

    #[test]
    fn names_that_look_alike_are_recognised() {
        for other in [
            "Send_Mail",
            "send-mail",
            "sеnd_mail",
            "ｓend_mail",
            "send_mai1",
            "send_maiI",
            "send_\u{200b}mail",
            "send.mail",
        ] {
            assert!(is_look_alike("send_mail", other), "{other}");
            assert!(is_look_alike(other, "send_mail"), "{other}");
        }
        for other in ["send_mail", "send_mails", "sent_mail", "mail_send", ""] {
            assert!(!is_look_alike("send_mail", other), "{other}");
        }
    }

    fn names() -> impl Strategy<Value = String> {
        prop_oneof!["[a-zA-Z0-9_-]{0,12}", "[ab_ .é\u{200b}]{0,5}", ".{0,80}", "[a-z]{60,70}"]
    }

    proptest! {
        #[test]
        fn a_name_is_valid_for_every_provider(name in names(), namespace in proptest::option::of(names()), taken: bool) {
            let first = provider_name("server", namespace.as_deref(), &name, free);
            let made = provider_name("server", namespace.as_deref(), &name, |it| taken && it == first);

            prop_assert!(is_portable(&made), "{:?}", made);
            prop_assert!(!taken || made != first);
        }

        #[test]
        fn the_same_tool_has_the_same_name(name in names(), namespace in proptest::option::of(names())) {
            prop_assert_eq!(provider_name("server", namespace.as_deref(), &name, free), provider_name("server", namespace.as_deref(), &name, free));
        }

        #[test]
        fn different_tools_of_a_server_have_different_names(one in names(), other in names(), namespace in proptest::option::of(names())) {
            prop_assume!(one != other);
            let first = provider_name("server", namespace.as_deref(), &one, free);

            prop_assert_ne!(&first, &provider_name("server", namespace.as_deref(), &other, |it| it == first));
        }

        #[test]
        fn replaced_names_do_not_meet(one in "[a .é\u{200b}]{1,5}", other in "[a .é\u{200b}]{1,5}", namespace in proptest::option::of("[a-z.]{1,4}")) {
            prop_assume!(one != other);

            prop_assert_ne!(provider_name("server", namespace.as_deref(), &one, free), provider_name("server", namespace.as_deref(), &other, free));
        }

        #[test]
        fn a_valid_and_free_name_stays(name in "[a-zA-Z_][a-zA-Z0-9_-]{0,63}", namespace in "[a-zA-Z][a-zA-Z0-9-]{0,20}") {
            let whole = format!("{namespace}__{name}");

            prop_assert_eq!(&provider_name("server", None, &name, free), &name);
            if whole.len() <= LONGEST {
                prop_assert_eq!(provider_name("server", Some(&namespace), &name, free), whole);
            }
        }
    }
}
