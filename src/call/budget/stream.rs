//! The budget of one call, whose result may have several blocks of text and come in several chunks.
//!
//! The consumer of a stream may append additions or take the last response: both are within the budget. A chunk that is the
//! result so far is cut as a whole. Additions are passed on until the budget is used up, and the whole result is cut at the end.

use std::future::Future;
use std::pin::Pin;

use serde_json::{Value, json};

use super::{Cut, CutKind, Note, ResultBudget, Size, characters, fair_share, prose};
use crate::call::{ChunkMode, ToolResponse};

/// The least room of a block of text.
const LEAST_BLOCK: usize = 100;

/// The note at the end of additions that are cut.
const REST_LEFT_OUT: &str = "\n[the rest of this stream is left out]";

/// The whole text of a result that was too long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WholeText {
    /// The text of all blocks, with a line break between each.
    pub text: String,
    /// The name of the tool.
    pub tool: String,
    /// The session of the call.
    pub session: Option<String>,
}

/// The place that keeps the whole text of results that are cut, so that the model can read parts of it.
pub trait KeepWhole: Send + Sync {
    /// Keeps a text. The result is the call by which the model reads it, such as `read_artifact(id="…")`.
    ///
    /// # Errors
    ///
    /// The reason why it cannot be kept, for the log: the result is delivered all the same.
    fn keep(&self, whole: WholeText) -> Pin<Box<dyn Future<Output = Result<String, String>> + Send>>;
}

/// The texts of a response that was cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutResult {
    /// The new text of each block of text; none for those that are left out.
    pub texts: Vec<Option<String>>,
    /// The entry `budget` of the metadata.
    pub report: CutReport,
}

/// The facts about a cut, for the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutReport {
    /// The structure of the largest block.
    pub kind: CutKind,
    /// The parts that are left of it.
    pub shown: usize,
    /// The parts that it had.
    pub total: usize,
    /// The word for the parts.
    pub unit: &'static str,
    /// The number of characters before.
    pub characters: usize,
}

impl CutReport {
    /// The report as JSON.
    #[must_use]
    pub fn to_value(&self, whole: Option<&str>) -> Value {
        let mut value = json!({
            "kind": self.kind.as_str(),
            "shown": self.shown,
            "total": self.total,
            "unit": self.unit,
            "characters": self.characters,
        });
        if let (Some(whole), Some(entries)) = (whole, value.as_object_mut()) {
            entries.insert("whole".to_owned(), whole.into());
        }
        value
    }
}

/// The part of its budget that a call has used, which is the same budget for all responses of the call.
#[derive(Debug, Default)]
pub struct Spending {
    /// The size of the result so far, as a consumer has it who appends the additions.
    spent: Size,
    /// True if additions are left out until a result replaces them.
    is_over: bool,
}

impl Spending {
    /// Cuts the texts of a response; none if they stay. `whole` is the call by which the model reads the whole text.
    #[must_use]
    pub fn cut(
        &mut self,
        budget: &ResultBudget,
        texts: &[&str],
        mode: ChunkMode,
        whole: Option<&str>,
    ) -> Option<CutResult> {
        let size = budget.size_of(texts);
        match mode {
            ChunkMode::Progress => None,
            ChunkMode::Addition => self.cut_addition(budget, texts, size),
            ChunkMode::Result => {
                self.is_over = false;
                if size.fits(budget) {
                    self.spent = size;
                    return None;
                }
                let result = budget.cut_result(texts, size, whole);
                self.spent = budget.size_of(&result.left());
                Some(result)
            }
        }
    }

    fn cut_addition(&mut self, budget: &ResultBudget, texts: &[&str], size: Size) -> Option<CutResult> {
        let note = budget.size(REST_LEFT_OUT);
        let after = self.spent.plus(size);
        if texts.is_empty() || !self.is_over && after.plus(note).fits(budget) {
            self.spent = after;
            return None;
        }
        let total = size.characters;
        let report = CutReport { kind: CutKind::Text, shown: 0, total, unit: "characters", characters: total };
        let mut left = vec![None; texts.len()];
        if std::mem::replace(&mut self.is_over, true) {
            return Some(CutResult { texts: left, report });
        }
        // The beginning of the addition, if the note fits after it.
        let rest = budget.without(self.spent);
        let text = texts.join("\n");
        let cut = |limit: usize| match limit.checked_sub(note.characters) {
            Some(room) => format!("{}{REST_LEFT_OUT}", prose::head(&text, room)),
            None => String::new(),
        };
        let text = rest.fitting(size.plus(note), cut, |text| rest.size(text));
        let added = rest.size(&text);
        self.spent = self.spent.plus(added);
        left[0] = Some(text).filter(|text| !text.is_empty());
        let shown = added.characters.saturating_sub(note.characters);
        Some(CutResult { texts: left, report: CutReport { shown, ..report } })
    }
}

impl ResultBudget {
    /// True if texts are too long together, with a line break between each.
    #[must_use]
    pub fn is_exceeded_by(&self, texts: &[&str]) -> bool {
        !self.size_of(texts).fits(self)
    }

    fn size_of(&self, texts: &[&str]) -> Size {
        match texts {
            [] => Size::default(),
            [text] => self.size(text),
            texts => self.size(&texts.join("\n")),
        }
    }

    /// The budget that is left.
    fn without(&self, spent: Size) -> Self {
        Self {
            characters: self.characters.map(|most| most.saturating_sub(spent.characters)),
            tokens: self.tokens.map(|most| most.saturating_sub(spent.tokens)),
            count: self.count.clone(),
        }
    }

    fn cut_result(&self, texts: &[&str], size: Size, whole: Option<&str>) -> CutResult {
        if let [text] = texts
            && let Some(Cut { text, kind, shown, total, unit }) = self.cut(text, whole)
        {
            let report = CutReport { kind, shown, total, unit, characters: size.characters };
            return CutResult { texts: vec![Some(text)], report };
        }
        let cut = |limit| cut_blocks(texts, limit, size.characters, &Note { whole });
        self.fitting(size, cut, |result| self.size_of(&result.left()))
    }
}

impl ResultBudget {
    /// Cuts a structured value whose JSON text is too long; none if it fits. `whole` is the call by which the model reads the
    /// whole text.
    #[must_use]
    pub fn cut_structured(&self, value: &Value, whole: Option<&str>) -> Option<(Value, CutReport)> {
        let before = value.to_string();
        let Cut { text, kind, shown, total, unit } = self.cut(&before, whole)?;
        // A text that is cut by another structure than that of JSON is a string.
        let left = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Some((left, CutReport { kind, shown, total, unit, characters: characters(&before) }))
    }
}

impl CutResult {
    /// The texts that are left.
    fn left(&self) -> Vec<&str> {
        self.texts.iter().flatten().map(String::as_str).collect()
    }
}

/// Cuts several blocks of text to at most `limit` characters in all, line breaks between them included.
fn cut_blocks(texts: &[&str], limit: usize, before: usize, note: &Note<'_>) -> CutResult {
    let sizes: Vec<usize> = texts.iter().map(|text| characters(text)).collect();
    let missing = |shown: usize| note.after(&format!("{shown} of {} blocks of text", texts.len()));
    // The last block is for the note, if others are left out.
    let mut rest = limit.saturating_sub(characters(&missing(texts.len())) + 1);
    let fits = |size: &&usize| {
        let left = rest.checked_sub((**size).min(LEAST_BLOCK) + 1);
        rest = left.unwrap_or(0);
        left.is_some()
    };
    let count = sizes.iter().take_while(fits).count();
    let mut result = vec![None; texts.len()];
    let is_all = count == texts.len();
    let note_size = if is_all { 0 } else { characters(&missing(count)) + 1 };
    let share = fair_share(&sizes[..count], limit.saturating_sub(note_size + count));
    let mut largest: Option<(usize, Cut)> = None;
    for (at, text) in texts[..count].iter().enumerate() {
        let budget = ResultBudget { characters: Some(share.max(1)), ..ResultBudget::default() };
        result[at] = Some(match budget.cut(text, note.whole) {
            None => (*text).to_owned(),
            Some(cut) => {
                let shown = cut.text.clone();
                if largest.as_ref().is_none_or(|(size, _)| *size < sizes[at]) {
                    largest = Some((sizes[at], cut));
                }
                shown
            }
        });
    }
    if !is_all && note_size <= limit {
        result[count] = Some(missing(count));
    }
    let report = match largest {
        Some((_, Cut { kind, shown, total, unit, .. })) => CutReport { kind, shown, total, unit, characters: before },
        None => CutReport { kind: CutKind::Text, shown: count, total: texts.len(), unit: "blocks", characters: before },
    };
    CutResult { texts: result, report }
}

impl ToolResponse {
    /// The texts of the blocks that are text.
    #[must_use]
    pub fn texts(&self) -> Vec<&str> {
        self.content.iter().filter_map(block_text).collect()
    }

    /// The same with the texts of a cut, and its report in the metadata.
    #[must_use]
    pub fn with_cut(mut self, cut: CutResult, whole: Option<&str>) -> Self {
        let mut texts = cut.texts.into_iter();
        self.content = std::mem::take(&mut self.content)
            .into_iter()
            .filter_map(|mut block| {
                if block_text(&block).is_none() {
                    return Some(block);
                }
                block["text"] = texts.next()??.into();
                Some(block)
            })
            .collect();
        self.with_metadata("budget", cut.report.to_value(whole))
    }

    /// The same with the structured content of an MCP server within a budget. The `value` stays whole, for the program.
    #[must_use]
    pub fn with_structured_within(self, budget: &ResultBudget, whole: Option<&str>) -> Self {
        let entry = |name: &str| self.metadata.as_ref().and_then(|metadata| metadata.get(name));
        let is_reported = entry("budget").is_some();
        let cut = entry(STRUCTURED_CONTENT).and_then(|structured| budget.cut_structured(structured, whole));
        let Some((left, report)) = cut else { return self };
        let response = self.with_metadata(STRUCTURED_CONTENT, left);
        if is_reported { response } else { response.with_metadata("budget", report.to_value(whole)) }
    }
}

/// The entry of the metadata with the structured content of an MCP server.
pub const STRUCTURED_CONTENT: &str = "structured_content";

fn block_text(block: &Value) -> Option<&str> {
    (block.get("type")? == "text").then(|| block.get("text")?.as_str())?
}
