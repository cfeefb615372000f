//! What a developer can get wrong, one variant for each mistake.
//!
//! What a *model* gets wrong is never an [`Error`]: it is answered in the stream, see the module `call`.

/// A mistake of the program that uses toolcrib.
///
/// Texts that AgentScope's users compare are kept to the letter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The name is taken, and the strategy was to raise.
    #[error("A function with name '{name}' is already registered in the toolkit.")]
    DuplicateTool {
        /// The name that is taken.
        name: String,
    },
    /// No such tool.
    #[error("Tool function '{name}' does not exist in the toolkit.")]
    UnknownTool {
        /// The name that was asked for.
        name: String,
    },
    /// No such tool to extend.
    #[error("Tool function '{name}' not found in the toolkit.")]
    ToolNotFound {
        /// The name that was asked for.
        name: String,
    },
    /// No free name was found for a renamed tool.
    #[error("no free name was found for tool `{name}` in {tries} tries")]
    NoFreeName {
        /// The name to start from.
        name: String,
        /// How many names were tried.
        tries: usize,
    },
    /// The group exists, or its name is reserved.
    #[error("Tool group '{name}' is already registered in the toolkit.")]
    DuplicateGroup {
        /// The group's name.
        name: String,
    },
    /// No such group.
    #[error("Tool group '{name}' not found.")]
    UnknownGroup {
        /// The name that was asked for.
        name: String,
    },
    /// The basic group always stays.
    #[error("Cannot remove the default 'basic' tool group.")]
    BasicGroup,
    /// A schema that was passed in is not one.
    #[error("Invalid JSON schema for the tool function.{}", suffix(.reason))]
    InvalidSchema {
        /// What is wrong with it; empty where the fixed text says it all.
        reason: String,
    },
    /// A schema that was passed in lacks a part.
    #[error("the JSON schema of tool `{tool}` has no `{key}`")]
    IncompleteSchema {
        /// The tool's name.
        tool: String,
        /// What is missing.
        key: String,
    },
    /// An annotation that JSON Schema has no word for.
    #[error("tool `{tool}`: parameter `{parameter}` has type `{annotation}`, which has no JSON Schema: {reason}")]
    UnsupportedType {
        /// The tool's name.
        tool: String,
        /// The parameter's name.
        parameter: String,
        /// The annotation as Python shows it.
        annotation: String,
        /// Why, and what to do.
        reason: String,
    },
    /// A field of an extended model has the name of a parameter.
    #[error(
        "The field `{field}` already exists in the original function schema of `{tool}`. Try to use a different name."
    )]
    FieldConflict {
        /// The tool's name.
        tool: String,
        /// The field's name.
        field: String,
    },
    /// A field of an extended model has the name of a preset, which no model may send.
    #[error("the field `{field}` of the extended model has the name of a preset of tool `{tool}`: rename one of them")]
    PresetConflict {
        /// The tool's name.
        tool: String,
        /// The field's name.
        field: String,
    },
    /// An extended model and a function define the same name differently.
    #[error("The $defs key `{key}` conflicts with existing definition in function schema of `{tool}`.")]
    DefinitionConflict {
        /// The tool's name.
        tool: String,
        /// The name of the definition.
        key: String,
    },
    /// An extended model that has no fields to add.
    #[error("tool `{tool}` cannot be extended by this model: {reason}")]
    UnusableModel {
        /// The tool's name.
        tool: String,
        /// Why not.
        reason: String,
    },
}

fn suffix(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(" {reason}") }
}

/// The result of anything a developer can get wrong.
pub type Result<T, E = Error> = std::result::Result<T, E>;
