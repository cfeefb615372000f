//! The native tools `execute_shell_command` and `execute_python_code`.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_core::Stream;
use futures_util::{TryStreamExt, stream};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Number, json};
use tokio::sync::mpsc::Receiver;

use super::code_file::{CodeFile, Temporary};
use super::environment::Surroundings;
use super::options::Settings;
use super::run::{self, Event, Outcome, Program, Report};
use crate::call::{ChunkMode, ToolResponse};
use crate::native::{NativeTool, ToolContext, ToolError};
use crate::policy::{Permission, ToolKind};

/// The names of the outputs of a program.
const OUTPUTS: [&str; 2] = ["stdout", "stderr"];
/// The longest argument of a program, in bytes, that every Linux accepts; it ends with a NUL.
const ARGUMENT_BYTES: usize = 128 * 1024 - 1;

fn five_minutes() -> Number {
    300.into()
}

#[derive(Deserialize, JsonSchema)]
struct ShellCommand {
    /// The command, for /bin/sh.
    command: String,
    /// The number of seconds after which the command is killed.
    #[serde(default = "five_minutes")]
    #[schemars(range(min = 0))]
    timeout: Number,
}

/// The tool that runs a shell command.
pub(super) fn execute_shell_command(settings: Arc<Settings>) -> NativeTool {
    let description = "Run a shell command, and get its return code, its output and its errors. It has no input. When the \
                       shell has ended, processes that it left in the background are killed.";
    tool("execute_shell_command", description, settings, |_, _, ShellCommand { command, timeout }| {
        if command.len() > ARGUMENT_BYTES {
            let bytes = command.len();
            let text = format!(
                "the command has {bytes} bytes, and the longest possible one has {ARGUMENT_BYTES}: write the text to a file in several \
                 calls, each with a part of it, and run or read that file"
            );
            return Err(ToolError::new(text));
        }
        let arguments = vec!["/bin/sh".into(), "-c".into(), command.into()];
        Ok((Program { arguments, timeout: duration(&timeout), code: None }, Deadline { what: "command", timeout }))
    })
}

#[derive(Deserialize, JsonSchema)]
struct PythonCode {
    /// The code. Only what it prints is part of the result.
    code: String,
    /// The number of seconds after which the code is killed.
    #[serde(default = "five_minutes")]
    #[schemars(range(min = 0))]
    timeout: Number,
}

/// The tool that runs Python code.
///
/// The interpreter is isolated (`-I`): it imports nothing from the working directory, the folder of the code or that of the
/// user, and ignores variables of the environment.
pub(super) fn execute_python_code(settings: Arc<Settings>) -> NativeTool {
    let description = "Run Python code in a new interpreter, and get its return code, its output and its errors. Print what \
                       you want to see. It has no input.";
    tool("execute_python_code", description, settings, |surroundings, settings, PythonCode { code, timeout }| {
        let code = write_code(surroundings, settings, &code)
            .map_err(|error| ToolError::new(format!("cannot write the code to a file: {error}")))?;
        let options = ["-I", "-u", "-X", "utf8"].map(OsString::from);
        let python = surroundings.find(&settings.programs.python).into_os_string();
        let arguments = [python].into_iter().chain(options).chain([code.path.clone().into()]).collect();
        let program = Program { arguments, timeout: duration(&timeout), code: Some(code) };
        Ok((program, Deadline { what: "code", timeout }))
    })
}

/// Writes code to a file in a private folder. That of a sandbox is in the folder that was there when its tools were made.
fn write_code(surroundings: &Surroundings, settings: &Settings, code: &str) -> io::Result<CodeFile> {
    #[cfg(target_os = "linux")]
    if let Some(confinement) = &settings.confinement {
        let none = || io::Error::new(io::ErrorKind::NotFound, "there was no folder for temporary files");
        return confinement.temporary.as_ref().ok_or_else(none)?.write(code);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = settings;
    Temporary::open(&surroundings.temporary)?.write(code)
}

/// The timeout of a call, for its text.
struct Deadline {
    what: &'static str,
    /// As the model wrote it.
    timeout: Number,
}

/// Any number, of which the largest is longer than a program can run.
fn duration(seconds: &Number) -> Duration {
    let seconds = seconds.as_f64().unwrap_or(f64::MAX).max(0.0);
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

/// The program of a call, or the reason why there is none.
type Prepared = Result<(Program, Deadline), ToolError>;

/// Makes a tool that runs a program.
fn tool<P: JsonSchema + DeserializeOwned + Send + 'static>(
    name: &str,
    description: &str,
    settings: Arc<Settings>,
    program: fn(&Surroundings, &Settings, P) -> Prepared,
) -> NativeTool {
    let function = move |_: ToolContext, surroundings: Surroundings, parameters: P| {
        let settings = settings.clone();
        let begin = async move {
            let (program, deadline) = program(&surroundings, &settings, parameters)?;
            Ok::<_, ToolError>(responses(run::start(surroundings, settings, program), deadline))
        };
        stream::once(begin).try_flatten()
    };
    NativeTool::prepared_streaming(name, description, Surroundings::current, function)
        .with_kind(ToolKind::Execute)
        .with_permission(Permission::ByKind)
}

/// The responses of a run: its output as progress, then its result.
fn responses(
    events: Receiver<Event>,
    deadline: Deadline,
) -> impl Stream<Item = Result<ToolResponse, ToolError>> + Send + 'static {
    stream::unfold(Some((events, deadline)), async |running| {
        let (mut events, deadline) = running?;
        match events.recv().await? {
            Event::Output(number, text) => Some((Ok(progress(number, text)), Some((events, deadline)))),
            Event::End(outcome) => Some((result(outcome, &deadline), None)),
        }
    })
}

/// New output, as a notice for people.
fn progress(number: usize, text: String) -> ToolResponse {
    ToolResponse {
        mode: ChunkMode::Progress,
        stream: true,
        is_last: false,
        metadata: Some(json!({"stream": OUTPUTS[number]})),
        ..ToolResponse::of_text(text)
    }
}

/// The result of a program. Its output can imitate the elements of the text, so the metadata has the facts.
fn result(outcome: Outcome, deadline: &Deadline) -> Result<ToolResponse, ToolError> {
    let Outcome { report, has_timed_out, outputs: [output, errors] } = outcome;
    let code = match report {
        _ if has_timed_out => -1,
        Report::Ended(code) => code,
        Report::Failed(reason) => return Err(ToolError::new(format!("the program could not be run: {reason}"))),
    };
    let mut text = String::with_capacity(output.len() + errors.len() + 256);
    let has_errors = errors.len() > 0;
    // Writing to a string does not fail.
    let _ = write!(text, "<returncode>{code}</returncode><stdout>");
    let output_omitted = output.append_to(&mut text);
    text.push_str("</stdout><stderr>");
    let errors_omitted = errors.append_to(&mut text);
    if has_timed_out {
        let Deadline { what, timeout } = deadline;
        let line_break = if has_errors { "\n" } else { "" };
        let _ =
            write!(text, "{line_break}TimeoutError: The {what} execution exceeded the timeout of {timeout} seconds.");
    }
    text.push_str("</stderr>");
    let metadata = json!({
        "returncode": code,
        "timed_out": has_timed_out,
        "omitted_bytes": {OUTPUTS[0]: output_omitted, OUTPUTS[1]: errors_omitted},
    });
    Ok(ToolResponse { metadata: Some(metadata), ..ToolResponse::of_text(text) }.ending_stream())
}
