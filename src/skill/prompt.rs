//! What an agent is told about its skills.

use super::Skill;
use crate::{Error, Result};

/// What stands before the skills, unless the developer says otherwise.
pub const DEFAULT_INSTRUCTION: &str = "\
# Agent Skills

Each skill below is a folder of instructions for one kind of task, sometimes with scripts and other files beside them. \
When a task fits a skill, first read the `SKILL.md` in its folder, then work as it says.";

/// A text with places for what a skill has, written as Python's `str.format` has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Name,
    Description,
    Dir,
}

impl Default for Template {
    /// What is said of each skill, unless the developer says otherwise.
    fn default() -> Self {
        let text = |text: &str| Piece::Text(text.to_owned());
        Self(vec![
            text("\n## "),
            Piece::Name,
            text("\n"),
            Piece::Description,
            text("\nRead `"),
            Piece::Dir,
            text("/SKILL.md` before you use this skill."),
        ])
    }
}

impl Template {
    /// Reads a template: `{name}`, `{description}` and `{dir}` are filled in, `{{` and `}}` stand for braces.
    ///
    /// # Errors
    ///
    /// [`Error::SkillTemplate`] for any other brace.
    pub fn parse(text: &str) -> Result<Self> {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            literal.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix(brace) {
                literal.push_str(brace);
                rest = after;
                continue;
            }
            let Some((field, after)) = rest.split_once('}').filter(|_| brace == "{") else {
                return Err(refused(&format!("a single `{brace}`; write `{brace}{brace}` for the brace itself")));
            };
            pieces.push(Piece::Text(std::mem::take(&mut literal)));
            pieces.push(placeholder(field)?);
            rest = after;
        }
        literal.push_str(rest);
        pieces.push(Piece::Text(literal));
        Ok(Self(pieces))
    }

    /// Tells about one skill.
    #[must_use]
    pub fn fill(&self, skill: &Skill) -> String {
        let pieces = self.0.iter().map(|piece| match piece {
            Piece::Text(text) => text.as_str(),
            Piece::Name => &skill.name,
            Piece::Description => &skill.description,
            Piece::Dir => &skill.dir,
        });
        pieces.collect()
    }
}

fn placeholder(field: &str) -> Result<Piece> {
    Ok(match field {
        "name" => Piece::Name,
        "description" => Piece::Description,
        "dir" => Piece::Dir,
        _ => {
            let reason = format!("unknown placeholder `{{{field}}}`; there are {{name}}, {{description}} and {{dir}}");
            return Err(refused(&reason));
        }
    })
}

fn refused(reason: &str) -> Error {
    Error::SkillTemplate { reason: reason.to_owned() }
}
