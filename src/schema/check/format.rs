//! The formats of strings: `date`, `date-time`, `uuid`, `email`, `uri` and the others that JSON Schema defines.
//!
//! The validator decides by the rules of JSON Schema (RFC 3339 and its relatives), except where a schema was made from annotations: there
//! every text is accepted that pydantic reads as the annotated type. The fast check knows texts that certainly are of the common
//! formats. A format that is not listed here is an annotation.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::OnceLock;

use jsonschema::json::Json;
use jsonschema::{ValidationOptions, Validator};
use serde_json::{Value, json};

/// The rules by which formats are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormatRules {
    /// Those of JSON Schema: for schemas that were supplied.
    Standard,
    /// Those of pydantic, for schemas that were made from annotations: a `datetime` may also be `2026-01-01 10:00`, a `UUID` may lack its
    /// dashes.
    Python,
}

/// A format that the fast check knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextFormat {
    Date,
    DateTime,
    Time,
    Duration,
    Uuid,
    Email,
    Uri,
    Ipv4,
    Ipv6,
    /// Another one that the validator knows.
    Other,
}

/// The formats that are asserted, each with the phrase for its values.
const FORMATS: [(&str, TextFormat, &str); 19] = [
    ("date", TextFormat::Date, "a date (YYYY-MM-DD)"),
    ("date-time", TextFormat::DateTime, "a date and time (YYYY-MM-DDThh:mm:ssZ)"),
    ("time", TextFormat::Time, "a time (hh:mm:ssZ)"),
    ("duration", TextFormat::Duration, "a duration (P1DT2H30M)"),
    ("uuid", TextFormat::Uuid, "a UUID"),
    ("email", TextFormat::Email, "an email address"),
    ("idn-email", TextFormat::Other, "an email address"),
    ("hostname", TextFormat::Other, "a host name"),
    ("idn-hostname", TextFormat::Other, "a host name"),
    ("uri", TextFormat::Uri, "a URI (https://example.com/path)"),
    ("uri-reference", TextFormat::Other, "a URI or a relative reference"),
    ("iri", TextFormat::Other, "an IRI"),
    ("iri-reference", TextFormat::Other, "an IRI or a relative reference"),
    ("uri-template", TextFormat::Other, "a URI template"),
    ("ipv4", TextFormat::Ipv4, "an IPv4 address"),
    ("ipv6", TextFormat::Ipv6, "an IPv6 address"),
    ("regex", TextFormat::Other, "a regular expression"),
    ("json-pointer", TextFormat::Other, "a JSON pointer"),
    ("relative-json-pointer", TextFormat::Other, "a relative JSON pointer"),
];

/// The phrase for the values of a format; `None` if the format is not asserted.
pub(super) fn phrase(name: &str) -> Option<&'static str> {
    FORMATS.iter().find(|(known, _, _)| *known == name).map(|(_, _, phrase)| *phrase)
}

/// Has the validator assert formats by the rules.
pub(super) fn with_formats<R, F: Json>(
    options: ValidationOptions<'_, R, F>,
    rules: FormatRules,
) -> ValidationOptions<'_, R, F> {
    let options = options.should_validate_formats(true);
    match rules {
        // Older drafts do not know these two, and such schemas have them all the same.
        FormatRules::Standard => options.with_format("uuid", is_uuid).with_format("duration", is_duration),
        FormatRules::Python => options
            .with_format("date", python::is_date)
            .with_format("date-time", python::is_date_time)
            .with_format("time", python::is_time)
            .with_format("duration", python::is_duration)
            .with_format("uuid", python::is_uuid)
            .with_format("email", python::is_email)
            .with_format("uri", python::is_uri)
            .with_format("ipv6", python::is_ipv6)
            // Python's syntax is another.
            .with_format("regex", |_: &str| true),
    }
}

impl TextFormat {
    /// The format of a name; `None` if it is not asserted.
    pub(super) fn named(name: &str, rules: FormatRules) -> Option<Self> {
        let known = FORMATS.iter().find(|(known, _, _)| *known == name).map(|(_, format, _)| *format);
        known.filter(|_| rules == FormatRules::Standard || name != "regex")
    }

    /// True if a text certainly is of the format; if not, the validator decides.
    pub(super) fn accepts(self, text: &str, rules: FormatRules) -> bool {
        let bytes = text.as_bytes();
        let is_certain = match self {
            Self::Date => is_date(bytes),
            Self::DateTime => is_date_time(bytes),
            Self::Time => is_time(bytes),
            Self::Uuid => is_uuid(text),
            Self::Email => is_plain_email(bytes),
            Self::Uri => is_plain_uri(text),
            Self::Ipv4 => text.parse::<Ipv4Addr>().is_ok(),
            Self::Ipv6 => text.parse::<Ipv6Addr>().is_ok(),
            Self::Duration | Self::Other => false,
        };
        is_certain
            || rules == FormatRules::Python
                && match self {
                    Self::Date => python::is_date(text),
                    Self::DateTime => python::is_date_time(text),
                    Self::Time => python::is_time(text),
                    Self::Duration => python::is_duration(text),
                    Self::Uuid => python::is_uuid(text),
                    _ => false,
                }
    }
}

/// The number that two digits are.
fn pair(bytes: &[u8]) -> Option<u8> {
    match bytes {
        [tens @ b'0'..=b'9', ones @ b'0'..=b'9'] => Some((tens - b'0') * 10 + (ones - b'0')),
        _ => None,
    }
}

/// True for `YYYY-MM-DD`, a day of the calendar.
fn is_date(bytes: &[u8]) -> bool {
    let [c0, c1, y0, y1, b'-', m0, m1, b'-', d0, d1] = *bytes else { return false };
    let (Some(century), Some(year), Some(month), Some(day)) =
        (pair(&[c0, c1]), pair(&[y0, y1]), pair(&[m0, m1]), pair(&[d0, d1]))
    else {
        return false;
    };
    let year = u16::from(century) * 100 + u16::from(year);
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        1..=12 => 31,
        _ => return false,
    };
    (1..=days).contains(&day)
}

/// True for `hh:mm:ss` with an optional fraction and an offset. A leap second is left to the validator.
fn is_time(bytes: &[u8]) -> bool {
    let Some((clock, rest)) = bytes.split_at_checked(8) else { return false };
    let rest = match rest {
        [b'.', fraction @ ..] => {
            let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if digits == 0 {
                return false;
            }
            &fraction[digits..]
        }
        rest => rest,
    };
    let is_offset = match rest {
        b"Z" | b"z" => true,
        [b'+' | b'-', offset @ ..] => is_clock(offset, 2),
        _ => false,
    };
    is_clock(clock, 3) && is_offset
}

/// True for this many numbers of two digits with colons between them: hours, minutes, seconds.
fn is_clock(bytes: &[u8], parts: usize) -> bool {
    let most = [23, 59, 59];
    let mut numbers = bytes.split(|byte| *byte == b':');
    let fits = (0..parts).all(|part| numbers.next().and_then(pair).is_some_and(|number| number <= most[part]));
    fits && numbers.next().is_none()
}

fn is_date_time(bytes: &[u8]) -> bool {
    match bytes.split_at_checked(10) {
        Some((date, [b'T' | b't', time @ ..])) => is_date(date) && is_time(time),
        _ => false,
    }
}

/// True for 32 hexadecimal digits in groups of 8, 4, 4, 4 and 12.
fn is_uuid(text: &str) -> bool {
    let is_part = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    text.len() == 36 && text.bytes().enumerate().all(is_part)
}

/// The rule of JSON Schema for durations, which draft 7 does not have.
fn is_duration(text: &str) -> bool {
    static VALIDATOR: OnceLock<Option<Validator>> = OnceLock::new();
    let validator = VALIDATOR
        .get_or_init(|| jsonschema::options().should_validate_formats(true).build(&json!({"format": "duration"})).ok());
    validator.as_ref().is_some_and(|validator| validator.is_valid(&Value::from(text)))
}

/// True for an address of ASCII letters, digits and the common marks.
fn is_plain_email(bytes: &[u8]) -> bool {
    let Some(at) = bytes.iter().position(|byte| *byte == b'@') else { return false };
    let (local, domain) = (&bytes[..at], &bytes[at + 1..]);
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"_+-".contains(byte);
    let has_words =
        |text: &[u8]| text.split(|byte| *byte == b'.').all(|word| !word.is_empty() && word.iter().all(is_word));
    local.len() <= 64 && has_words(local) && domain.contains(&b'.') && is_plain_domain(domain)
}

/// True for labels of ASCII letters and digits, with single hyphens between them.
fn is_plain_domain(bytes: &[u8]) -> bool {
    let is_label = |label: &[u8]| {
        label.len() <= 63
            && label
                .split(|byte| *byte == b'-')
                .all(|part| !part.is_empty() && part.iter().all(u8::is_ascii_alphanumeric))
    };
    bytes.len() <= 253 && bytes.split(|byte| *byte == b'.').all(is_label)
}

/// True for a URI with a plain host and without escapes.
fn is_plain_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte));
    let end = rest.bytes().position(|byte| b"/?#".contains(&byte)).unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    let (host, port) = host.split_once(':').unwrap_or((host, ""));
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?".contains(&byte);
    let (path, fragment) = path.split_once('#').unwrap_or((path, ""));
    is_scheme
        && is_plain_domain(host.as_bytes())
        && port.bytes().all(|byte| byte.is_ascii_digit())
        && path.bytes().chain(fragment.bytes()).all(is_plain)
}

/// The texts that pydantic reads as a value of a type. Some that it refuses are accepted too: they are refused when the value is built.
mod python {
    use super::{Ipv6Addr, is_clock, is_date as is_calendar_date, is_uuid as is_dashed_uuid};

    fn are_digits(text: &str) -> bool {
        text.bytes().all(|byte| byte.is_ascii_digit())
    }

    /// True for a number of seconds since 1970.
    fn is_timestamp(text: &str) -> bool {
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        !(whole.is_empty() && fraction.is_empty()) && are_digits(whole) && are_digits(fraction)
    }

    /// True for a date, or a date with the time of midnight.
    pub(super) fn is_date(text: &str) -> bool {
        is_date_time(text)
    }

    pub(super) fn is_date_time(text: &str) -> bool {
        match text.as_bytes().split_at_checked(10) {
            Some((date, [])) if is_calendar_date(date) => true,
            Some((date, [b'T' | b't' | b' ' | b'_', ..])) => {
                is_calendar_date(date) && text.get(11..).is_some_and(is_time)
            }
            _ => is_timestamp(text),
        }
    }

    /// True for `hh:mm`, with or without seconds, a fraction and an offset.
    pub(super) fn is_time(text: &str) -> bool {
        let end = text.find(|letter: char| !matches!(letter, '0'..='9' | ':' | '.' | ',')).unwrap_or(text.len());
        let (clock, offset) = text.split_at(end);
        let (clock, fraction) = clock.split_once(['.', ',']).unwrap_or((clock, ""));
        let is_offset = match offset.strip_prefix(['+', '-', '\u{2212}']) {
            Some(offset) => is_clock(offset.as_bytes(), 2) || offset.len() == 4 && are_digits(offset),
            None => matches!(offset, "" | "Z" | "z"),
        };
        (is_clock(clock.as_bytes(), 2) || is_clock(clock.as_bytes(), 3)) && are_digits(fraction) && is_offset
    }

    /// True for a duration of ISO 8601, or days with or without a time: `1 day, 02:03:04`. The hours may be missing: `:30:00`.
    pub(super) fn is_duration(text: &str) -> bool {
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        let has_only = |others: &[u8]| unsigned.bytes().all(|byte| byte.is_ascii_digit() || others.contains(&byte));
        let is_iso = unsigned.starts_with('P') && has_only(b"PYMWDTHS.,");
        let is_clock = unsigned.contains([':', 'd', 'D']) && has_only(b":., daysDAYS");
        let begins = unsigned.starts_with(|first: char| first.is_ascii_digit() || matches!(first, 'P' | ':'));
        begins && (is_iso || is_clock) && unsigned.bytes().any(|byte| byte.is_ascii_digit())
    }

    pub(super) fn is_uuid(text: &str) -> bool {
        let bare = text.strip_prefix("urn:uuid:").unwrap_or(text);
        let bare = bare.strip_prefix('{').and_then(|bare| bare.strip_suffix('}')).unwrap_or(bare);
        is_dashed_uuid(bare) || bare.len() == 32 && bare.bytes().all(|byte| byte.is_ascii_hexdigit())
    }

    /// True for an address, alone or in angle brackets behind a name.
    pub(super) fn is_email(text: &str) -> bool {
        let parts = text.trim().rsplit_once('@');
        parts.is_some_and(|(local, domain)| !local.is_empty() && !domain.trim_end_matches('>').is_empty())
    }

    /// True for a scheme and a colon. As in a browser, line breaks and tabs do not count.
    pub(super) fn is_uri(text: &str) -> bool {
        let Some((scheme, _)) = text.split_once(':') else { return false };
        let mut letters = scheme.trim_start().chars().filter(|letter| !matches!(letter, '\t' | '\n' | '\r'));
        letters.next().is_some_and(|first| first.is_ascii_alphabetic())
            && letters.all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '+' | '.' | '-'))
    }

    /// True for an address with or without a zone.
    pub(super) fn is_ipv6(text: &str) -> bool {
        text.split_once('%').map_or(text, |(address, _)| address).parse::<Ipv6Addr>().is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts that are of a format, and texts that are not, by the rules of JSON Schema.
    const CASES: [(&str, &[&str], &[&str]); 9] = [
        (
            "date",
            &["2026-01-31", "2024-02-29", "0000-01-01"],
            &["2026-02-29", "2026-13-01", "2026-1-1", "tomorrow", ""],
        ),
        (
            "date-time",
            &["2026-01-01T10:00:00Z", "2026-01-01t10:00:00.25+02:00", "1998-12-31T23:59:60Z"],
            &[
                "2026-01-01 10:00",
                "2026-01-01T10:00:00",
                "2026-01-01T24:00:00Z",
                "2026-01-01T10:00:00+24:00",
                "2026-01-01",
            ],
        ),
        ("time", &["10:00:00Z", "23:59:59.999-23:59"], &["10:00", "10:00:00", "10:00:60Z", "10:0:00Z", "10:00:00.Z"]),
        ("duration", &["P1DT2H", "P4W"], &["1 day", "PT", "P1D2H"]),
        (
            "uuid",
            &["2eb8aa08-aa98-11ea-b4aa-73b441d16380", "2EB8AA08-AA98-11EA-B4AA-73B441D16380"],
            &[
                "2eb8aa08aa9811eab4aa73b441d16380",
                "2eb8aa08-aa98-11ea-b4ga-73b441d16380",
                "2eb8aa08-aa98-11ea-b4aa73b441d16380-",
            ],
        ),
        (
            "email",
            &["joe.bloggs@example.com", "te~st@example.com"],
            &["2962", ".test@example.com", "te..st@example.com", "a@b@c.org"],
        ),
        (
            "uri",
            &[
                "http://foo.bar/?baz=qux#quux",
                "http://foo.com/blah_(wikipedia)_blah#cite-1",
                "urn:oasis:names",
                "http://a.b:80/c",
            ],
            &["not a url", "//foo.bar/?baz", "/abc", "http://a.b/c d", "http://foo.com:x/"],
        ),
        ("ipv4", &["192.168.0.1"], &["127.0.0.0.1", "256.256.256.256", "087.10.0.1"]),
        ("ipv6", &["::1", "::abef", "1:d6::42"], &["12345::", "fe80::a%eth1", "1::d6::42"]),
    ];

    fn validator(name: &str, rules: FormatRules) -> Validator {
        with_formats(jsonschema::options(), rules).build(&json!({"format": name})).unwrap()
    }

    #[test]
    fn the_fast_check_accepts_no_other_texts_than_the_validator() {
        for (name, valid, invalid) in CASES {
            let format = TextFormat::named(name, FormatRules::Standard).unwrap();
            let validator = validator(name, FormatRules::Standard);
            for text in valid {
                assert!(validator.is_valid(&Value::from(*text)), "{name}: {text}");
            }
            for text in invalid {
                assert!(!validator.is_valid(&Value::from(*text)), "{name}: {text}");
                assert!(!format.accepts(text, FormatRules::Standard), "{name}: {text}");
            }
            assert!(format.accepts(valid[0], FormatRules::Standard) || name == "duration", "{name}");
        }
    }

    #[test]
    fn texts_that_pydantic_reads_are_accepted_for_annotations() {
        for (name, texts) in [
            ("date", &["2026-01-01", "2026-01-01T00:00:00", "1700000000"][..]),
            (
                "date-time",
                &[
                    "2026-01-01 10:00",
                    "2026-01-01T10:00:00",
                    "2026-01-01",
                    "2026-01-01T10:00:00.5+0200",
                    "-1.5",
                    "2026-01-01_10:00Z",
                ],
            ),
            ("time", &["10:00", "10:00:00", "10:00:00.123456Z", "10:00+02:00"]),
            (
                "duration",
                &[
                    "P1DT2H",
                    "01:02:03",
                    "1 day, 02:03:04",
                    "-P1W",
                    "2 days, 1:02:03",
                    "3 days",
                    "-1 day, 10:00",
                    ":30:30",
                ],
            ),
            (
                "uuid",
                &[
                    "2eb8aa08aa9811eab4aa73b441d16380",
                    "urn:uuid:2eb8aa08-aa98-11ea-b4aa-73b441d16380",
                    "{2eb8aa08-aa98-11ea-b4aa-73b441d16380}",
                ],
            ),
            ("email", &["jürgen@example.com", "Ann <ann@example.com>"]),
            ("uri", &["https://example.com/a b", "mailto:ann@example.com"]),
            ("ipv6", &["fe80::1%eth0"]),
            ("regex", &["(?P<year>[0-9]{4})"]),
        ] {
            let validator = validator(name, FormatRules::Python);
            for text in texts {
                assert!(validator.is_valid(&Value::from(*text)), "{name}: {text}");
            }
        }
    }

    #[test]
    fn texts_that_are_something_else_are_refused_for_annotations() {
        for (name, texts) in [
            ("date", &["tomorrow", "2026-02-30", ""][..]),
            ("date-time", &["now", "2026-01-01T25:00", "2026-01-01T10:00 CET"]),
            ("time", &["noon", "25:00", "10:00 PM", "3600"]),
            ("duration", &["soon", "P", "90", ":", ""]),
            ("uuid", &["2eb8aa08", "no"]),
            ("email", &["ann", "@", "ann@"]),
            ("uri", &["not a url", "example.com"]),
        ] {
            let format = TextFormat::named(name, FormatRules::Python).unwrap();
            let validator = validator(name, FormatRules::Python);
            for text in texts {
                assert!(!validator.is_valid(&Value::from(*text)), "{name}: {text}");
                assert!(!format.accepts(text, FormatRules::Python), "{name}: {text}");
            }
        }
    }
}
