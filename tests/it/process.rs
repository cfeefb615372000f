//! Programs: results, output, the end of all processes, environment, limits, sandbox.

#![allow(clippy::unwrap_used)]

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use serde_json::{Value, json};
use toolcrib::Error;
use toolcrib::call::{ChunkMode, ToolResponse};
use toolcrib::native::{NativeTool, Run, ToolContext};
use toolcrib::policy::{Permission, ToolKind};
use toolcrib::process::{ProgramLimits, Programs, Sandbox};

/// The longest time that a condition may take to become true.
const HANG: Duration = Duration::from_secs(30);

fn tools(programs: Programs) -> [NativeTool; 2] {
    programs.tools().unwrap().try_into().unwrap()
}

fn shell(programs: Programs) -> NativeTool {
    let [shell, _] = tools(programs);
    shell
}

fn begin(tool: &NativeTool, arguments: Value) -> Run {
    tool.run(ToolContext::of(tool.name()), arguments)
}

async fn responses(tool: &NativeTool, arguments: Value) -> Vec<ToolResponse> {
    let items: Vec<_> = begin(tool, arguments).collect().await;
    items.into_iter().map(|item| item.unwrap()).collect()
}

async fn result(tool: &NativeTool, arguments: Value) -> ToolResponse {
    responses(tool, arguments).await.pop().unwrap()
}

async fn failure(tool: &NativeTool, arguments: Value) -> String {
    let mut items: Vec<_> = begin(tool, arguments).collect().await;
    items.pop().unwrap().unwrap_err().reply(tool.name()).text()
}

fn text(code: i32, output: &str, errors: &str) -> String {
    format!("<returncode>{code}</returncode><stdout>{output}</stdout><stderr>{errors}</stderr>")
}

/// A variable by which the processes of one test are found.
struct Mark(String);

impl Mark {
    fn new() -> Self {
        let (first, second) = (getrandom::u64().unwrap(), getrandom::u64().unwrap());
        Self(format!("{first:016x}{second:016x}"))
    }

    fn programs(&self) -> Programs {
        Programs { env: vec![("TEST_MARK".into(), OsString::from(&self.0))], ..Programs::default() }
    }

    /// The processes that have the mark, the supervisor included and zombies excluded, by their commands.
    fn processes(&self) -> Vec<String> {
        let entry = format!("TEST_MARK={}", self.0);
        let is_marked = |folder: &PathBuf| {
            let environment = fs::read(folder.join("environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == entry.as_bytes())
        };
        let folders = fs::read_dir("/proc").unwrap().filter_map(|process| Some(process.ok()?.path()));
        let commands = folders.filter(is_marked).filter_map(|folder| fs::read(folder.join("cmdline")).ok());
        commands.map(|command| String::from_utf8_lossy(&command).replace('\0', " ")).collect()
    }

    /// The processes without the supervisor, which exits after its report.
    fn programs_left(&self) -> Vec<String> {
        self.processes().into_iter().filter(|command| !command.starts_with("toolcrib-supervisor ")).collect()
    }

    /// Waits until so many processes sleep.
    async fn sleeping(&self, count: usize) {
        self.until(|processes| processes.iter().filter(|command| *command == "sleep 98 ").count() == count).await;
    }

    /// Waits until all processes have ended.
    async fn gone(&self) {
        self.until(<[String]>::is_empty).await;
    }

    async fn until(&self, condition: impl Fn(&[String]) -> bool) {
        let began = Instant::now();
        while !condition(&self.processes()) {
            assert!(began.elapsed() < HANG, "{:?}", self.processes());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("toolcrib-test-{name}-{}", Mark::new().0));
    fs::create_dir(&folder).unwrap();
    folder
}

#[tokio::test]
async fn a_result_has_the_return_code_and_both_outputs() {
    let tool = shell(Programs::default());

    let response = result(&tool, json!({"command": "echo out; echo err >&2; exit 3"})).await;

    assert_eq!(response.text(), text(3, "out\n", "err\n"));
    let omitted = json!({"stdout": 0, "stderr": 0});
    assert_eq!(response.metadata, Some(json!({"returncode": 3, "timed_out": false, "omitted_bytes": omitted})));
    assert!(response.is_ok() && response.is_last && response.mode == ChunkMode::Result);
}

#[tokio::test]
async fn a_signal_is_a_negative_return_code() {
    let response = result(&shell(Programs::default()), json!({"command": "kill -9 $$"})).await;

    assert_eq!(response.text(), text(-9, "", ""));
}

#[tokio::test]
async fn a_command_has_no_input_and_no_other_descriptors() {
    let tool = shell(Programs::default());

    let response =
        result(&tool, json!({"command": "cat; readlink /proc/self/fd/0; ls /proc/$$/fd | tr '\\n' ' '"})).await;

    assert_eq!(response.text(), text(0, "/dev/null\n0 1 2 ", ""));
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_killed_and_its_output_kept() {
    for (command, timeout, output, errors) in [
        ("echo out; echo err >&2; sleep 60", json!(0.5), "out\n", "err\n\n"),
        ("printf 'a\nb'; trap '' TERM INT HUP; sleep 60", json!(1), "a\nb", ""),
    ] {
        let began = Instant::now();
        let response = result(&shell(Programs::default()), json!({"command": command, "timeout": timeout})).await;

        let line = format!("TimeoutError: The command execution exceeded the timeout of {timeout} seconds.");
        assert_eq!(response.text(), text(-1, output, &format!("{errors}{line}")));
        assert_eq!(response.metadata.unwrap()["timed_out"], true);
        assert!(began.elapsed() < HANG);
    }
}

/// Commands that start processes in every way in which they might survive, and how many of them sleep then.
const TREES: [(&str, usize); 8] = [
    ("(sleep 98 & sleep 98) & sleep 98", 3),
    ("sleep 98 & echo started; sleep 98", 2),
    ("setsid sleep 98 & sleep 98", 2),
    ("setsid setsid sh -c 'sleep 98 & exec setsid sleep 98' & sleep 98", 3),
    ("(setsid sh -c '(sleep 98 &) ; sleep 98' &); nohup sleep 98 & sleep 98", 4),
    ("trap '' TERM INT HUP QUIT; sleep 98 & sleep 98", 2),
    ("sleep 98 & sleep 0.1; kill -STOP $!; setsid sleep 98 & sleep 0.1; kill -STOP $!; sleep 98", 3),
    ("sh -c 'kill -STOP $$' & sleep 98", 1),
];

#[tokio::test(flavor = "multi_thread")]
async fn no_process_survives_the_timeout() {
    let runs = TREES.map(|(command, count)| async move {
        let mark = Mark::new();
        let tool = shell(mark.programs());

        let (response, ()) =
            tokio::join!(result(&tool, json!({"command": command, "timeout": 5})), mark.sleeping(count));

        assert!(response.text().starts_with("<returncode>-1</returncode>"), "{command}: {}", response.text());
        assert_eq!(mark.programs_left(), Vec::<String>::new(), "{command}");
        mark.gone().await;
    });
    futures_util::future::join_all(runs).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_process_survives_a_dropped_call() {
    let runs = TREES.map(|(command, count)| async move {
        let mark = Mark::new();
        let tool = shell(mark.programs());

        let mut run = begin(&tool, json!({"command": command}));
        tokio::select! {
            () = async { while run.next().await.is_some() {} } => panic!("it has ended"),
            () = mark.sleeping(count) => {}
        }
        drop(run);

        mark.gone().await;
    });
    futures_util::future::join_all(runs).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_process_survives_its_shell() {
    let runs = TREES.map(|(command, _)| async move {
        let mark = Mark::new();
        let tool = shell(mark.programs());
        let command = format!("{{ {command}; }} & sleep 0.5; echo done");

        let response = result(&tool, json!({"command": command})).await;

        assert!(response.text().starts_with("<returncode>0</returncode>") && response.text().contains("done\n"));
        assert_eq!(mark.programs_left(), Vec::<String>::new(), "{command}");
        mark.gone().await;
    });
    futures_util::future::join_all(runs).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_supervisor_goes_on_and_a_killed_one_is_reported() {
    let mark = Mark::new();
    let tool = shell(mark.programs());

    let stopped = result(&tool, json!({"command": "kill -STOP $PPID; sleep 98", "timeout": 0.5})).await;
    let killed = failure(&tool, json!({"command": "kill -KILL $PPID; while :; do :; done"})).await;

    assert!(stopped.text().starts_with("<returncode>-1</returncode>"), "{}", stopped.text());
    assert_eq!(killed, "Error: the program could not be run: its supervisor was killed");
    mark.gone().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_that_fork_faster_than_they_are_killed_are_killed_in_the_end() {
    let mark = Mark::new();
    let tool = shell(mark.programs());
    // A chain in which every process lives only until it has forked the next one, and 50 processes that fork.
    let chain = "import os\nif os.fork() == 0:\n    os.setsid()\n    while os.fork() == 0: pass\n    os._exit(0)";
    let command =
        format!("python3 -c '{chain}'; for i in $(seq 50); do (while :; do sleep 0.01; done) & done; sleep 98");

    let began = Instant::now();
    let response = result(&tool, json!({"command": command, "timeout": 1})).await;

    assert!(response.text().starts_with("<returncode>-1</returncode>"));
    assert!(began.elapsed() < HANG);
    mark.gone().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn long_output_is_cut_in_the_middle() {
    let tool = shell(Programs::default());

    let response =
        result(&tool, json!({"command": "printf first; head -c 300000000 /dev/zero | tr '\\0' x; printf last"})).await;

    let (text, omitted) = (response.text(), response.metadata.unwrap()["omitted_bytes"]["stdout"].as_u64().unwrap());
    assert!(text.starts_with("<returncode>0</returncode><stdout>firstxxx"));
    assert!(text.contains(&format!("x\n[{omitted} bytes omitted]\nx")));
    assert!(text.ends_with("xxxlast</stdout><stderr></stderr>"));
    assert_eq!(omitted, 300_000_009 - 256 * 1024);
    assert!(text.len() < 1024 * 1024);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endless_output_ends_with_the_timeout() {
    let tool = shell(Programs::default());

    let all = responses(&tool, json!({"command": "yes & yes >&2", "timeout": 1})).await;

    let last = all.last().unwrap().text();
    assert!(last.len() < 1024 * 1024 && last.ends_with("exceeded the timeout of 1 seconds.</stderr>"));
    assert!(all.len() < 20, "{} responses", all.len());
    assert!(all.iter().all(|response| response.text().len() < 1024 * 1024));
}

#[tokio::test]
async fn output_that_is_not_utf8_is_replaced() {
    let tool = shell(Programs::default());

    let response = result(&tool, json!({"command": r"printf 'a\377b\303'; printf '\303\251\n' >&2"})).await;

    assert_eq!(response.text(), text(0, "a\u{fffd}b\u{fffd}", "é\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn output_is_streamed_while_the_program_runs() {
    let tool = shell(Programs::default());
    let command = r"printf 'one\303'; echo two >&2; sleep 0.5; printf '\251\n'; sleep 0.5; echo end";

    let all = responses(&tool, json!({"command": command})).await;

    let (last, news) = all.split_last().unwrap();
    assert!(news.iter().all(|it| it.mode == ChunkMode::Progress && it.stream && !it.is_last));
    let streamed = |name: &str| -> String {
        news.iter().filter(|it| it.metadata.as_ref().unwrap()["stream"] == name).map(ToolResponse::text).collect()
    };
    assert_eq!((streamed("stdout"), streamed("stderr")), ("oneé\n".to_owned(), "two\n".to_owned()));
    assert_eq!(news[0].text(), "one");
    assert_eq!(last.text(), text(0, "oneé\nend\n", "two\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_that_does_not_read_delays_neither_the_program_nor_its_timeout() {
    let mark = Mark::new();
    let tool = shell(mark.programs());

    let mut run = begin(&tool, json!({"command": "yes", "timeout": 1}));
    let first = run.next().await.unwrap().unwrap();
    mark.gone().await;
    let rest: Vec<_> = run.collect().await;

    assert_eq!(first.mode, ChunkMode::Progress);
    assert!(rest.last().unwrap().as_ref().unwrap().text().contains("exceeded the timeout"));
}

#[tokio::test]
async fn python_code_runs_isolated_in_a_file_that_is_removed() {
    let folder = folder("python");
    fs::write(folder.join("random.py"), "print('planted')").unwrap();
    let [_, python] = tools(Programs { cwd: Some(folder.clone()), ..Programs::default() });
    let code = "import os, random, sys\nprint(__file__, os.getcwd())\nprint('é', file=sys.stderr)\n1/0";

    let response = result(&python, json!({"code": code})).await;

    let text = response.text();
    let file = text.split_once("<stdout>").unwrap().1.split_once(' ').unwrap().0;
    assert!(text.contains(&format!("{}\n", fs::canonicalize(&folder).unwrap().display())) && !text.contains("planted"));
    assert!(
        text.contains(&format!(
            "é\nTraceback (most recent call last):\n  File \"{file}\", line 4, in <module>\n    1/0"
        ))
    );
    assert!(text.starts_with("<returncode>1</returncode>"));
    assert!(file.ends_with("/code.py") && !Path::new(file).parent().unwrap().exists());
    fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn python_code_that_takes_too_long_is_killed() {
    let [_, python] = tools(Programs::default());
    let code = "import time\nprint('begun')\ntime.sleep(60)";

    let response = result(&python, json!({"code": code, "timeout": 2})).await;

    let line = "TimeoutError: The code execution exceeded the timeout of 2 seconds.";
    assert_eq!(response.text(), text(-1, "begun\n", line));
}

#[tokio::test]
async fn a_program_sees_the_variables_of_the_developer_and_no_others() {
    let tool = shell(Programs { env: vec![("GIVEN".into(), "yes".into())], ..Programs::default() });

    let response = result(&tool, json!({"command": "env"})).await;

    let text = response.text();
    let names: Vec<&str> = text.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    // Cargo sets many variables for this test, and the shell sets PWD.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some() && !text.contains("CARGO"));
    assert!(names.contains(&"GIVEN") && text.contains("PATH="));
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_an_error() {
    let [shell, python] = tools(Programs { python: "/nonexistent/python".into(), ..Programs::default() });

    let missing = failure(&python, json!({"code": "1"})).await;
    let long = failure(&shell, json!({"command": "x".repeat(200_000)})).await;
    let nul = failure(&shell, json!({"command": "echo \0"})).await;

    assert_eq!(missing, "Error: the program could not be run: exec: No such file or directory (os error 2)");
    let advice = "write the text to a file in several calls";
    assert!(long.contains("200000 bytes") && long.contains("131071") && long.contains(advice), "{long}");
    assert!(nul.contains("nul byte"), "{nul}");
}

#[tokio::test]
async fn limits_hold() {
    let limits = ProgramLimits {
        cpu_seconds: Some(1),
        memory_bytes: Some(512 << 20),
        file_bytes: Some(1000),
        processes: Some(100),
        output_bytes: 100,
    };
    let [shell, python] = tools(Programs { limits, ..Programs::default() });

    let values = result(
        &shell,
        json!({"command": "ulimit -t; ulimit -v; ulimit -f; cat /proc/self/limits | grep -c 'processes *100 '"}),
    )
    .await;
    let cpu = result(&shell, json!({"command": "while :; do :; done"})).await;
    let memory = result(&python, json!({"code": "x = bytearray(1 << 30)"})).await;
    let long = result(&shell, json!({"command": "seq 1000"})).await;
    let file = folder("limits");
    let size = result(&shell, json!({"command": format!("head -c 2000 /dev/zero > {}/file", file.display())})).await;

    assert_eq!(values.text(), text(0, &format!("1\n{}\n1\n1\n", 512 << 10), ""));
    assert_eq!(cpu.metadata.unwrap()["returncode"], -24, "SIGXCPU");
    assert!(memory.text().ends_with("MemoryError\n</stderr>"), "{}", memory.text());
    assert!(
        long.text().contains("1\n2\n3\n")
            && long.text().contains(" bytes omitted]\n")
            && long.text().contains("999\n1000\n")
    );
    assert_ne!(size.metadata.unwrap()["returncode"], 0);
    assert!(fs::metadata(file.join("file")).unwrap().len() <= 1000);
    fs::remove_dir_all(file).unwrap();
}

#[test]
fn invalid_settings_are_refused() {
    let reason = |programs: Programs| match programs.tools() {
        Err(Error::InvalidProgramOption { option, reason }) => format!("{option}: {reason}"),
        other => panic!("{other:?}"),
    };
    let env = |name: &str| Programs { env: vec![(name.into(), "1".into())], ..Programs::default() };
    let in_folder = |folder: &str| Programs { cwd: Some(folder.into()), ..Programs::default() };
    let reading = |path: &str| Programs {
        sandbox: Some(Sandbox { read: vec![path.into()], ..Sandbox::default() }),
        ..Programs::default()
    };

    assert_eq!(reason(env("A=B")), "env: invalid variable \"A=B\"");
    for guard in ["AGENTSCOPE_DANGEROUS_TEXT_IO", "TOOLCRIB_DANGEROUS_TEXT_IO"] {
        assert_eq!(reason(env(guard)), format!("env: variable `{guard}` is never passed to programs"));
    }
    assert_eq!(reason(in_folder("/dev/null")), "cwd: /dev/null is not a folder");
    assert!(reason(in_folder("/nonexistent")).starts_with("cwd: /nonexistent: No such file"));
    assert!(reason(reading("/nonexistent")).starts_with("sandbox: /nonexistent: No such file"));
}

#[test]
fn the_tools_show_the_model_only_the_command_and_the_timeout() {
    for (tool, parameter) in tools(Programs::default()).iter().zip(["command", "code"]) {
        let parameters = tool.schema().value()["function"]["parameters"].clone();

        let names: Vec<&String> = parameters["properties"].as_object().unwrap().keys().collect();
        assert_eq!(names, [parameter, "timeout"]);
        assert_eq!(
            (&parameters["required"], &parameters["properties"]["timeout"]["default"]),
            (&json!([parameter]), &json!(300))
        );
        assert_eq!((tool.kind(), tool.permission()), (ToolKind::Execute, Permission::ByKind));
    }
}

/// A folder with a writable and a readable file, and the tools in a sandbox with access to them.
fn sandboxed(name: &str, network: bool) -> Option<(PathBuf, [NativeTool; 2])> {
    let folder = fs::canonicalize(folder(name)).unwrap();
    for part in ["open", "closed"] {
        fs::create_dir(folder.join(part)).unwrap();
        fs::write(folder.join(part).join("file"), part).unwrap();
    }
    fs::write(folder.join("readable"), "readable").unwrap();
    // The interpreter may be in the home of the user.
    let paths = "import sys; print(sys.executable, sys.prefix, sys.base_prefix, sep='\\n')";
    let python = Command::new("python3").args(["-I", "-c", paths]).output().unwrap();
    let mut read: Vec<PathBuf> = String::from_utf8(python.stdout).unwrap().lines().map(PathBuf::from).collect();
    let python = read[0].clone();
    read.push(folder.join("readable"));
    let sandbox = Sandbox { read, write: vec![folder.join("open")], network };
    match (Programs { cwd: Some(folder.clone()), python, sandbox: Some(sandbox), ..Programs::default() }).tools() {
        Ok(tools) => Some((folder, tools.try_into().unwrap())),
        Err(error) => {
            // Fails closed: there is no tool to call.
            assert!(matches!(error, Error::NoSandbox { .. }), "{error}");
            eprintln!("left out: this system has no sandbox ({error})");
            None
        }
    }
}

#[tokio::test]
async fn a_sandbox_gives_access_to_the_listed_files_only() {
    let Some((folder, [shell, python])) = sandboxed("sandbox", false) else { return };
    let command = "cat readable open/file; echo new > open/new && cat open/new
        for refused in 'cat closed/file' 'ls .' 'cat /etc/shadow' 'touch x' 'echo > readable' 'truncate -s 0 closed/file' \\
            'rm closed/file' 'ln open/file closed/link' 'mv open/file x' 'cat /proc/1/environ' 'kill -0 1' 'mknod open/device c 1 3'; do
            sh -c \"$refused\" 2> /dev/null && echo \"permitted: $refused\"
        done";

    let files = result(&shell, json!({"command": command})).await;
    let code = result(&python, json!({"code": "open('open/python', 'w').write('1'); open('closed/file')"})).await;

    assert!(files.text().contains("<stdout>readableopennew\n"), "{}", files.text());
    assert!(!files.text().contains("permitted"), "{}", files.text());
    assert!(code.text().contains("PermissionError") && folder.join("open/python").exists(), "{}", code.text());
    assert_eq!(fs::read_to_string(folder.join("closed/file")).unwrap(), "closed");
    fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn a_sandbox_without_a_network_refuses_every_socket() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let code = "import socket\nfor family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, socket.AF_NETLINK):\n    for kind in \
         (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW):\n        try: socket.socket(family, kind)\n        except \
         PermissionError: continue\n        print('permitted', family, kind)\nsocket.socketpair()\nprint('end')";
    let connect = format!("import socket\nsocket.create_connection(('127.0.0.1', {port})); print('connected')");
    let Some((closed, [shell, python])) = sandboxed("closed", false) else { return };
    let Some((open, [_, connected])) = sandboxed("open", true) else { return };

    let sockets = result(&python, json!({"code": code})).await;
    let refused = result(&python, json!({"code": connect})).await;
    let bash = result(&shell, json!({"command": format!("bash -c 'echo > /dev/tcp/127.0.0.1/{port}'")})).await;
    let permitted = result(&connected, json!({"code": connect})).await;

    assert_eq!(sockets.text(), text(0, "end\n", ""));
    assert!(refused.text().contains("PermissionError"), "{}", refused.text());
    assert_ne!(bash.metadata.unwrap()["returncode"], 0);
    assert_eq!(permitted.text(), text(0, "connected\n", ""));
    for folder in [closed, open] {
        fs::remove_dir_all(folder).unwrap();
    }
}

#[tokio::test]
async fn a_sandboxed_program_cannot_signal_its_supervisor() {
    let Some((folder, [shell, _])) = sandboxed("signal", false) else { return };

    let response = result(&shell, json!({"command": "kill -KILL $PPID || echo refused"})).await;

    assert!(response.text().contains("<stdout>refused\n"), "{}", response.text());
    fs::remove_dir_all(folder).unwrap();
}
