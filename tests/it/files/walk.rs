//! The way that opens paths name by name, for kernels and sandboxes without `openat2`: the same tests, in a process that a filter
//! refuses the call.

use std::process::Command;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

use super::race::ATTEMPTS;

/// Refuses `openat2` to this process, then becomes another program: load the number of the call, compare, refuse or allow.
const FILTERED: &str = r#"
import ctypes, os, struct, sys

class Rules(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]

steps = [(0x20, 0, 0, 0), (0x15, 0, 1, 437), (0x06, 0, 0, 0x00050000 | int(sys.argv[1])), (0x06, 0, 0, 0x7FFF0000)]
code = b"".join(struct.pack("=HBBI", *step) for step in steps)
held = ctypes.create_string_buffer(code, len(code))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Rules(len(steps), ctypes.addressof(held))), 0, 0) == 0
os.execv(sys.argv[2], sys.argv[2:])
"#;

const TESTS: [&str; 9] = [
    "files::walk::openat2_is_refused",
    "files::escape::no_operation_leads_out_of_the_root",
    "files::escape::a_link_is_denied_with_its_reason",
    "files::escape::a_pipe_is_denied_at_once_and_a_folder_with_one_is_listed",
    "files::escape::a_mount_inside_of_the_root_is_not_entered",
    "files::escape::a_link_of_the_process_is_not_followed_even_if_it_is_in_the_root",
    "files::escape::a_renamed_root_stays_the_root",
    "files::race::no_swap_leads_out_of_the_root",
    "files::service::a_file_is_written_with_its_folders_and_replaced_in_one_step",
];

#[test]
#[ignore = "started by the test below in a process with a filter"]
fn openat2_is_refused() {
    let opened = openat2(CWD, ".", OFlags::RDONLY, Mode::empty(), ResolveFlags::BENEATH);

    assert!(matches!(opened, Err(Errno::NOSYS | Errno::PERM)), "{opened:?}");
}

#[test]
fn without_openat2_nothing_leads_out_of_the_root_either() {
    for refusal in [Errno::NOSYS, Errno::PERM] {
        let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
        let mut command = Command::new(python);
        command.args(["-c", FILTERED, &refusal.raw_os_error().to_string()]);
        command.arg(std::env::current_exe().expect("this program")).args(TESTS).args(["--exact", "--include-ignored"]);

        if std::env::var_os(ATTEMPTS).is_none() {
            command.env(ATTEMPTS, "1000");
        }

        let done = command.output().expect("another process");

        let output = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success(), "{refusal}: {output}{}", String::from_utf8_lossy(&done.stderr));
        assert!(output.contains(&format!("{} passed", TESTS.len())), "{output}");
    }
}
