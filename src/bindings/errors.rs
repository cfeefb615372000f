//! The core's errors as Python exceptions; one arm for each, so that a new error asks for its exception.

use std::any::Any;

use pyo3::prelude::*;

use crate::Error;

/// The number that every system has for a missing file.
const ENOENT: i32 = 2;

mod python {
    #![allow(missing_docs, reason = "the classes are documented where they are defined, in errors.py")]
    pyo3::import_exception!(toolcrib.errors, DuplicateToolError);
    pyo3::import_exception!(toolcrib.errors, UnknownToolError);
    pyo3::import_exception!(toolcrib.errors, InvalidToolNameError);
    pyo3::import_exception!(toolcrib.errors, NoFreeNameError);
    pyo3::import_exception!(toolcrib.errors, DuplicateGroupError);
    pyo3::import_exception!(toolcrib.errors, UnknownGroupError);
    pyo3::import_exception!(toolcrib.errors, BasicGroupError);
    pyo3::import_exception!(toolcrib.errors, ReservedGroupError);
    pyo3::import_exception!(toolcrib.errors, ReservedGroupRemovalError);
    pyo3::import_exception!(toolcrib.errors, InvalidGroupError);
    pyo3::import_exception!(toolcrib.errors, DuplicateRoleError);
    pyo3::import_exception!(toolcrib.errors, UnknownRoleError);
    pyo3::import_exception!(toolcrib.errors, SystemRoleError);
    pyo3::import_exception!(toolcrib.errors, InvalidRoleError);
    pyo3::import_exception!(toolcrib.errors, RoleFileError);
    pyo3::import_exception!(toolcrib.errors, InvalidSchemaError);
    pyo3::import_exception!(toolcrib.errors, IncompleteSchemaError);
    pyo3::import_exception!(toolcrib.errors, UnsupportedTypeError);
    pyo3::import_exception!(toolcrib.errors, ExtendedModelError);
    pyo3::import_exception!(toolcrib.errors, UnknownDialectError);
    pyo3::import_exception!(toolcrib.errors, UnreadableArgumentsError);
    pyo3::import_exception!(toolcrib.errors, SkillDirectoryError);
    pyo3::import_exception!(toolcrib.errors, SkillFileError);
    pyo3::import_exception!(toolcrib.errors, SkillFrontMatterError);
    pyo3::import_exception!(toolcrib.errors, DuplicateSkillError);
    pyo3::import_exception!(toolcrib.errors, SkillTemplateError);
    pyo3::import_exception!(toolcrib.errors, InvalidStateError);
    pyo3::import_exception!(toolcrib.errors, InvalidPendingError);
    pyo3::import_exception!(toolcrib.errors, AlteredPendingError);
    pyo3::import_exception!(toolcrib.errors, ExpiredPendingError);
    pyo3::import_exception!(toolcrib.errors, UsedPendingError);
    pyo3::import_exception!(toolcrib.errors, MisplacedPendingError);
    pyo3::import_exception!(toolcrib.errors, InvalidAnswerError);
    pyo3::import_exception!(toolcrib.errors, FileAccessError);
    pyo3::import_exception!(toolcrib.errors, MissingFileError);
    pyo3::import_exception!(toolcrib.errors, ForeignFileError);
    pyo3::import_exception!(toolcrib.errors, DamagedFileError);
    pyo3::import_exception!(toolcrib.errors, NewerFileError);
    pyo3::import_exception!(toolcrib.errors, FileTooLargeError);
    pyo3::import_exception!(toolcrib.errors, InvalidRuleError);
    pyo3::import_exception!(toolcrib.errors, DuplicateRuleError);
    pyo3::import_exception!(toolcrib.errors, InvalidPolicyFileError);
    pyo3::import_exception!(toolcrib.errors, InternalError);
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
            Error::UnknownGroup { .. } => python::UnknownGroupError::new_err(text),
            Error::ReservedGroup { .. } => python::ReservedGroupError::new_err(text),
            Error::ReservedGroupStays { .. } => python::ReservedGroupRemovalError::new_err(text),
            Error::InvalidGroup { .. } => python::InvalidGroupError::new_err(text),
            Error::DuplicateRole { .. } => python::DuplicateRoleError::new_err(text),
            Error::UnknownRole { .. } => python::UnknownRoleError::new_err(text),
            Error::SystemRole { .. } => python::SystemRoleError::new_err(text),
            Error::InvalidRole { .. } => python::InvalidRoleError::new_err(text),
            Error::RoleFile { .. } => python::RoleFileError::new_err(text),
            Error::BasicGroup => python::BasicGroupError::new_err(text),
            Error::InvalidSchema { .. } => python::InvalidSchemaError::new_err(text),
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
            | Error::OtherKey { .. } => python::MisplacedPendingError::new_err(text),
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
            Error::MissingFile { path } => python::MissingFileError::new_err((ENOENT, "there is no such file", path)),
            Error::ForeignFile { .. } => python::ForeignFileError::new_err(text),
            Error::DamagedFile { .. } => python::DamagedFileError::new_err(text),
            Error::NewerFile { .. } => python::NewerFileError::new_err(text),
            Error::FileTooLarge { .. } => python::FileTooLargeError::new_err(text),
            Error::InvalidRule { .. } => python::InvalidRuleError::new_err(text),
            Error::DuplicateRule { .. } => python::DuplicateRuleError::new_err(text),
            Error::InvalidPolicyFile { .. } => python::InvalidPolicyFileError::new_err(text),
        }
    }
}

/// A panic caught at the border: a defect of toolcrib, told as an ordinary exception so that the program lives on.
pub(crate) fn internal(panic: &(dyn Any + Send)) -> PyErr {
    let what = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "an unknown panic".to_owned());
    python::InternalError::new_err(format!("toolcrib failed internally, please report this: {what}"))
}
