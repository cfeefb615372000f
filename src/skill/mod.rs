//! Skills: folders with instructions that an agent is told about and reads when it needs them.

mod front_matter;
mod prompt;
mod yaml;

use std::path::Path;

use indexmap::IndexMap;

pub use prompt::{DEFAULT_INSTRUCTION, Template};

use crate::store::{self, Disk};
use crate::{Error, Result};

/// The file in a skill's folder that says what the skill is.
pub const FILE: &str = "SKILL.md";

/// A folder with instructions, as an agent is told about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// The name, unique in its toolkit and on one line.
    pub name: String,
    /// What the skill is good for.
    pub description: String,
    /// The folder, as it was given.
    pub dir: String,
}

impl Skill {
    /// Reads what the front matter of a folder's `SKILL.md` says.
    ///
    /// # Errors
    ///
    /// [`Error::SkillDirectory`], [`Error::SkillFile`] or [`Error::SkillFrontMatter`], for what is not as it must be.
    pub fn read(dir: &str) -> Result<Self> {
        let folder = Path::new(dir);
        match std::fs::metadata(folder) {
            Ok(metadata) if metadata.is_dir() => {}
            Ok(_) => return Err(Error::SkillDirectory { dir: dir.to_owned(), reason: String::new() }),
            Err(error) => return Err(Error::SkillDirectory { dir: dir.to_owned(), reason: error.to_string() }),
        }
        let head = store::head(&Disk, &folder.join(FILE), front_matter::LIMIT).map_err(|error| {
            let reason = match error {
                Error::FileAccess { reason, .. } => reason,
                _ => String::new(),
            };
            Error::SkillFile { dir: dir.to_owned(), reason }
        })?;
        Self::from_head(dir, &head).map_err(|reason| Error::SkillFrontMatter { dir: dir.to_owned(), reason })
    }

    /// Reads a skill from the beginning of its `SKILL.md`; the error says what is wrong with it.
    fn from_head(dir: &str, head: &[u8]) -> Result<Self, String> {
        let matter = front_matter::find(head)?;
        let fields = yaml::read(&matter)?;
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

/// Whether a letter of a name could make a heading look like something else.
fn breaks_a_line(letter: char) -> bool {
    letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}')
}

/// The skills of a toolkit, in the order they came, and how an agent is told about them.
#[derive(Debug, Default)]
pub struct Skills {
    instruction: Option<String>,
    template: Template,
    by_name: IndexMap<String, Skill>,
}

impl Skills {
    /// Sets how an agent is told about the skills; an empty text stands for the default.
    ///
    /// # Errors
    ///
    /// [`Error::SkillTemplate`] if the template has anything but text and the placeholders of a skill; then nothing changes.
    pub fn describe_with(&mut self, instruction: Option<&str>, template: Option<&str>) -> Result<()> {
        self.template = match template.filter(|text| !text.is_empty()) {
            Some(text) => Template::parse(text)?,
            None => Template::default(),
        };
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

    /// Takes a skill out, if it is there.
    pub fn remove(&mut self, name: &str) -> Option<Skill> {
        self.by_name.shift_remove(name)
    }

    /// Finds a skill by its exact name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Skill> {
        self.by_name.get(name)
    }

    /// All skills in the order they came.
    #[must_use]
    pub fn all(&self) -> impl ExactSizeIterator<Item = &Skill> {
        self.by_name.values()
    }

    /// What to tell an agent about its skills; nothing if it has none.
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
