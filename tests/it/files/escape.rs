//! Paths and files that try to lead out of the root, each with every operation.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use toolcrib::files::{Edit, FileError, FilePolicy, FileService, TextRequest};

use super::{Place, never, service, service_with};

const SECRET: &str = "TOP-SECRET";

/// The longest time that an operation may take; a pipe would make it wait without end.
const LIMIT: Duration = Duration::from_secs(1);

type Operation = fn(&FileService, &str) -> Result<String, FileError>;

/// Every operation; the result is all that a model could read of it.
const OPERATIONS: [(&str, Operation); 12] = [
    ("read", |service, path| Ok(service.read_text(path, &TextRequest::default(), 1 << 20, &never())?.text)),
    ("read part", |service, path| {
        let request = TextRequest { start_line: 1, read_lines: Some(1), ..TextRequest::default() };
        Ok(service.read_text(path, &request, 100, &never())?.text)
    }),
    ("read binary", |service, path| Ok(String::from_utf8_lossy(&service.read_binary(path, &never())?).into_owned())),
    ("grep", |service, path| Ok(format!("{:?}", service.read_matching(path, ".", &never())?))),
    ("list", |service, path| Ok(format!("{:?}", service.list(path, false, &never())?))),
    ("list with sizes", |service, path| Ok(format!("{:?}", service.list(path, true, &never())?))),
    ("glob", |service, path| Ok(format!("{:?}", service.search(path, "*", &[], &never())?))),
    ("stat", |service, path| Ok(format!("{:?}", service.facts(path)?))),
    ("write", |service, path| service.write(path, b"overwritten").map(|()| String::new())),
    ("write beneath", |service, path| service.write(&format!("{path}/new/file"), b"created").map(|()| String::new())),
    ("edit", |service, path| {
        let edit = Edit { old_text: SECRET[..3].to_owned(), new_text: "edited".to_owned() };
        service.edit(path, &[edit], &never()).map(|size| size.to_string())
    }),
    ("delete", |service, path| service.delete(path).map(|()| String::new())),
];

/// A path and what is prepared for it in the root, which is `root`; the secret is in `outside`.
type Vector = (&'static str, String, fn(&Path));

fn link(root: &Path, name: &str, target: impl AsRef<Path>) {
    symlink(target, root.join(name)).unwrap();
}

fn node(root: &Path, name: &str, kind: FileType) {
    mknodat(CWD, root.join(name), kind, Mode::from_raw_mode(0o600), 0).unwrap();
}

fn nothing(_: &Path) {}

#[allow(clippy::too_many_lines, reason = "one table")]
fn vectors() -> Vec<Vector> {
    let path = |path: &str| path.to_owned();
    vec![
        ("parent", path("/workspace/../outside/secret"), nothing),
        ("parent in the middle", path("/workspace/a/../../outside/secret"), |root| {
            fs::create_dir(root.join("a")).unwrap();
        }),
        ("parent at the end", path("/workspace/.."), nothing),
        ("parent of the roots", path("/../outside/secret"), nothing),
        ("dots in a name", path("/workspace/a..b"), nothing),
        ("encoded parent", path("/workspace/%2e%2e/outside/secret"), nothing),
        ("encoded slash", path("/workspace/..%2foutside"), nothing),
        ("backslashes", path("/workspace/..\\outside\\secret"), nothing),
        ("relative", path("outside/secret"), nothing),
        ("relative to here", path("./secret"), nothing),
        ("home", path("~/secret"), nothing),
        ("home inside", path("/workspace/~/secret"), nothing),
        ("absolute", path("/etc/passwd"), nothing),
        ("roots", path("/"), nothing),
        ("double slash", path("/workspace//etc/passwd"), nothing),
        ("double slash first", path("//workspace/secret"), nothing),
        ("sibling with the same beginning", path("/workspace2/secret"), nothing),
        ("dot", path("/workspace/./outside"), nothing),
        ("dot alone", path("."), nothing),
        ("empty", path(""), nothing),
        ("space", path(" "), nothing),
        ("the root itself", path("/workspace/"), nothing),
        ("process root", path("/proc/self/root/etc/passwd"), nothing),
        ("process descriptor", path("/proc/self/fd/0"), nothing),
        ("endless device", path("/dev/zero"), nothing),
        ("standard input", path("/dev/stdin"), nothing),
        ("zero byte", path("/workspace/a\0/../../outside/secret"), nothing),
        ("line break", path("/workspace/a\nb"), nothing),
        ("wildcard", path("/workspace/*"), nothing),
        ("question mark", path("/workspace/secre?"), nothing),
        ("name of 256 bytes", format!("/workspace/{}", "n".repeat(256)), nothing),
        ("path of 5000 bytes", format!("/workspace/{}", "n/".repeat(2500)), nothing),
        ("1000 names", format!("/workspace{}", "/n".repeat(1000)), nothing),
        ("link to a file", path("/workspace/link"), |root| link(root, "link", "../outside/secret")),
        ("absolute link", path("/workspace/link"), |root| {
            link(root, "link", root.parent().unwrap().join("outside/secret"));
        }),
        ("link to a folder", path("/workspace/link"), |root| link(root, "link", "../outside")),
        ("beneath a link to a folder", path("/workspace/link/secret"), |root| link(root, "link", "../outside")),
        ("chain of links", path("/workspace/one/secret"), |root| {
            link(root, "one", "two");
            link(root, "two", "three");
            link(root, "three", "../outside");
        }),
        ("loop of links", path("/workspace/one"), |root| {
            link(root, "one", "two");
            link(root, "two", "one");
        }),
        ("dangling link", path("/workspace/link"), |root| link(root, "link", "../outside/new")),
        ("dangling link to a folder", path("/workspace/link/new"), |root| link(root, "link", "../outside/new")),
        ("link to the root of the system", path("/workspace/link/etc/passwd"), |root| link(root, "link", "/")),
        ("link to the process root", path("/workspace/link/etc/passwd"), |root| link(root, "link", "/proc/self/root")),
        ("link to a descriptor", path("/workspace/link"), |root| link(root, "link", "/proc/self/fd/0")),
        ("link to an endless device", path("/workspace/link"), |root| link(root, "link", "/dev/zero")),
        ("link inside of the root", path("/workspace/link"), |root| {
            fs::create_dir(root.join("real")).unwrap();
            link(root, "link", "real");
        }),
        ("link at a temporary name", path("/workspace/plain"), |root| {
            // The temporary name of `plain`.
            link(root, ".toolcrib-a116c9ed46d62077.tmp", "../outside/secret");
            fs::write(root.join("plain"), SECRET.replace("TOP", "NO")).unwrap();
        }),
        ("pipe", path("/workspace/pipe"), |root| node(root, "pipe", FileType::Fifo)),
        ("beneath a pipe", path("/workspace/pipe/x"), |root| node(root, "pipe", FileType::Fifo)),
        ("folder with a pipe", path("/workspace/folder"), |root| {
            fs::create_dir(root.join("folder")).unwrap();
            node(&root.join("folder"), "pipe", FileType::Fifo);
        }),
        ("socket", path("/workspace/socket"), |root| drop(UnixListener::bind(root.join("socket")).unwrap())),
        ("name that is not UTF-8", path("/workspace/folder"), |root| {
            fs::create_dir(root.join("folder")).unwrap();
            fs::write(root.join("folder").join(OsStr::from_bytes(b"\xff\xfe")), "odd").unwrap();
        }),
        ("composed twin", path("/workspace/\u{e9}"), |root| fs::write(root.join("e\u{301}"), "twin").unwrap()),
        ("decomposed twin", path("/workspace/e\u{301}"), |root| fs::write(root.join("\u{e9}"), "twin").unwrap()),
        ("twin of another case", path("/workspace/SECRET"), |root| fs::write(root.join("secret"), "twin").unwrap()),
        ("space at the end", path("/workspace/secret "), |root| fs::write(root.join("secret"), "twin").unwrap()),
        ("dot at the end", path("/workspace/secret."), |root| fs::write(root.join("secret"), "twin").unwrap()),
        ("reversed text", path("/workspace/\u{202e}terces"), nothing),
        ("file as a folder", path("/workspace/file/../../outside"), |root| fs::write(root.join("file"), "x").unwrap()),
        ("beneath a file", path("/workspace/file/secret"), |root| fs::write(root.join("file"), "x").unwrap()),
        ("hard link", path("/workspace/hard"), |root| {
            fs::hard_link(root.parent().unwrap().join("outside/shared"), root.join("hard")).unwrap();
        }),
        ("renamed root", path("/workspace/../outside/secret"), |root| {
            fs::rename(root, root.with_extension("moved")).unwrap();
        }),
        ("root replaced by a link", path("/workspace/secret"), |root| {
            fs::rename(root, root.with_extension("moved")).unwrap();
            symlink(root.parent().unwrap().join("outside"), root).unwrap();
        }),
        ("removed root", path("/workspace/secret"), |root| fs::remove_dir_all(root).unwrap()),
    ]
}

fn prepare() -> Place {
    let place = Place::new();
    fs::create_dir(place.path("root")).unwrap();
    place.write("outside/secret", SECRET);
    place.write("outside/folder/secret", SECRET);
    place.write("outside/shared", "shared");
    place.write("root2/secret", SECRET);
    place
}

/// Everything outside of the root: names, contents, inodes.
fn snapshot(place: &Place) -> BTreeMap<String, (u64, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![place.path("outside"), place.path("root2")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let content = if metadata.is_dir() { Vec::new() } else { fs::read(&path).unwrap() };
            found.insert(path.display().to_string(), (metadata.ino(), content));
            if metadata.is_dir() {
                folders.push(path);
            }
        }
    }
    found
}

#[test]
fn no_operation_leads_out_of_the_root() {
    let vectors = vectors();
    assert!(vectors.len() >= 40 && OPERATIONS.len() >= 11);

    for (vector, path, set_up) in &vectors {
        for (name, operation) in OPERATIONS {
            let place = prepare();
            let service = service(&place.path("root"));
            set_up(&place.path("root"));
            let before = snapshot(&place);

            let began = Instant::now();
            let result = operation(&service, path);
            let took = began.elapsed();

            assert_eq!(snapshot(&place), before, "{name} of {vector}: {result:?}");
            assert!(took < LIMIT, "{name} of {vector} took {took:?}");
            let text = match &result {
                Ok(text) => text.clone(),
                Err(error) => error.to_string(),
            };
            assert!(!text.contains(SECRET) && !text.contains("root:x:"), "{name} of {vector} leaked: {text}");
            assert!(!text.contains('\n') || result.is_ok(), "{name} of {vector}: {text}");
        }
    }
}

#[test]
fn a_link_is_denied_with_its_reason() {
    let place = prepare();
    symlink("../outside/secret", place.path("root/link")).unwrap();
    let service = service(&place.path("root"));

    for (name, operation) in OPERATIONS {
        let error = operation(&service, "/workspace/link").unwrap_err();

        assert!(matches!(error, FileError::AccessDenied { .. }), "{name}: {error}");
        assert!(error.to_string().ends_with(": symbolic links are not followed"), "{name}: {error}");
    }
}

#[test]
fn a_pipe_is_denied_at_once_and_a_folder_with_one_is_listed() {
    let place = prepare();
    node(&place.path("root"), "pipe", FileType::Fifo);
    let service = service(&place.path("root"));

    for (name, operation) in OPERATIONS {
        let began = Instant::now();
        let result = operation(&service, "/workspace/pipe");

        assert!(began.elapsed() < LIMIT, "{name}");
        assert!(result.is_err() || name == "stat", "{name}: {result:?}");
    }
    assert_eq!(service.list("/workspace/", true, &never()).unwrap().1, 1);
}

#[test]
fn a_mount_inside_of_the_root_is_not_entered() {
    let service = service(Path::new("/"));

    for path in ["/workspace/proc/version", "/workspace/dev/null", "/workspace/proc/self/root/etc/hostname"] {
        for (name, operation) in OPERATIONS.iter().filter(|(name, _)| !name.starts_with("write")) {
            assert!(operation(&service, path).is_err(), "{name} of {path}");
        }
    }
    let error = service.read_binary("/workspace/proc/version", &never()).unwrap_err();
    assert!(error.to_string().ends_with(": mount points are not crossed"), "{error}");
}

#[test]
fn a_link_of_the_process_is_not_followed_even_if_it_is_in_the_root() {
    let service = service(Path::new("/proc/self"));

    for path in ["/workspace/root/etc/hostname", "/workspace/cwd", "/workspace/fd/0", "/workspace/exe"] {
        let error = service.read_binary(path, &never()).unwrap_err();

        assert!(matches!(error, FileError::AccessDenied { .. }), "{path}: {error}");
    }
}

#[test]
fn a_hard_link_is_read_but_not_written() {
    let place = prepare();
    fs::hard_link(place.path("outside/shared"), place.path("root/hard")).unwrap();
    let refusing = service(&place.path("root"));
    let permitting =
        service_with(&place.path("root"), FilePolicy { hard_links: true, durable: false, ..FilePolicy::default() });
    let edit = [Edit { old_text: "shared".to_owned(), new_text: "edited".to_owned() }];

    assert_eq!(refusing.read_binary("/workspace/hard", &never()).unwrap(), b"shared");
    let error = refusing.write("/workspace/hard", b"x").unwrap_err();
    assert!(error.to_string().ends_with("it has several hard links"), "{error}");
    assert!(refusing.edit("/workspace/hard", &edit, &never()).is_err());
    permitting.edit("/workspace/hard", &edit, &never()).unwrap();
    assert_eq!((place.read("root/hard"), place.read("outside/shared")), ("edited".into(), "shared".into()));
}

#[test]
fn a_renamed_root_stays_the_root() {
    let place = prepare();
    let service = service(&place.path("root"));
    fs::rename(place.path("root"), place.path("moved")).unwrap();

    service.write("/workspace/a", b"inside").unwrap();

    assert_eq!(place.read("moved/a"), "inside");
}

#[test]
fn a_name_cannot_forge_a_line_of_a_listing() {
    let place = prepare();
    fs::write(place.path("root/a\n[DIR] b"), "").unwrap();
    fs::write(place.path("root").join(OsStr::from_bytes(b"c\xff")), "").unwrap();
    let service = service(&place.path("root"));

    let (entries, _) = service.list("/workspace/", false, &never()).unwrap();
    let (paths, _) = service.search("/workspace/", "*", &[], &never()).unwrap();

    let names: Vec<String> = entries.iter().map(toolcrib::files::Entry::displayed).collect();
    assert_eq!(names, ["a\\u000a[DIR] b", "c\\xff"]);
    assert_eq!(paths, ["/workspace/a\\u000a[DIR] b", "/workspace/c\\xff"]);
}
