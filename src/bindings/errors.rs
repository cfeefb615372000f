//! The mapping of the core's errors to Python exceptions, without a catch-all arm, so that a new error needs its exception.

use std::any::Any;

use pyo3::panic::PanicException;
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::once::intern;
use super::response::PyToolResponse;
use crate::Error;
#[cfg(unix)]
use crate::files::FileError;
use crate::mcp::client::ClientError;
use crate::native::run::panic_message;
use crate::native::{Failure, Unanswered};

/// The error number for a missing file, the same on every system.
const ENOENT: i32 = 2;

/// Declares the exceptions, and the function that resolves all of them.
macro_rules! exceptions {
    ($($name:ident,)*) => {
        mod python {
            #![allow(missing_docs, reason = "the classes are documented where they are defined, in errors.py")]
            $(pyo3::import_exception!(toolcrib.errors, $name);)*
        }

        fn resolve(py: Python<'_>) -> PyResult<()> {
            let module = py.import("toolcrib.errors")?;
            $(
                module.getattr(stringify!($name))?.cast_into::<PyType>()?;
                // It exists, so pyo3 finds it as well, and keeps it.
                let _ = py.get_type::<python::$name>();
            )*
            Ok(())
        }
    };
}

exceptions! {
    AgentDefinitionError,
    AgentFileError,
    AgentTemplateError,
    DuplicateToolError,
    UnknownToolError,
    InvalidToolNameError,
    NoFreeNameError,
    DuplicateGroupError,
    UnknownGroupError,
    BasicGroupError,
    ReservedGroupError,
    ReservedGroupRemovalError,
    InvalidGroupError,
    DuplicateRoleError,
    UnknownRoleError,
    SystemRoleError,
    InvalidRoleError,
    RoleFileError,
    InvalidSchemaError,
    IncompleteSchemaError,
    UnsupportedTypeError,
    ExtendedModelError,
    UnknownDialectError,
    UnreadableArgumentsError,
    SkillDirectoryError,
    SkillFileError,
    SkillFrontMatterError,
    DuplicateSkillError,
    SkillTemplateError,
    InvalidStateError,
    ApprovalStoreError,
    InvalidPendingError,
    AlteredPendingError,
    ExpiredPendingError,
    UsedPendingError,
    MisplacedPendingError,
    InvalidAnswerError,
    CannotListenError,
    InvalidServerOptionError,
    InvalidProgramOptionError,
    NoSandboxError,
    FileAccessError,
    MissingFileError,
    ForeignFileError,
    DamagedFileError,
    NewerFileError,
    StoreError,
    InvalidStoreError,
    MissingEntryError,
    VersionConflictError,
    FileTooLargeError,
    InvalidRuleError,
    DuplicateRuleError,
    InvalidPolicyFileError,
    BusyError,
    InternalError,
    SilentMiddlewareError,
    ToolCallError,
    InvalidTargetError,
    McpConnectionError,
    McpError,
    NativeToolError,
    NoAskerError,
    UnansweredError,
    FileSystemError,
    InvalidPathError,
    AccessDeniedError,
    NotFoundError,
    ConflictError,
    InvalidArgumentError,
}

/// Resolves the exceptions. pyo3 makes an exception when Rust returns to Python, and aborts the process if its class cannot
/// be imported then, for example while the interpreter shuts down, or for a frame without builtins.
pub(crate) fn init(py: Python<'_>) -> PyResult<()> {
    resolve(py)?;
    // A panic that pyo3 catches is raised as `PanicException`, which `except Exception` does not catch. Making one raises
    // `InternalError`, and an exception that is raised while another is made takes its place.
    py.get_type::<PanicException>().setattr("__new__", wrap_pyfunction!(raise_internal, py)?)
}

/// Raise an `InternalError` in place of a `PanicException`.
#[pyfunction]
#[pyo3(signature = (_class, what="unknown panic"))]
fn raise_internal(_class: &Bound<'_, PyAny>, what: &str) -> PyResult<()> {
    Err(internal_error(what))
}

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        let text = error.to_string();
        match error {
            Error::DuplicateTool { .. } => python::DuplicateToolError::new_err(text),
            Error::UnknownTool { .. } | Error::ToolNotFound { .. } => python::UnknownToolError::new_err(text),
            Error::InvalidToolName { .. } => python::InvalidToolNameError::new_err(text),
            Error::NoFreeName { .. } => python::NoFreeNameError::new_err(text),
            Error::DuplicateGroup { .. } => python::DuplicateGroupError::new_err(text),
            Error::UnknownGroup { .. } | Error::NoSuchGroup { .. } => python::UnknownGroupError::new_err(text),
            Error::ReservedGroup { .. } => python::ReservedGroupError::new_err(text),
            Error::ReservedGroupStays { .. } => python::ReservedGroupRemovalError::new_err(text),
            Error::InvalidGroup { .. } => python::InvalidGroupError::new_err(text),
            Error::DuplicateRole { .. } => python::DuplicateRoleError::new_err(text),
            Error::UnknownRole { .. } => python::UnknownRoleError::new_err(text),
            Error::SystemRole { .. } => python::SystemRoleError::new_err(text),
            Error::InvalidRole { .. } => python::InvalidRoleError::new_err(text),
            Error::RoleFile { .. } => python::RoleFileError::new_err(text),
            Error::BasicGroup => python::BasicGroupError::new_err(text),
            Error::InvalidSchema { .. } | Error::UnderivableSchema { .. } => python::InvalidSchemaError::new_err(text),
            Error::IncompleteSchema { .. } => python::IncompleteSchemaError::new_err(text),
            Error::UnsupportedType { .. } => python::UnsupportedTypeError::new_err(text),
            Error::FieldConflict { .. }
            | Error::PresetConflict { .. }
            | Error::DefinitionConflict { .. }
            | Error::UnusableModel { .. } => python::ExtendedModelError::new_err(text),
            Error::UnknownDialect { .. } => python::UnknownDialectError::new_err(text),
            Error::UnreadableArguments { .. } => python::UnreadableArgumentsError::new_err(text),
            Error::SkillDirectory { .. } => python::SkillDirectoryError::new_err(text),
            Error::SkillFile { .. } => python::SkillFileError::new_err(text),
            Error::SkillFrontMatter { .. } => python::SkillFrontMatterError::new_err(text),
            Error::DuplicateSkill { .. } => python::DuplicateSkillError::new_err(text),
            Error::SkillTemplate { .. } => python::SkillTemplateError::new_err(text),
            Error::InvalidState { .. } => python::InvalidStateError::new_err(text),
            Error::InvalidPending { .. } => python::InvalidPendingError::new_err(text),
            Error::AlteredPending { .. } => python::AlteredPendingError::new_err(text),
            Error::ExpiredPending { .. } => python::ExpiredPendingError::new_err(text),
            Error::UsedPending { .. } => python::UsedPendingError::new_err(text),
            Error::OtherTool { .. }
            | Error::OtherSchema { .. }
            | Error::OtherPresets { .. }
            | Error::OtherCaller { .. }
            | Error::OtherSession { .. }
            | Error::OtherProcess { .. }
            | Error::OtherKey { .. } => python::MisplacedPendingError::new_err(text),
            Error::ApprovalStore { .. } => python::ApprovalStoreError::new_err(text),
            Error::InvalidAnswer { .. } => python::InvalidAnswerError::new_err(text),
            // The form of an `OSError`: number, reason, file.
            Error::FileAccess { code: Some(code), path, doing, reason } => {
                let arguments = (code, format!("cannot {doing} the file: {reason}"), path);
                match code {
                    ENOENT => python::MissingFileError::new_err(arguments),
                    _ => python::FileAccessError::new_err(arguments),
                }
            }
            Error::FileAccess { code: None, .. } => python::FileAccessError::new_err(text),
            Error::ExposedServer { .. } | Error::InvalidServerOption { .. } => {
                python::InvalidServerOptionError::new_err(text)
            }
            Error::CannotListen { code: Some(code), .. } => python::CannotListenError::new_err((code, text)),
            Error::CannotListen { code: None, .. } => python::CannotListenError::new_err(text),
            Error::MissingFile { path } => python::MissingFileError::new_err((ENOENT, "there is no such file", path)),
            Error::MissingFolder { path, similar } => {
                let hint = similar.map(|path| format!(": did you mean `{path}`?")).unwrap_or_default();
                let reason = format!("there is no such folder, and `create` is not set{hint}");
                python::MissingFileError::new_err((ENOENT, reason, path))
            }
            Error::ForeignFile { .. } => python::ForeignFileError::new_err(text),
            Error::DamagedFile { .. } => python::DamagedFileError::new_err(text),
            Error::NewerFile { .. } => python::NewerFileError::new_err(text),
            Error::InvalidStoreUrl { .. } | Error::InvalidStoreKey { .. } => python::InvalidStoreError::new_err(text),
            Error::StoreFailed { .. } => python::StoreError::new_err(text),
            Error::MissingEntry { .. } => python::MissingEntryError::new_err(text),
            Error::VersionConflict { version, .. } => python::VersionConflictError::new_err((text, version)),
            Error::FileTooLarge { .. } => python::FileTooLargeError::new_err(text),
            Error::InvalidFileRoot { .. } => python::InvalidArgumentError::new_err(text),
            Error::UnsupportedInput { .. } | Error::InvalidAgent { .. } => python::AgentDefinitionError::new_err(text),
            Error::MissingInputs { .. } => python::AgentTemplateError::new_err(text),
            Error::AgentFile { .. } => python::AgentFileError::new_err(text),
            Error::InvalidProgramOption { .. } => python::InvalidProgramOptionError::new_err(text),
            Error::NoSandbox { .. } => python::NoSandboxError::new_err(text),
            Error::InvalidRule { .. } => python::InvalidRuleError::new_err(text),
            Error::DuplicateRule { .. } => python::DuplicateRuleError::new_err(text),
            Error::InvalidPolicyFile { .. } => python::InvalidPolicyFileError::new_err(text),
        }
    }
}

#[cfg(unix)]
impl From<FileError> for PyErr {
    fn from(error: FileError) -> Self {
        let text = error.to_string();
        match error {
            FileError::InvalidPath { .. } => python::InvalidPathError::new_err(text),
            FileError::AccessDenied { .. } => python::AccessDeniedError::new_err(text),
            FileError::NotFound { .. } => python::NotFoundError::new_err(text),
            FileError::Conflict { .. } => python::ConflictError::new_err(text),
            FileError::InvalidArgument { .. } => python::InvalidArgumentError::new_err(text),
            FileError::Failed { .. } | FileError::Cancelled => python::FileSystemError::new_err(text),
        }
    }
}

/// The exception for a panic that was caught before it reached Python: an ordinary one, so that the program goes on.
pub(crate) fn internal(panic: &(dyn Any + Send)) -> PyErr {
    internal_error(&panic_message(panic))
}

/// The exception for a defect of toolcrib itself.
pub(crate) fn internal_error(what: &str) -> PyErr {
    python::InternalError::new_err(format!("toolcrib failed internally, please report this: {what}"))
}

/// The exception for a job that no worker thread can run.
pub(crate) fn busy(threads: usize) -> PyErr {
    let reason =
        format!("no worker thread is free: up to {threads} tools run in threads, and all of them wait or hang");
    python::BusyError::new_err(reason)
}

/// True for the exception of [`busy`].
pub(crate) fn is_busy(exception: &Bound<'_, PyAny>) -> bool {
    exception.is_instance_of::<python::BusyError>()
}

/// The exception for a middleware that ended without a response.
pub(crate) fn silent_middleware(name: &str) -> PyErr {
    let reason = format!("middleware `{name}` gave no response: it must yield those of `next_handler`, or its own");
    python::SilentMiddlewareError::new_err(reason)
}

/// The exception for a call that has no value, with its last response and the exception that the tool raised.
pub(crate) fn call_failed(text: String, response: &Bound<'_, PyToolResponse>, cause: Option<PyErr>) -> PyErr {
    let failed = python::ToolCallError::new_err((text, response.clone().unbind()));
    failed.set_cause(response.py(), cause);
    failed
}

/// The exception for an error of an MCP client.
pub(crate) fn mcp(error: ClientError) -> PyErr {
    let text = error.to_string();
    match error {
        ClientError::Target(_) => python::InvalidTargetError::new_err(text),
        ClientError::AlreadyConnected { .. } | ClientError::Answered { .. } | ClientError::InvalidList { .. } => {
            python::McpError::new_err(text)
        }
        ClientError::NotConnected { .. } | ClientError::Connection { .. } | ClientError::Timeout { .. } => {
            python::McpConnectionError::new_err(text)
        }
    }
}

/// True for an error that a native tool returned.
pub(crate) fn is_native(exception: &Bound<'_, PyAny>) -> bool {
    exception.is_instance_of::<python::NativeToolError>()
}

/// The exception for a question without an answer.
pub(crate) fn unanswered(reason: &Unanswered) -> PyErr {
    match reason {
        Unanswered::NotSupported => python::NoAskerError::new_err("the client cannot ask such a question"),
        Unanswered::Declined | Unanswered::Failed(_) => python::UnansweredError::new_err(reason.to_string()),
    }
}

/// True for a mistake of the model that a native tool returned.
pub(crate) fn is_mistake(exception: &Bound<'_, PyAny>) -> bool {
    let flag = || exception.getattr(intern!(exception.py(), "is_mistake"))?.is_truthy();
    is_native(exception) && flag().unwrap_or(false)
}

/// The exception for the failure of a native tool.
pub(crate) fn native(py: Python<'_>, tool: &str, failure: &Failure) -> PyErr {
    match failure {
        Failure::Returned(error) => {
            let raised = python::NativeToolError::new_err(error.message().to_owned());
            if error.is_mistake() {
                // An instance of a class of ours takes attributes.
                let _ = raised.value(py).setattr(intern!(py, "is_mistake"), true);
            }
            raised
        }
        Failure::Arguments(reason) => python::NativeToolError::new_err(reason.clone()),
        Failure::Panicked(message) => internal_error(&format!("the native tool `{tool}` panicked: {message}")),
    }
}
