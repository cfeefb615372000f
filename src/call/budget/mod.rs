//! Size limits of results: a result that is too long for the model is cut by its structure.
//!
//! Read in this order: this file ([`ResultBudget`], and [`cut`], which finds a text that fits), `kind` (the structure of a text),
//! then one file for each structure: `prose`, `json`, `table`, `log`, `diff`. `stream` has the budget of a call, whose result may
//! come in several blocks and chunks.
//!
//! All cutters count characters, take linear time, and need memory for the input and the limit only. A budget in tokens is met
//! by cutting again with fewer characters.

mod diff;
mod json;
mod kind;
mod log;
mod prose;
mod stream;
mod table;

use std::fmt;
use std::sync::Arc;

pub use stream::{CutReport, CutResult, KeepWhole, STRUCTURED_CONTENT, Spending, WholeText};

string_enum! {
    /// The structure by which a text was cut.
    pub enum CutKind {
        /// A JSON document, or one to a line.
        Json = "json",
        /// A Markdown table, or values that are separated by commas or tabs.
        Table = "table",
        /// Lines with times or levels.
        Log = "log",
        /// A unified diff.
        Diff = "diff",
        /// Any other text.
        Text = "text",
    }
}

/// The function that counts the tokens of a text.
pub type TokenCounter = Arc<dyn Fn(&str) -> usize + Send + Sync>;

/// The largest size of a result that a model reads.
///
/// ```
/// use toolcrib::call::ResultBudget;
///
/// let budget = ResultBudget::characters(80);
/// let items: Vec<u32> = (0..480).collect();
/// let cut = budget.cut(&serde_json::to_string(&items)?, None).expect("it is too long");
///
/// assert_eq!(cut.text, r#"[0,1,2,3,4,5,6,7,8,"[9 of 480 items; narrow the request to see more]"]"#);
/// assert!(budget.cut("short", None).is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct ResultBudget {
    characters: Option<usize>,
    tokens: Option<usize>,
    count: Option<TokenCounter>,
}

/// A text that was cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The text that is left, with a note on what is missing; it fits the budget.
    pub text: String,
    /// The structure by which it was cut.
    pub kind: CutKind,
    /// The number of parts that are left, complete or cut themselves.
    pub shown: usize,
    /// The number of parts before.
    pub total: usize,
    /// The plural of the word for a part, such as `items`.
    pub unit: &'static str,
}

impl ResultBudget {
    /// A budget of this many characters (Unicode scalar values). With fewer than about a hundred there is little room besides the
    /// note on what is missing.
    #[must_use]
    pub fn characters(most: usize) -> Self {
        Self { characters: Some(most), ..Self::default() }
    }

    /// A budget of this many tokens, as [`estimate_tokens`] counts them.
    #[must_use]
    pub fn tokens(most: usize) -> Self {
        Self { tokens: Some(most), ..Self::default() }
    }

    /// The same with another function that counts tokens. It is called several times for a result that is too long.
    #[must_use]
    pub fn counted_by(self, count: impl Fn(&str) -> usize + Send + Sync + 'static) -> Self {
        Self { count: Some(Arc::new(count)), ..self }
    }

    /// The budget that keeps to both this and another; the counter is that of the smaller number of tokens.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let is_smaller =
            |one: Option<usize>, two: Option<usize>| one.is_some_and(|one| two.is_none_or(|two| one <= two));
        let (tokens, count) = if other.tokens.is_none() || is_smaller(self.tokens, other.tokens) {
            (self.tokens, self.count)
        } else {
            (other.tokens, other.count)
        };
        let characters = if is_smaller(self.characters, other.characters) { self.characters } else { other.characters };
        Self { characters, tokens, count }
    }

    /// The most characters; none if they are not limited.
    #[must_use]
    pub fn most_characters(&self) -> Option<usize> {
        self.characters
    }

    /// The most tokens; none if they are not limited.
    #[must_use]
    pub fn most_tokens(&self) -> Option<usize> {
        self.tokens
    }

    /// Cuts a text that is too long, by its structure; none if it fits. `whole` is the call by which the model reads the whole
    /// text, for the note.
    #[must_use]
    pub fn cut(&self, text: &str, whole: Option<&str>) -> Option<Cut> {
        let size = self.size(text);
        if size.fits(self) {
            return None;
        }
        let (kind, note) = (kind::of(text), Note { whole });
        let cut = |limit| match cut_as(kind, text, limit, &note) {
            Some(cut) => cut,
            None => prose::cut(text, limit, &note),
        };
        Some(self.fitting(size, cut, |cut| self.size(&cut.text)))
    }

    /// The size of a text in the units of this budget.
    fn size(&self, text: &str) -> Size {
        let count = |text: &str| self.count.as_ref().map_or_else(|| estimate_tokens(text), |count| count(text));
        Size { characters: characters(text), tokens: self.tokens.map_or(0, |_| count(text)) }
    }

    /// The largest result of `cut` that fits, among a few attempts. `cut` takes the most characters and keeps to them.
    fn fitting<T>(&self, whole: Size, cut: impl Fn(usize) -> T, size: impl Fn(&T) -> Size) -> T {
        let most = self.characters.unwrap_or(usize::MAX).min(whole.characters);
        let Some(tokens) = self.tokens else { return cut(most) };
        // The number of tokens grows about as the text does.
        let mut limit = scaled(whole.characters, tokens, whole.tokens).min(most);
        let mut best = None;
        for attempt in 0..ATTEMPTS {
            let candidate = cut(limit);
            let used = size(&candidate);
            if used.fits(self) {
                best = Some(candidate);
                if limit >= most || scaled(used.tokens, 10, 9) >= tokens {
                    break;
                }
                // There is room left. Half of it is tried, because all of it may be too much.
                limit = limit.midpoint(scaled(limit, tokens, used.tokens)).clamp(limit + 1, most);
            } else if best.is_some() || limit == 0 {
                break;
            } else {
                // The later attempts are for counters that are not proportional.
                let half = if attempt < ATTEMPTS / 2 { limit - 1 } else { limit / 2 };
                limit = scaled(limit, tokens, used.tokens).min(half);
            }
        }
        best.unwrap_or_else(|| cut(0))
    }
}

/// The most attempts to find a text of the right number of tokens.
const ATTEMPTS: usize = 8;

impl fmt::Debug for ResultBudget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("ResultBudget");
        shown.field("characters", &self.characters).field("tokens", &self.tokens).finish_non_exhaustive()
    }
}

/// The size of a text.
#[derive(Debug, Clone, Copy, Default)]
struct Size {
    characters: usize,
    tokens: usize,
}

impl Size {
    fn fits(self, budget: &ResultBudget) -> bool {
        budget.characters.is_none_or(|most| self.characters <= most)
            && budget.tokens.is_none_or(|most| self.tokens <= most)
    }

    fn plus(self, other: Self) -> Self {
        Self {
            characters: self.characters.saturating_add(other.characters),
            tokens: self.tokens.saturating_add(other.tokens),
        }
    }
}

/// The number of characters of a text.
fn characters(text: &str) -> usize {
    text.chars().count()
}

/// `value * numerator / denominator`.
fn scaled(value: usize, numerator: usize, denominator: usize) -> usize {
    let exact = value as u128 * numerator as u128 / (denominator.max(1)) as u128;
    usize::try_from(exact).unwrap_or(usize::MAX)
}

/// Estimates the number of tokens of a text, without the vocabulary of a model.
///
/// Each character counts quarters of a token: a small ASCII letter or a space one, a capital or a Cyrillic letter two, a digit, a sign
/// or a letter of another alphabet three, a character of a script such as Chinese, Japanese, Korean, Thai or Hindi five, and an
/// emoji twelve. The sum is rounded up. This is about 0.9 to 1.4 times the number of a vocabulary of a
/// hundred thousand tokens for text, code and data in any language, and half of it for random letters.
///
/// ```
/// use toolcrib::call::estimate_tokens;
///
/// assert_eq!(estimate_tokens("four words of text"), 5);
/// assert_eq!(estimate_tokens("東京都"), 4);
/// ```
#[must_use]
pub fn estimate_tokens(text: &str) -> usize {
    let quarters = text.bytes().fold(0_usize, |sum, byte| {
        let weight = match byte {
            b'a'..=b'z' | b' ' | b'\t' | b'\n' | b'\r' => 1,
            // The bytes that continue a character count nothing, those that begin one for all of it.
            0x80..=0xBF => 0,
            b'A'..=b'Z' | 0xD0..=0xD3 => 2,
            ..=0xDF => 3,
            0xE0..=0xEF => 5,
            0xF0.. => 12,
        };
        sum.saturating_add(weight)
    });
    quarters.div_ceil(4)
}

/// The words for the missing part of a text, and for the way to read it.
struct Note<'a> {
    whole: Option<&'a str>,
}

impl Note<'_> {
    /// A note that begins with these words.
    fn after(&self, what: &str) -> String {
        match self.whole {
            Some(whole) => format!("[{what}; read the rest with {whole}]"),
            None => format!("[{what}; narrow the request to see more]"),
        }
    }
}

/// Cuts a text to a number of characters; none if there is too little room to show its structure.
fn cut_as(kind: kind::Kind<'_>, text: &str, limit: usize, note: &Note<'_>) -> Option<Cut> {
    match kind {
        kind::Kind::Json => Some(json::cut(text, limit, note)),
        kind::Kind::JsonLines => json::cut_lines(text, limit, note),
        kind::Kind::Diff => diff::cut(text, limit, note),
        kind::Kind::Table(table) => table::cut(&table, limit, note),
        kind::Kind::Log => log::cut(text, limit, note),
        kind::Kind::Text => None,
    }
}

/// The byte at which the character of this number begins; the length of the text if it has no more than that.
fn offset(text: &str, character: usize) -> usize {
    // Most texts are ASCII at the beginning, but each character has to be looked at.
    text.char_indices().nth(character).map_or(text.len(), |(at, _)| at)
}

/// The byte at which the last characters begin, this many of them.
fn offset_from_end(text: &str, last: usize) -> usize {
    match last.checked_sub(1) {
        None => text.len(),
        Some(before) => text.char_indices().rev().nth(before).map_or(0, |(at, _)| at),
    }
}

/// The largest amount that can be given to all, so that those who need less get what they need and the sum stays within `room`.
fn fair_share(needs: &[usize], room: usize) -> usize {
    let mut sorted = needs.to_vec();
    sorted.sort_unstable();
    let mut rest = room;
    for (at, need) in sorted.iter().enumerate() {
        let share = rest / (sorted.len() - at);
        if *need > share {
            return share;
        }
        rest -= need;
    }
    usize::MAX
}
