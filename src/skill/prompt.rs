//! The text that lists the skills for an agent.

use super::Skill;
use crate::{Error, Result};

/// The default text before the list of skills.
pub const DEFAULT_INSTRUCTION: &str = "\
# Agent Skills

Each skill below is a folder of instructions for one kind of task, sometimes with scripts and other files beside them. \
When a task fits a skill, first read the `SKILL.md` in its folder, then work as it says.";

/// The text for one skill, with placeholders as in Python's `str.format`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<TemplatePart>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum TemplatePart {
    Text(String),
    Name,
    Description,
    Dir,
}

impl Default for Template {
    /// The default text for a skill.
    fn default() -> Self {
        let text = |text: &str| TemplatePart::Text(text.to_owned());
        Self(vec![
            text("\n## "),
            TemplatePart::Name,
            text("\n"),
            TemplatePart::Description,
            text("\nRead `"),
            TemplatePart::Dir,
            text("/SKILL.md` before you use this skill."),
        ])
    }
}

impl Template {
    /// Parses a template: `{name}`, `{description}` and `{dir}` are filled in, `{{` and `}}` stand for braces.
    ///
    /// # Errors
    ///
    /// [`Error::SkillTemplate`] for any other brace.
    pub fn parse(text: &str) -> Result<Self> {
        let mut parts = Vec::new();
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
            parts.push(TemplatePart::Text(std::mem::take(&mut literal)));
            parts.push(placeholder(field)?);
            rest = after;
        }
        literal.push_str(rest);
        parts.push(TemplatePart::Text(literal));
        Ok(Self(parts))
    }

    /// The text for one skill.
    #[must_use]
    pub fn fill(&self, skill: &Skill) -> String {
        let parts = self.0.iter().map(|part| match part {
            TemplatePart::Text(text) => text.as_str(),
            TemplatePart::Name => &skill.name,
            TemplatePart::Description => &skill.description,
            TemplatePart::Dir => &skill.dir,
        });
        parts.collect()
    }
}

fn placeholder(field: &str) -> Result<TemplatePart> {
    Ok(match field {
        "name" => TemplatePart::Name,
        "description" => TemplatePart::Description,
        "dir" => TemplatePart::Dir,
        _ => {
            let reason = format!("unknown placeholder `{{{field}}}`: expected {{name}}, {{description}} or {{dir}}");
            return Err(refused(&reason));
        }
    })
}

fn refused(reason: &str) -> Error {
    Error::SkillTemplate { reason: reason.to_owned() }
}
