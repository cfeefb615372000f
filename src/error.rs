//! Errors of the developer, one variant for each mistake.
//!
//! A mistake of the *model* is never an [`Error`]: it becomes a response in the stream, see the module `call`.

use std::io;
use std::path::Path;

/// A mistake of the program that uses toolcrib.
///
/// Texts that are the same as in AgentScope are kept to the letter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The name of a new tool is taken.
    #[error("A function with name '{name}' is already registered in the toolkit.")]
    DuplicateTool {
        /// The name that is taken.
        name: String,
    },
    /// The tool does not exist.
    #[error("Tool function '{name}' does not exist in the toolkit.")]
    UnknownTool {
        /// The name that was asked for.
        name: String,
    },
    /// The tool to extend does not exist.
    #[error("Tool function '{name}' not found in the toolkit.")]
    ToolNotFound {
        /// The name that was asked for.
        name: String,
    },
    /// The name of a tool is invalid.
    #[error("invalid tool name {name:?}: {reason}")]
    InvalidToolName {
        /// The name.
        name: String,
        /// The reason.
        reason: &'static str,
    },
    /// A renamed tool gets no free name.
    #[error("no free name for tool `{name}` after {tries} tries")]
    NoFreeName {
        /// The name to start from.
        name: String,
        /// The number of names that were tried.
        tries: usize,
    },
    /// The name of a new group is taken.
    #[error("Tool group '{name}' is already registered in the toolkit.")]
    DuplicateGroup {
        /// The group's name.
        name: String,
    },
    /// The group does not exist.
    #[error("Tool group '{name}' not found.")]
    UnknownGroup {
        /// The name that was asked for.
        name: String,
    },
    /// A group that is to be switched or removed does not exist.
    #[error("unknown group `{name}`{}", hint(.similar.as_ref()))]
    NoSuchGroup {
        /// The name that was asked for.
        name: String,
        /// The name that was probably meant.
        similar: Option<String>,
    },
    /// The basic group cannot be removed.
    #[error("Cannot remove the default 'basic' tool group.")]
    BasicGroup,
    /// The id of a new group is reserved.
    #[error("group id `{id}` is reserved: choose another one")]
    ReservedGroup {
        /// The id.
        id: String,
    },
    /// A reserved group cannot be removed.
    #[error("group `{id}` is reserved and cannot be unregistered")]
    ReservedGroupStays {
        /// The group's id.
        id: String,
    },
    /// The definition of a group is invalid.
    #[error("invalid group `{id}`: {reason}")]
    InvalidGroup {
        /// The group's id.
        id: String,
        /// The reason.
        reason: String,
    },
    /// The name of a new role is taken.
    #[error("role `{name}` already exists: update it instead")]
    DuplicateRole {
        /// The name that is taken.
        name: String,
    },
    /// The role does not exist.
    #[error("unknown role `{name}`")]
    UnknownRole {
        /// The name that was asked for.
        name: String,
    },
    /// The system role cannot be changed.
    #[error("role `{name}` is a system role: it always has exactly the group `org_management`")]
    SystemRole {
        /// The role's name.
        name: String,
    },
    /// The definition of a role is invalid.
    #[error("invalid role: {reason}")]
    InvalidRole {
        /// The reason.
        reason: String,
    },
    /// A roles file is invalid.
    #[error("invalid roles file `{path}`: {reason}")]
    RoleFile {
        /// The file.
        path: String,
        /// The records and fields, with the reasons.
        reason: String,
    },
    /// The root of a file system is invalid.
    #[error("invalid file root `{root}`: {reason}")]
    InvalidFileRoot {
        /// The name of the root.
        root: String,
        /// The reason.
        reason: String,
    },
    /// A given schema is invalid.
    #[error("Invalid JSON schema for the tool function.{}", suffix(.reason))]
    InvalidSchema {
        /// The reason; empty where the fixed text says it all.
        reason: String,
    },
    /// A tool needs a given schema, which its signature does not have.
    #[error(
        "tool `{tool}` must be registered with its `json_schema`: its signature does not have its parameters; \
         pass the `register_kwargs` that came with it"
    )]
    UnderivableSchema {
        /// The tool's name.
        tool: String,
    },
    /// A given schema is incomplete.
    #[error("invalid JSON schema of tool `{tool}`: missing `{key}`")]
    IncompleteSchema {
        /// The tool's name.
        tool: String,
        /// The missing key.
        key: String,
    },
    /// JSON Schema cannot express an annotation.
    #[error("tool `{tool}`: parameter `{parameter}` has type `{annotation}`, which has no JSON Schema: {reason}")]
    UnsupportedType {
        /// The tool's name.
        tool: String,
        /// The parameter's name.
        parameter: String,
        /// The annotation as Python shows it.
        annotation: String,
        /// The reason, and what to do.
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
    /// A field of an extended model has the name of a preset, which a model may not send.
    #[error("field `{field}` of the extended model has the name of a preset of tool `{tool}`: rename one of them")]
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
    /// An extended model has no fields to add.
    #[error("tool `{tool}` cannot be extended by this model: {reason}")]
    UnusableModel {
        /// The tool's name.
        tool: String,
        /// The reason.
        reason: String,
    },
    /// The dialect does not exist.
    #[error("unknown dialect `{name}`: expected one of {known}")]
    UnknownDialect {
        /// The name that was asked for.
        name: String,
        /// The known names.
        known: String,
    },
    /// Arguments in a dialect cannot be decoded.
    #[error("invalid arguments of tool `{tool}`: {reason}")]
    UnreadableArguments {
        /// The tool's name.
        tool: String,
        /// The reason.
        reason: String,
    },
    /// The folder of a skill is not a directory.
    #[error("skill directory `{dir}` is not a directory{}", clause(.reason))]
    SkillDirectory {
        /// The folder as it was given.
        dir: String,
        /// The reason; may be empty.
        reason: String,
    },
    /// The folder of a skill has no `SKILL.md`, or it cannot be read.
    #[error("skill directory `{dir}` has no file `SKILL.md`{}", clause(.reason))]
    SkillFile {
        /// The folder as it was given.
        dir: String,
        /// The reason; may be empty.
        reason: String,
    },
    /// The front matter of a `SKILL.md` is invalid.
    #[error("invalid SKILL.md in `{dir}`: expected YAML front matter with `name` and `description`: {reason}")]
    SkillFrontMatter {
        /// The folder as it was given.
        dir: String,
        /// The reason.
        reason: String,
    },
    /// The name of a new skill is taken.
    #[error("An agent skill with name '{name}' is already registered in the toolkit.")]
    DuplicateSkill {
        /// The name that is taken.
        name: String,
    },
    /// A template for skills is invalid.
    #[error("invalid agent skill template: {reason}")]
    SkillTemplate {
        /// The reason.
        reason: String,
    },
    /// A given state is invalid, or that of something else.
    #[error("{reason}")]
    InvalidState {
        /// The reason.
        reason: String,
    },
    /// A value is not a valid pending call.
    #[error("invalid pending call: `{field}`: expected {expected}, got {found}")]
    InvalidPending {
        /// The invalid field; `$` for the whole value.
        field: String,
        /// The expected value.
        expected: &'static str,
        /// The given value.
        found: String,
    },
    /// A pending call was altered.
    #[error("the pending call `{id}` was altered after it was made: ask again")]
    AlteredPending {
        /// The id of the call, as it says.
        id: String,
    },
    /// A pending call has expired.
    #[error("the pending call of tool `{tool}` expired at {expires}: ask again")]
    ExpiredPending {
        /// The tool's name.
        tool: String,
        /// The time from which no answer counts.
        expires: String,
    },
    /// A pending call was already answered.
    #[error("the pending call of tool `{tool}` was already answered: an approval is used once")]
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
    /// The schema of the tool has changed since the call was made.
    #[error("the schema of tool `{tool}` has changed since the approval was asked for: ask again")]
    OtherSchema {
        /// The tool's name.
        tool: String,
    },
    /// The presets of the tool have changed since the call was made.
    #[error("the presets of tool `{tool}` have changed since the approval was asked for: ask again")]
    OtherPresets {
        /// The tool's name.
        tool: String,
    },
    /// A pending call belongs to another caller.
    #[error("the pending call of tool `{tool}` belongs to {}", owning_caller(.caller.as_deref()))]
    OtherCaller {
        /// The tool's name.
        tool: String,
        /// The caller that it belongs to; none for a call without a caller.
        caller: Option<String>,
    },
    /// A pending call belongs to another session.
    #[error("the pending call of tool `{tool}` belongs to {}", owning_session(.session.as_deref()))]
    OtherSession {
        /// The tool's name.
        tool: String,
        /// The session that it belongs to; none for a call outside of sessions.
        session: Option<String>,
    },
    /// A pending call was signed with an unknown key.
    #[error("the pending call of tool `{tool}` was signed with another key: open the approvals that it was made with")]
    OtherKey {
        /// The tool's name, as the call says.
        tool: String,
    },
    /// A pending call belongs to the approvals in memory of another process.
    #[error(
        "the pending call of tool `{tool}` belongs to the process that this one was forked from: approvals in memory are \
         for one process, use `Approvals` with a folder to share them"
    )]
    OtherProcess {
        /// The tool's name, as the call says.
        tool: String,
    },
    /// The store of used approvals failed.
    #[error("cannot use the approval of tool call `{id}`: the store of approvals failed: {reason}")]
    ApprovalStore {
        /// The id of the pending call.
        id: String,
        /// The reason.
        reason: String,
    },
    /// The answer of an approver is invalid.
    #[error("invalid answer: expected {expected}, got {found}")]
    InvalidAnswer {
        /// The expected value.
        expected: &'static str,
        /// The given value.
        found: String,
    },
    /// The operating system refuses access to a file.
    #[error("cannot {doing} `{path}`: {reason}")]
    FileAccess {
        /// The attempted operation.
        doing: &'static str,
        /// The file.
        path: String,
        /// The error number of the system, if there is one.
        code: Option<i32>,
        /// The reason.
        reason: String,
    },
    /// A file does not exist.
    #[error("file `{path}` does not exist")]
    MissingFile {
        /// The file.
        path: String,
    },
    /// A folder does not exist.
    #[error("folder `{path}` does not exist{}", .similar.as_ref().map(|path| format!(": did you mean `{path}`?")).unwrap_or_default())]
    MissingFolder {
        /// The folder.
        path: String,
        /// A folder with a similar name that exists.
        similar: Option<String>,
    },
    /// A file has another format.
    #[error("`{path}` is not a `{format}` file")]
    ForeignFile {
        /// The file.
        path: String,
        /// The expected format.
        format: &'static str,
    },
    /// A file is damaged.
    #[error("`{path}` is damaged: {reason}")]
    DamagedFile {
        /// The file.
        path: String,
        /// The reason.
        reason: String,
    },
    /// The URL of a store is invalid.
    #[error("invalid store URL `{url}`: {reason}")]
    InvalidStoreUrl {
        /// The URL, without its password.
        url: String,
        /// The reason.
        reason: String,
    },
    /// The name of an entry of a store is invalid.
    #[error("invalid {what} `{key}` in a store: {reason}")]
    InvalidStoreKey {
        /// The kind of name.
        what: &'static str,
        /// The name.
        key: String,
        /// The reason.
        reason: &'static str,
    },
    /// The database of a store failed.
    #[error("store `{store}` failed: {reason}")]
    StoreFailed {
        /// The store.
        store: String,
        /// The reason.
        reason: String,
    },
    /// A store has nothing under a key.
    #[error("store `{store}` has no {what} `{key}`")]
    MissingEntry {
        /// The store.
        store: String,
        /// The kind of entry.
        what: &'static str,
        /// The key.
        key: String,
    },
    /// Another writer has changed an entry of a store.
    #[error("version conflict: `{key}` has version {version}, expected {expected}: load it again")]
    VersionConflict {
        /// The key.
        key: String,
        /// The version that the writer has seen; zero for none.
        expected: u64,
        /// The current version; zero for none.
        version: u64,
    },
    /// A newer toolcrib wrote the file.
    #[error("`{path}` has unknown version {version}: expected at most {known}, update toolcrib")]
    NewerFile {
        /// The file.
        path: String,
        /// Its version.
        version: u64,
        /// The newest version that can be read.
        known: u64,
    },
    /// A file is too large.
    #[error("`{path}` is larger than the limit of {limit} bytes")]
    FileTooLarge {
        /// The file.
        path: String,
        /// The largest size in bytes.
        limit: usize,
    },
    /// A server would be reachable from other machines without protection.
    #[error("`{host}` is reachable from other machines: a server there needs `token` and `allowed_hosts`")]
    ExposedServer {
        /// The address.
        host: String,
    },
    /// An option of a server is invalid.
    #[error("invalid {option}: {reason}")]
    InvalidServerOption {
        /// The option.
        option: &'static str,
        /// The reason.
        reason: String,
    },
    /// The operating system refuses to listen on an address.
    #[error("cannot listen on `{address}`: {reason}")]
    CannotListen {
        /// The address.
        address: String,
        /// The error number of the system, if there is one.
        code: Option<i32>,
        /// The reason.
        reason: String,
    },
    /// A setting of the tools that run programs is invalid.
    #[error("invalid option `{option}` of programs: {reason}")]
    InvalidProgramOption {
        /// The option.
        option: &'static str,
        /// The reason.
        reason: String,
    },
    /// This system cannot provide the sandbox that programs are to run in.
    #[error("no sandbox for programs: {reason}")]
    NoSandbox {
        /// The reason.
        reason: String,
    },
    /// A rule of a policy is invalid.
    #[error("invalid {}: {reason}", rule_name(.rule))]
    InvalidRule {
        /// Its id; empty if it has none.
        rule: String,
        /// Everything that is wrong with it, field by field.
        reason: String,
    },
    /// The id of a new rule is taken.
    #[error("the policy already has a rule `{id}`")]
    DuplicateRule {
        /// The id that is taken.
        id: String,
    },
    /// The type of an agent's input is unknown.
    #[error(
        "Unsupported input type '{kind}' for parameter '{parameter}'. \
         Supported types: string, number, integer, boolean, string[], number[]"
    )]
    UnsupportedInput {
        /// The name of the type.
        kind: String,
        /// The input.
        parameter: String,
    },
    /// A template has placeholders for inputs that are missing.
    #[error("Template validation failed: Missing required input parameters: {missing}. Available inputs: {available}")]
    MissingInputs {
        /// The names that are missing.
        missing: String,
        /// The names of the inputs.
        available: String,
    },
    /// The definition of an agent is invalid.
    #[error("invalid agent{}: {reason}", agent_name(.name))]
    InvalidAgent {
        /// Its name; empty if it has none.
        name: String,
        /// The reason.
        reason: String,
    },
    /// A file with the definition of an agent is invalid.
    #[error("invalid agent file `{path}`: {reason}")]
    AgentFile {
        /// The file.
        path: String,
        /// The reason.
        reason: String,
    },
    /// A policy file is invalid.
    #[error("invalid policy file `{path}`: {reason}")]
    InvalidPolicyFile {
        /// The file.
        path: String,
        /// The reason.
        reason: String,
    },
}

impl Error {
    /// The code of an error with groups or roles, for programs.
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

fn owning_caller(caller: Option<&str>) -> String {
    caller.map_or_else(
        || "no caller: resume it with `toolkit.resume(...)`".to_owned(),
        |caller| format!("caller `{caller}`: resume it with `toolkit.view(caller={caller:?}).resume(...)`"),
    )
}

fn owning_session(session: Option<&str>) -> String {
    session.map_or_else(
        || "no session: resume it through the toolkit or view that was called".to_owned(),
        |id| format!("session `{id}`: resume it with `resume` of that session, `toolkit.session(id={id:?}, ...)`"),
    )
}

fn rule_name(id: &str) -> String {
    if id.is_empty() { "rule".to_owned() } else { format!("rule `{id}`") }
}

fn agent_name(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!(" `{name}`") }
}

fn clause(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(": {reason}") }
}

/// The name that was probably meant, as the end of a message.
fn hint(similar: Option<&String>) -> String {
    similar.map_or_else(String::new, |name| format!(": did you mean `{name}`?"))
}

fn suffix(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(" {reason}") }
}

/// A result with an [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;
