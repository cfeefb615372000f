//! Skills: folders with instructions that an agent reads when it needs them.
//!
//! Read in this order: this file ([`Skill`] and [`Skills`]), `prompt` (the text that lists the skills for an agent).

mod prompt;

use std::path::Path;

use indexmap::IndexMap;

pub use prompt::{DEFAULT_INSTRUCTION, Template};

use crate::front_matter;
use crate::store::{self, Disk};
use crate::{Error, Result};

/// The name of the file that describes a skill.
pub const FILE: &str = "SKILL.md";

/// The number of bytes that are read of it: longer front matter is refused.
const HEAD: usize = 64 * 1024;

/// A folder with instructions, with its name and description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// The name, unique in its toolkit and without line breaks.
    pub name: String,
    /// The description.
    pub description: String,
    /// The folder, as it was given.
    pub dir: String,
}

impl Skill {
    /// Reads the name and description in the `SKILL.md` of a folder.
    ///
    /// # Errors
    ///
    /// [`Error::SkillDirectory`], [`Error::SkillFile`] or [`Error::SkillFrontMatter`].
    pub fn read(dir: &str) -> Result<Self> {
        let folder = Path::new(dir);
        match std::fs::metadata(folder) {
            Ok(metadata) if metadata.is_dir() => {}
            Ok(_) => return Err(Error::SkillDirectory { dir: dir.to_owned(), reason: String::new() }),
            Err(error) => return Err(Error::SkillDirectory { dir: dir.to_owned(), reason: error.to_string() }),
        }
        let head = store::head(&Disk, &folder.join(FILE), HEAD).map_err(|error| {
            let reason = match error {
                Error::FileAccess { reason, .. } => reason,
                _ => String::new(),
            };
            Error::SkillFile { dir: dir.to_owned(), reason }
        })?;
        Self::from_head(dir, &head).map_err(|reason| Error::SkillFrontMatter { dir: dir.to_owned(), reason })
    }

    /// Parses the beginning of a `SKILL.md`; the error is a clause on what is wrong with it.
    fn from_head(dir: &str, head: &[u8]) -> Result<Self, String> {
        let fields = front_matter::find(head, HEAD)?.parse()?;
        let text = |key: &str| match fields.text(key)? {
            Some(text) if !text.trim().is_empty() => Ok(text),
            _ => Err(format!("`{key}` is missing or empty")),
        };
        let (name, description) = (text("name")?, text("description")?);
        if let Some(letter) = name.chars().find(|letter| breaks_a_line(*letter)) {
            return Err(format!("`name` has the control character {letter:?}"));
        }
        Ok(Self { name, description, dir: dir.to_owned() })
    }
}

/// True for a character that could make a name look like more than one line.
fn breaks_a_line(letter: char) -> bool {
    letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}')
}

/// The skills of a toolkit, in the order in which they were added, and the texts that list them.
#[derive(Debug, Default)]
pub struct Skills {
    instruction: Option<String>,
    template: Template,
    template_text: Option<String>,
    by_name: IndexMap<String, Skill>,
}

impl Skills {
    /// Sets the texts that list the skills for an agent; an empty text stands for the default.
    ///
    /// # Errors
    ///
    /// [`Error::SkillTemplate`] if the template has an unknown placeholder; then nothing changes.
    pub fn describe_with(&mut self, instruction: Option<&str>, template: Option<&str>) -> Result<()> {
        let template = template.filter(|text| !text.is_empty());
        self.template = template.map_or_else(|| Ok(Template::default()), Template::parse)?;
        self.template_text = template.map(str::to_owned);
        self.instruction = instruction.filter(|text| !text.is_empty()).map(str::to_owned);
        Ok(())
    }

    /// Adds a skill.
    ///
    /// # Errors
    ///
    /// [`Error::DuplicateSkill`] if the name is taken.
    pub fn insert(&mut self, skill: Skill) -> Result<()> {
        if self.by_name.contains_key(&skill.name) {
            return Err(Error::DuplicateSkill { name: skill.name });
        }
        self.by_name.insert(skill.name.clone(), skill);
        Ok(())
    }

    /// Adds a skill under a name, or replaces the one of that name in its position.
    pub fn put(&mut self, key: String, skill: Skill) {
        self.by_name.insert(key, skill);
    }

    /// The texts that list the skills, unless they are the defaults: the introduction, and the template of a skill.
    #[must_use]
    pub fn texts(&self) -> (Option<&str>, Option<&str>) {
        (self.instruction.as_deref(), self.template_text.as_deref())
    }

    /// All skills with the names under which they were added.
    #[must_use]
    pub fn named(&self) -> impl ExactSizeIterator<Item = (&str, &Skill)> {
        self.by_name.iter().map(|(name, skill)| (name.as_str(), skill))
    }

    /// Removes a skill, if it exists.
    pub fn remove(&mut self, name: &str) -> Option<Skill> {
        self.by_name.shift_remove(name)
    }

    /// Finds a skill by its exact name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Skill> {
        self.by_name.get(name)
    }

    /// All skills in the order in which they were added.
    #[must_use]
    pub fn all(&self) -> impl ExactSizeIterator<Item = &Skill> {
        self.by_name.values()
    }

    /// The text that lists the skills for an agent; `None` without skills.
    #[must_use]
    pub fn prompt(&self) -> Option<String> {
        if self.by_name.is_empty() {
            return None;
        }
        let instruction = self.instruction.as_deref().unwrap_or(DEFAULT_INSTRUCTION).to_owned();
        let descriptions = self.by_name.values().map(|skill| self.template.fill(skill));
        Some(std::iter::once(instruction).chain(descriptions).collect::<Vec<_>>().join("\n"))
    }
}
