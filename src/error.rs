//! What a developer can get wrong, one variant for each mistake.
//!
//! What a *model* gets wrong is never an [`Error`]: it is answered in the stream, see the module `call`.

use std::io;
use std::path::Path;

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
    /// The id belongs to a group that nobody may replace.
    #[error("the group id `{id}` is reserved: choose another one")]
    ReservedGroup {
        /// The id.
        id: String,
    },
    /// A reserved group always stays.
    #[error("the group `{id}` is reserved and cannot be unregistered")]
    ReservedGroupStays {
        /// The group's id.
        id: String,
    },
    /// What was passed in does not describe a group.
    #[error("group `{id}` cannot be registered: {reason}")]
    InvalidGroup {
        /// The group's id.
        id: String,
        /// What is wrong with it.
        reason: String,
    },
    /// There is a role of that name.
    #[error("there is a role `{name}` already: update it instead")]
    DuplicateRole {
        /// The name that is taken.
        name: String,
    },
    /// No such role.
    #[error("there is no role `{name}`")]
    UnknownRole {
        /// The name that was asked for.
        name: String,
    },
    /// A role that is the same everywhere.
    #[error("the role `{name}` is the system's own: it always has exactly the group `org_management`")]
    SystemRole {
        /// The role's name.
        name: String,
    },
    /// What was passed in does not describe a role.
    #[error("this is no role: {reason}")]
    InvalidRole {
        /// What is wrong with it.
        reason: String,
    },
    /// A file whose roles cannot be read.
    #[error("`{path}` has no roles to load: {reason}")]
    RoleFile {
        /// The file.
        path: String,
        /// Which record and field, and why.
        reason: String,
    },
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
    /// No such dialect.
    #[error("there is no dialect `{name}`; there are {known}")]
    UnknownDialect {
        /// The name that was asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// Arguments in a dialect that cannot be brought back to the shape a tool expects.
    #[error("the arguments of tool `{tool}` cannot be read: {reason}")]
    UnreadableArguments {
        /// The tool's name.
        tool: String,
        /// What is wrong with them.
        reason: String,
    },
    /// The folder of a skill is none.
    #[error("the skill directory `{dir}` is not a directory{}", clause(.reason))]
    SkillDirectory {
        /// The folder as it was given.
        dir: String,
        /// Why; empty where there is no more to say.
        reason: String,
    },
    /// The folder of a skill has no `SKILL.md`, or it cannot be read.
    #[error("the skill directory `{dir}` has no file `SKILL.md`{}", clause(.reason))]
    SkillFile {
        /// The folder as it was given.
        dir: String,
        /// Why; empty where there is no more to say.
        reason: String,
    },
    /// A `SKILL.md` does not begin with its name and description.
    #[error(
        "the SKILL.md in `{dir}` must begin with YAML front matter that has a `name` and a `description`: {reason}"
    )]
    SkillFrontMatter {
        /// The folder as it was given.
        dir: String,
        /// What is wrong with it.
        reason: String,
    },
    /// There is a skill of that name.
    #[error("an agent skill `{name}` is already registered in the toolkit")]
    DuplicateSkill {
        /// The name that is taken.
        name: String,
    },
    /// A template for skills that cannot be filled in.
    #[error("the agent skill template cannot be filled in: {reason}")]
    SkillTemplate {
        /// What is wrong with it.
        reason: String,
    },
    /// A state that was passed in is none, or is one of something else.
    #[error("{reason}")]
    InvalidState {
        /// What is wrong with it.
        reason: String,
    },
    /// A value that should be a pending call is none.
    #[error("not a pending call: `{field}` must be {expected}, not {found}")]
    InvalidPending {
        /// Where it is wrong; `$` is the whole of it.
        field: String,
        /// What should be there.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// A pending call is not as it was made.
    #[error("the pending call `{id}` was altered after it was made: ask again")]
    AlteredPending {
        /// The id of the call, as it says.
        id: String,
    },
    /// An answer comes too late.
    #[error("the pending call of tool `{tool}` expired at {expires}: ask again")]
    ExpiredPending {
        /// The tool's name.
        tool: String,
        /// From when no answer counts.
        expires: String,
    },
    /// A pending call was answered before.
    #[error("the pending call of tool `{tool}` has been answered already: an approval is used once")]
    UsedPending {
        /// The tool's name.
        tool: String,
    },
    /// A pending call is for another tool.
    #[error("the pending call is for tool `{asked}`, not for `{tool}`")]
    OtherTool {
        /// The tool that was asked about.
        asked: String,
        /// The tool that was to run.
        tool: String,
    },
    /// The tool's schema is another one than when it was asked about.
    #[error("the schema of tool `{tool}` has changed since the call was asked about: ask again")]
    OtherSchema {
        /// The tool's name.
        tool: String,
    },
    /// The tool's presets are others than when it was asked about.
    #[error("the presets of tool `{tool}` have changed since the call was asked about: ask again")]
    OtherPresets {
        /// The tool's name.
        tool: String,
    },
    /// A pending call is another caller's.
    #[error("the pending call of tool `{tool}` belongs to another caller")]
    OtherCaller {
        /// The tool's name.
        tool: String,
    },
    /// A pending call is of another session.
    #[error("the pending call of tool `{tool}` belongs to another session")]
    OtherSession {
        /// The tool's name.
        tool: String,
    },
    /// A pending call was made with a key that is not here.
    #[error("the pending call of tool `{tool}` was signed with another key: open the approvals that it was made with")]
    OtherKey {
        /// The tool's name, as the call says.
        tool: String,
    },
    /// A pending call was made in the memory of another process.
    #[error(
        "the pending call of tool `{tool}` belongs to the process that this one was forked from: approvals in memory are \
         for one process, use `Approvals` with a folder to share them"
    )]
    OtherProcess {
        /// The tool's name, as the call says.
        tool: String,
    },
    /// An answer that is none.
    #[error("not an answer: {found}; expected {expected}")]
    InvalidAnswer {
        /// What should be there.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// The system refuses to read or write a file.
    #[error("cannot {doing} `{path}`: {reason}")]
    FileAccess {
        /// What was tried.
        doing: &'static str,
        /// The file.
        path: String,
        /// The system's number for the reason, if it has one.
        code: Option<i32>,
        /// Why.
        reason: String,
    },
    /// There is no such file.
    #[error("there is no file `{path}`")]
    MissingFile {
        /// The file.
        path: String,
    },
    /// A file that something else wrote.
    #[error("`{path}` is not a `{format}` file")]
    ForeignFile {
        /// The file.
        path: String,
        /// What it should be.
        format: &'static str,
    },
    /// A file that is not as it was written.
    #[error("`{path}` is damaged: {reason}")]
    DamagedFile {
        /// The file.
        path: String,
        /// How that shows.
        reason: String,
    },
    /// A file that a newer toolcrib wrote.
    #[error("`{path}` has version {version}, and this toolcrib reads up to version {known}: update it")]
    NewerFile {
        /// The file.
        path: String,
        /// Its version.
        version: u64,
        /// The newest version that can be read.
        known: u64,
    },
    /// A file that is larger than any that is written.
    #[error("`{path}` is larger than the {limit} bytes that such a file may have")]
    FileTooLarge {
        /// The file.
        path: String,
        /// The largest size in bytes.
        limit: usize,
    },
    /// A rule of a policy that cannot be used.
    #[error("{} cannot be used: {reason}", rule_name(.rule))]
    InvalidRule {
        /// Its id; empty if it has none.
        rule: String,
        /// Everything that is wrong with it, field by field.
        reason: String,
    },
    /// There is a rule of that id.
    #[error("the policy already has a rule `{id}`")]
    DuplicateRule {
        /// The id that is taken.
        id: String,
    },
    /// A file of rules that is none.
    #[error("`{path}` cannot be used as a file of rules: {reason}")]
    InvalidPolicyFile {
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl Error {
    /// The word by which programs tell mistakes with groups and roles apart.
    #[must_use]
    pub fn code(&self) -> Option<&'static str> {
        Some(match self {
            Self::ReservedGroup { .. } => "reserved_group_id",
            Self::ReservedGroupStays { .. } => "cannot_unregister_reserved",
            Self::InvalidGroup { .. } => "invalid_group_def",
            Self::DuplicateGroup { .. } => "duplicate_group_id",
            Self::UnknownGroup { .. } => "group_not_found",
            Self::DuplicateRole { .. } => "duplicate_role",
            Self::InvalidRole { .. } => "invalid_role",
            Self::RoleFile { .. } => "invalid_role_file",
            Self::SystemRole { .. } => "cannot_modify_system_role",
            Self::UnknownRole { .. } => "role_not_found",
            _ => return None,
        })
    }

    pub(crate) fn access(doing: &'static str, path: &Path, error: &io::Error) -> Self {
        let (path, code, mut reason) = (path.display().to_string(), error.raw_os_error(), error.to_string());
        if let Some(end) = reason.find(" (os error ") {
            reason.truncate(end);
        }
        Self::FileAccess { doing, path, code, reason }
    }
}

fn rule_name(id: &str) -> String {
    if id.is_empty() { "the rule".to_owned() } else { format!("rule `{id}`") }
}

fn clause(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(": {reason}") }
}

fn suffix(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(" {reason}") }
}

/// The result of anything a developer can get wrong.
pub type Result<T, E = Error> = std::result::Result<T, E>;
