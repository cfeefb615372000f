//! Another process that swaps files and folders with links out of the root while they are used.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use toolcrib::files::{Edit, FileService, TextRequest};

use super::{Place, never, service};

const PLACE: &str = "TOOLCRIB_TEST_SWAPS";

/// The number of attempts of each operation, if the variable is set.
pub(super) const ATTEMPTS: &str = "TOOLCRIB_SWAP_ATTEMPTS";

const SECRET: &str = "TOP-SECRET";

/// The program of the attacker: swaps until its parent ends it.
#[test]
#[ignore = "started by the tests below in a process of its own"]
fn swap_without_end() {
    let place = std::env::var_os(PLACE).expect("TOOLCRIB_TEST_SWAPS, which the tests below set to their folder");
    let root = Path::new(&place).join("root");
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(3600) && root.is_dir() {
        for _ in 0..1000 {
            for (one, other) in [("file", "file-link"), ("folder", "folder-link")] {
                let _ = renameat_with(CWD, root.join(one), CWD, root.join(other), RenameFlags::EXCHANGE);
            }
        }
    }
}

/// The process of the attacker, which ends with the test.
struct Attacker(Child);

impl Attacker {
    fn start(place: &Place) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["--exact", "files::race::swap_without_end", "--ignored", "--nocapture"]);
        command.env(PLACE, place.path("")).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().expect("another process"))
    }
}

impl Drop for Attacker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn prepare() -> Place {
    let place = Place::new();
    place.write("root/file", "inside");
    place.write("root/folder/file", "inside");
    place.write("outside/file", SECRET);
    place.write("outside/TOP-SECRET-name", "");
    symlink("../outside/file", place.path("root/file-link")).unwrap();
    symlink("../outside", place.path("root/folder-link")).unwrap();
    place
}

/// What a program does that checks the path first and opens it afterwards.
fn checked_then_opened(root: &Path, path: PathBuf) -> Option<String> {
    let real = fs::canonicalize(&path).ok()?;
    if real.starts_with(root) { fs::read_to_string(path).ok() } else { None }
}

fn attempts(usual: usize) -> usize {
    std::env::var(ATTEMPTS).ok().map_or(usual, |number| number.parse().expect("a number in TOOLCRIB_SWAP_ATTEMPTS"))
}

#[test]
fn the_attack_succeeds_against_a_check_before_the_open() {
    let place = prepare();
    let root = fs::canonicalize(place.path("root")).unwrap();
    let _attacker = Attacker::start(&place);
    let deadline = Instant::now() + Duration::from_secs(120);

    let escaped = loop {
        let read = ["file", "folder/file"].map(|name| checked_then_opened(&root, root.join(name)));
        if read.iter().flatten().any(|text| text == SECRET) {
            break true;
        }
        if Instant::now() > deadline {
            break false;
        }
    };

    assert!(escaped, "the attacker has no power, so the other tests prove nothing");
}

fn read(service: &FileService, path: &str) -> Option<String> {
    Some(service.read_text(path, &TextRequest::default(), 1000, &never()).ok()?.text)
}

type Attempt = fn(&FileService) -> Vec<String>;

/// The operations that race with the swaps, with the usual number of attempts; each returns what a model could read.
const OPERATIONS: [(&str, usize, Attempt); 9] = [
    ("read", 100_000, |service| {
        ["/workspace/file", "/workspace/folder/file"].iter().filter_map(|path| read(service, path)).collect()
    }),
    ("read binary", 100_000, |service| {
        let bytes = service.read_binary("/workspace/folder/file", &never());
        bytes.ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).into_iter().collect()
    }),
    ("grep", 20_000, |service| {
        let found = service.read_matching("/workspace/folder/file", ".", &never());
        found.ok().map(|found| format!("{found:?}")).into_iter().collect()
    }),
    ("list", 20_000, |service| {
        service.list("/workspace/folder", true, &never()).ok().map(|found| format!("{found:?}")).into_iter().collect()
    }),
    ("search", 10_000, |service| {
        service.search("/workspace/", "*", &[], &never()).map_or_else(|_| vec![], |found| found.0)
    }),
    ("stat", 100_000, |service| {
        let facts = ["/workspace/file", "/workspace/folder/file"].map(|path| service.facts(path));
        let sizes = facts.into_iter().flatten().filter(|facts| facts.size == SECRET.len() as u64);
        sizes.map(|_| SECRET.to_owned()).collect()
    }),
    ("write", 10_000, |service| {
        for path in ["/workspace/file", "/workspace/folder/file", "/workspace/folder/deep/file"] {
            let _ = service.write(path, b"inside");
        }
        vec![]
    }),
    ("edit", 10_000, |service| {
        for (old, new) in [("inside", "INSIDE"), ("INSIDE", "inside"), (SECRET, "edited")] {
            let edit = [Edit { old_text: old.to_owned(), new_text: new.to_owned() }];
            let _ = service.edit("/workspace/folder/file", &edit, &never());
        }
        vec![]
    }),
    ("delete", 10_000, |service| {
        let _ = service.delete("/workspace/folder/file");
        let _ = service.write("/workspace/folder/file", b"inside");
        vec![]
    }),
];

#[test]
fn no_swap_leads_out_of_the_root() {
    for (name, usual, attempt) in OPERATIONS {
        let place = prepare();
        let service = service(&place.path("root"));
        let attacker = Attacker::start(&place);
        let (attempts, mut escapes) = (attempts(usual), 0);

        for _ in 0..attempts {
            escapes += usize::from(attempt(&service).iter().any(|text| text.contains(SECRET)));
        }
        drop(attacker);

        println!("{name}: {escapes} escapes of {attempts} attempts");
        assert_eq!(escapes, 0, "{name}");
        assert_eq!(place.read("outside/file"), SECRET, "{name}");
        assert_eq!(fs::read_dir(place.path("outside")).unwrap().count(), 2, "{name}");
    }
}
