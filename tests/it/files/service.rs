//! The operations of a service: grants, limits, atomic writes, edits.

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::sync::Arc;
use std::thread;

use toolcrib::Error;
use toolcrib::files::{
    CreateFolder, Edit, EntryKind, FileError, FilePolicy, FileService, FileSystem, Grant, Op, Ops, TextPart,
    TextRequest,
};

use super::{Place, never, service, service_with};

fn granted(place: &Place, grants: &[(&str, &[&str])]) -> FileService {
    let system = FileSystem::new()
        .with_created_root("/userinput/", &place.path("userinput"), Ops::READ, CreateFolder::Last)
        .and_then(|system| {
            system.with_created_root("/workspace/", &place.path("workspace"), Ops::ALL, CreateFolder::All)
        })
        .unwrap();
    let parse = |(prefix, ops): &(&str, &[&str])| Grant::parse(prefix, ops.iter().copied()).unwrap();
    let handle = Arc::new(system).create_handle(grants.iter().map(parse)).unwrap();
    FileService::new(handle, FilePolicy { durable: false, ..FilePolicy::default() })
}

fn edit(old_text: &str, new_text: &str) -> Edit {
    Edit { old_text: old_text.to_owned(), new_text: new_text.to_owned() }
}

fn read(service: &FileService, path: &str, request: &TextRequest) -> Result<TextPart, FileError> {
    service.read_text(path, request, 1 << 20, &never())
}

#[test]
fn what_is_not_granted_is_denied_with_the_operation_and_the_path() {
    let place = Place::new();
    let service = granted(&place, &[("/workspace/public/", &["list", "read"])]);
    place.write("workspace/public/a", "a");
    place.write("workspace/private", "b");

    assert!(service.read_binary("/workspace/public/a", &never()).is_ok());
    for path in ["/workspace/private", "/workspace/publicity", "/workspace/", "/userinput/a", "/other/a"] {
        let error = service.read_binary(path, &never()).unwrap_err();
        let shown = path.trim_end_matches('/');
        assert_eq!(error.to_string(), format!("Access denied for operation 'read_binary' on path {shown}"));
    }
    let error = service.write("/workspace/public/a", b"x").unwrap_err();
    assert_eq!(error.to_string(), "Access denied for operation 'write' on path /workspace/public/a");
}

#[test]
fn a_grant_cannot_allow_more_than_its_root() {
    let place = Place::new();
    let service = granted(&place, &[("/userinput/", &["list", "read", "write", "delete"])]);
    place.write("userinput/a", "a");

    assert!(service.write("/userinput/a", b"x").is_err());
    assert!(service.delete("/userinput/a").is_err());
    assert!(!service.handle().grants(Op::Write));
    assert_eq!(service.read_binary("/userinput/a", &never()).unwrap(), b"a");
}

#[test]
fn two_grants_add_up() {
    let place = Place::new();
    let service = granted(&place, &[("/workspace/", &["read"]), ("/workspace/out", &["write"])]);

    service.write("/workspace/out/a", b"a").unwrap();

    assert_eq!(service.read_binary("/workspace/out/a", &never()).unwrap(), b"a");
    assert!(service.write("/workspace/b", b"b").is_err());
}

#[test]
fn a_grant_outside_of_the_roots_is_an_error() {
    let place = Place::new();
    let system = Arc::new(FileSystem::new().with_root("/workspace/", &place.0, Ops::ALL).unwrap());

    let error = system.create_handle([Grant::parse("/work/", ["read"]).unwrap()]).unwrap_err();

    assert_eq!(error.to_string(), "the grant on /work is in no root: expected one of /workspace/");
}

#[test]
fn a_root_is_one_name_that_is_not_repeated() {
    let place = Place::new();
    let root = |system: FileSystem, name: &str| system.with_root(name, &place.0, Ops::ALL);

    for name in ["", "/", "workspace", "/a/b/", "/.."] {
        assert!(matches!(root(FileSystem::new(), name), Err(Error::InvalidFileRoot { .. })), "{name}");
    }
    let error = root(root(FileSystem::new(), "/a/").unwrap(), "/a").unwrap_err();
    assert_eq!(error.to_string(), "invalid file root `/a`: it is repeated");
    place.write("file", "");
    let error = FileSystem::new().with_root("/a/", &place.path("file"), Ops::ALL).unwrap_err();
    assert!(matches!(error, Error::FileAccess { .. }), "{error}");
}

#[test]
fn a_root_that_does_not_exist_is_created_only_if_asked() {
    let place = Place::new();
    fs::create_dir(place.path("project")).unwrap();
    let error = |path: &str| FileSystem::new().with_root("/a/", &place.path(path), Ops::ALL).unwrap_err();

    let misspelt = error("proejct");
    let beneath = error("proejct/deep/er");
    let unknown = error("other");
    let last = FileSystem::new().with_created_root("/a/", &place.path("x/y"), Ops::ALL, CreateFolder::Last);

    let shown = |name: &str| place.path(name).display().to_string();
    let expected = Error::MissingFolder { path: shown("proejct"), similar: Some(shown("project")) };
    assert_eq!((&misspelt, &beneath), (&expected, &expected));
    assert_eq!(unknown, Error::MissingFolder { path: shown("other"), similar: None });
    assert!(matches!(last, Err(Error::MissingFolder { .. })));
    assert_eq!(fs::read_dir(&place.0).unwrap().count(), 1, "nothing is created");
    FileSystem::new().with_created_root("/a/", &place.path("x/y"), Ops::ALL, CreateFolder::All).unwrap();
    assert!(place.path("x/y").is_dir());
}

#[test]
fn lines_are_numbered_as_in_the_file() {
    let place = Place::new();
    place.write("a", "1\n2\n3\n4\n5");
    let service = service(&place.0);
    let request = |start_line, read_lines| TextRequest { start_line, read_lines, ..TextRequest::default() };

    let all = read(&service, "/workspace/a", &request(1, None)).unwrap();
    let part = read(&service, "/workspace/a", &request(3, Some(2))).unwrap();
    let last = read(&service, "/workspace/a", &request(5, Some(100))).unwrap();

    assert_eq!(all.text, "line1: 1\nline2: 2\nline3: 3\nline4: 4\nline5: 5");
    assert_eq!((part.text.as_str(), part.line_count), ("line3: 3\nline4: 4", Some(5)));
    assert_eq!((last.text.as_str(), last.lines), ("line5: 5", 1));
    let beyond = read(&service, "/workspace/a", &request(6, None)).unwrap_err();
    assert_eq!(beyond.to_string(), "start_line 6 is beyond the end of the file, which has 5 lines");
    for wrong in [request(0, None), request(1, Some(0))] {
        assert!(matches!(read(&service, "/workspace/a", &wrong), Err(FileError::InvalidArgument { .. })));
    }
}

#[test]
fn a_text_is_read_the_same_in_any_pieces() {
    let place = Place::new();
    // Lines of every length, across the borders of chunks.
    let lines: Vec<String> = (0..2_000).map(|number| "x".repeat(number % 700)).collect();
    place.write("a", lines.join("\n"));
    let service = service(&place.0);

    for start_line in [1, 2, 999, 2_000] {
        let request = TextRequest { start_line, with_line_numbers: false, ..TextRequest::default() };
        let part = service.read_text("/workspace/a", &request, usize::MAX, &never()).unwrap();
        let from = usize::try_from(start_line).unwrap() - 1;

        assert_eq!(part.text, lines[from..].join("\n"));
        assert_eq!((part.line_count, part.lines), (Some(2_000), 2_000 - start_line + 1));
    }
}

#[test]
fn an_empty_file_has_no_lines() {
    let place = Place::new();
    place.write("a", "");

    let part = read(&service(&place.0), "/workspace/a", &TextRequest::default()).unwrap();

    assert_eq!((part.text.as_str(), part.lines, part.line_count), ("", 0, Some(0)));
}

#[test]
fn a_long_text_is_truncated_at_a_line() {
    let place = Place::new();
    place.write("a", "0123456789\n".repeat(1000));
    let service = service(&place.0);

    let part = service.read_text("/workspace/a", &TextRequest::default(), 100, &never()).unwrap();
    let next = TextRequest { start_line: 1 + part.lines, ..TextRequest::default() };

    assert!(part.is_truncated && part.text.len() <= 100 && part.text.ends_with("0123456789"), "{part:?}");
    assert_eq!(part.line_count, Some(1000));
    let next = service.read_text("/workspace/a", &next, 100, &never()).unwrap();
    assert!(next.text.starts_with(&format!("line{}: 0123456789", 1 + part.lines)));
}

#[test]
fn a_line_that_is_too_long_is_cut_between_two_characters() {
    let place = Place::new();
    place.write("a", "é".repeat(1000));

    let request = TextRequest { with_line_numbers: false, ..TextRequest::default() };
    let part = service(&place.0).read_text("/workspace/a", &request, 101, &never()).unwrap();

    assert_eq!(part.text, "é".repeat(50));
    assert!(part.is_truncated && !part.is_lossy && part.lines == 1);
}

#[test]
fn bytes_that_are_not_text_are_replaced_in_the_reply_and_kept_in_the_file() {
    let place = Place::new();
    place.write("a", b"caf\xe9 one\nb");
    let service = service(&place.0);

    let part = read(&service, "/workspace/a", &TextRequest::default()).unwrap();
    service.edit("/workspace/a", &[edit("one", "two")], &never()).unwrap();

    assert_eq!(part.text, "line1: caf\u{fffd} one\nline2: b");
    assert!(part.is_lossy);
    assert_eq!(fs::read(place.path("a")).unwrap(), b"caf\xe9 two\nb");
}

#[test]
fn twins_in_unicode_and_case_are_different_files() {
    let place = Place::new();
    let service = service(&place.0);
    for (path, content) in [("\u{e9}", "composed"), ("e\u{301}", "decomposed"), ("E", "upper"), ("e", "lower")] {
        service.write(&format!("/workspace/{path}"), content.as_bytes()).unwrap();
    }

    let content = service.read_binary("/workspace/e\u{301}", &never()).unwrap();

    assert_eq!(content, b"decomposed");
    assert_eq!(service.list("/workspace/", false, &never()).unwrap().1, 4);
}

#[test]
fn lines_are_found_by_an_expression() {
    let place = Place::new();
    place.write("a", "one\ntwo\nthree\ntwo and a half");
    let service = service(&place.0);

    let (lines, is_truncated) = service.read_matching("/workspace/a", "^tw.", &never()).unwrap();
    let error = service.read_matching("/workspace/a", "(", &never()).unwrap_err();

    let found: Vec<_> = lines.iter().map(|line| (line.line, line.text.as_str())).collect();
    assert_eq!((found, is_truncated), (vec![(2, "two"), (4, "two and a half")], false));
    assert!(error.to_string().starts_with("invalid regular expression: "), "{error}");
}

#[test]
fn a_file_is_written_with_its_folders_and_replaced_in_one_step() {
    let place = Place::new();
    let service = service_with(&place.0, FilePolicy::default());

    service.write("/workspace/a/b/c", b"one").unwrap();
    let old = fs::metadata(place.path("a/b/c")).unwrap();
    let reader = fs::File::open(place.path("a/b/c")).unwrap();
    service.write("/workspace/a/b/c", b"two").unwrap();

    assert_eq!(place.read("a/b/c"), "two");
    assert_eq!(std::io::read_to_string(reader).unwrap(), "one", "an open file keeps its content");
    assert_ne!(fs::metadata(place.path("a/b/c")).unwrap().ino(), old.ino());
    assert_eq!(fs::read_dir(place.path("a/b")).unwrap().count(), 1, "no temporary file is left");
}

#[test]
fn a_replaced_file_keeps_its_permissions_without_those_of_its_owner() {
    let place = Place::new();
    let path = place.write("run", "one");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o4750)).unwrap();

    service(&place.0).write("/workspace/run", b"two").unwrap();

    assert_eq!(fs::metadata(path).unwrap().mode() & 0o7777, 0o750);
}

#[test]
fn a_failed_write_leaves_nothing_behind() {
    let place = Place::new();
    fs::create_dir(place.path("folder")).unwrap();
    let small = service_with(&place.0, FilePolicy { max_file_bytes: 3, ..FilePolicy::default() });

    let folder = small.write("/workspace/folder", b"x").unwrap_err();
    let root = small.write("/workspace/", b"x").unwrap_err();
    let large = small.write("/workspace/new/large", b"1234").unwrap_err();

    assert_eq!(folder.to_string(), "The path /workspace/folder is a directory, not a file");
    assert_eq!(root.to_string(), "The path /workspace is a directory, not a file");
    assert_eq!(large.to_string(), "The content is larger than 3 bytes");
    assert_eq!(fs::read_dir(&place.0).unwrap().count(), 1);
}

#[test]
fn a_temporary_file_that_was_left_behind_is_removed() {
    let place = Place::new();
    let service = service(&place.0);
    // The temporary name of `plain`, as a writer that was killed leaves it.
    place.write(".toolcrib-a116c9ed46d62077.tmp", "half");

    assert_eq!(service.list("/workspace/", false, &never()).unwrap().1, 0, "it is never listed");
    service.write("/workspace/plain", b"whole").unwrap();

    assert_eq!(place.read("plain"), "whole");
    assert_eq!(fs::read_dir(&place.0).unwrap().count(), 1);
}

#[test]
fn a_writer_waits_for_another_and_gives_up_after_a_while() {
    let place = Place::new();
    let path = place.write(".toolcrib-a116c9ed46d62077.tmp", "half");
    let other = fs::File::open(path).unwrap();
    other.lock().unwrap();

    let error = service(&place.0).write("/workspace/plain", b"whole").unwrap_err();

    assert_eq!(error.to_string(), "Conflict on path /workspace/plain: another program is writing the file");
    drop(other);
    service(&place.0).write("/workspace/plain", b"whole").unwrap();
}

#[test]
fn no_edit_of_many_writers_is_lost() {
    let place = Place::new();
    // With its ends, so that no number is found in another one.
    place.write("count", "<0>");
    let root = place.0.clone();

    let add = move || {
        // A handle of its own, as another process has.
        let service = service(&root);
        for _ in 0..50 {
            loop {
                let old = String::from_utf8(service.read_binary("/workspace/count", &never()).unwrap()).unwrap();
                let new = format!("<{}>", old.trim_matches(['<', '>']).parse::<u32>().unwrap() + 1);
                match service.edit("/workspace/count", &[edit(&old, &new)], &never()) {
                    Ok(_) => break,
                    Err(FileError::InvalidArgument { .. } | FileError::Conflict { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        }
    };
    let writers: Vec<_> = (0..4).map(|_| thread::spawn(add.clone())).collect();
    for writer in writers {
        writer.join().unwrap();
    }

    assert_eq!(place.read("count"), "<200>");
}

#[test]
fn edits_apply_all_or_none() {
    let place = Place::new();
    place.write("a", "one two two");
    let service = service(&place.0);

    let missing = service.edit("/workspace/a", &[edit("one", "1"), edit("three", "3")], &never()).unwrap_err();
    let repeated = service.edit("/workspace/a", &[edit("two", "2")], &never()).unwrap_err();
    let absent = service.edit("/workspace/b", &[edit("a", "b")], &never()).unwrap_err();

    assert_eq!(missing.to_string(), r#"oldText of edit 2 does not occur in the file: "three""#);
    assert!(repeated.to_string().starts_with("oldText of edit 1 occurs more than once, in lines 1, 1"));
    assert_eq!(absent.to_string(), "No such file or directory: /workspace/b");
    assert_eq!(place.read("a"), "one two two");
    assert_eq!(service.edit("/workspace/a", &[edit("one two", "1"), edit("1 two", "2")], &never()).unwrap(), 1);
    assert_eq!(place.read("a"), "2");
}

#[test]
fn only_files_are_deleted() {
    let place = Place::new();
    place.write("a", "");
    fs::create_dir(place.path("folder")).unwrap();
    let service = service(&place.0);

    service.delete("/workspace/a").unwrap();

    assert!(!place.path("a").exists());
    assert!(matches!(service.delete("/workspace/a"), Err(FileError::NotFound { .. })));
    assert!(matches!(service.delete("/workspace/folder"), Err(FileError::InvalidArgument { .. })));
    assert!(matches!(service.delete("/workspace/"), Err(FileError::InvalidArgument { .. })));
}

#[test]
fn a_large_folder_is_listed_in_part() {
    let place = Place::new();
    for number in 0..30 {
        place.write(&format!("f{number:02}"), "");
    }
    let service = service_with(&place.0, FilePolicy { max_entries: 10, ..FilePolicy::default() });

    let (entries, total) = service.list("/workspace/", true, &never()).unwrap();
    let (found, is_truncated) = service.search("/workspace/", "f", &[], &never()).unwrap();

    assert_eq!((entries.len(), total), (10, 30));
    assert_eq!((entries[0].name.as_slice(), entries[9].name.as_slice()), (b"f00" as &[u8], b"f09" as &[u8]));
    assert_eq!((found.len(), is_truncated), (10, true));
}

#[test]
fn a_search_finds_names_in_the_whole_tree() {
    let place = Place::new();
    for name in ["a.py", "b/a.py", "b/c/a.txt", "node_modules/x/a.py", "b/.hidden.py"] {
        place.write(name, "");
    }
    let service = service(&place.0);
    let search = |path, pattern, excluded: &[&str]| {
        let excluded: Vec<String> = excluded.iter().map(ToString::to_string).collect();
        service.search(path, pattern, &excluded, &never()).unwrap().0
    };

    assert_eq!(
        search("/workspace/", "*.py", &["node_modules"]),
        ["/workspace/a.py", "/workspace/b/.hidden.py", "/workspace/b/a.py"]
    );
    assert_eq!(search("/workspace/b", "c", &[]), ["/workspace/b/c/"]);
    assert_eq!(search("/workspace/b", "c/*", &[]), ["/workspace/b/c/a.txt"]);
    assert_eq!(search("/workspace/", "*", &["b*", "*/x"]), ["/workspace/a.py", "/workspace/node_modules/"]);
}

#[test]
fn the_facts_of_a_file_are_those_of_the_system() {
    let place = Place::new();
    let path = place.write("a", "12345");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let service = service(&place.0);

    let facts = service.facts("/workspace/a").unwrap();

    assert_eq!((facts.kind, facts.size, facts.mode), (EntryKind::File, 5, 0o640));
    let modified = fs::metadata(path).unwrap().modified().unwrap().duration_since(std::time::UNIX_EPOCH).unwrap();
    assert_eq!(facts.modified, i128::try_from(modified.as_nanos()).unwrap());
    assert_eq!(service.facts("/workspace/").unwrap().kind, EntryKind::Folder);
}

#[test]
fn a_cancelled_read_ends() {
    let place = Place::new();
    place.write("large", "line\n".repeat(100_000));
    let (service, cancel) = (service(&place.0), never());

    cancel.cancel();
    let result = service.read_text("/workspace/large", &TextRequest::default(), 100, &cancel);

    assert_eq!(result.unwrap_err(), FileError::Cancelled);
}

#[test]
fn only_part_of_a_very_long_file_is_counted() {
    let place = Place::new();
    let line = format!("{}\n", "x".repeat((1 << 20) - 1));
    place.write("long", line.repeat(70));
    let sparse = fs::File::create(place.path("sparse")).unwrap();
    sparse.write_all_at(b"one\ntwo\n", 0).unwrap();
    sparse.write_all_at(b"\nend\n", 1 << 42).unwrap();
    let service = service(&place.0);
    let one = TextRequest { read_lines: Some(1), with_line_numbers: false, ..TextRequest::default() };

    let long = read(&service, "/workspace/long", &one).unwrap();
    let sparse = read(&service, "/workspace/sparse", &one).unwrap();
    let last = read(&service, "/workspace/sparse", &TextRequest { start_line: 4, ..one }).unwrap();

    assert_eq!(long.line_count, None);
    assert!((64..70).contains(&long.counted_lines), "{}", long.counted_lines);
    assert_eq!((sparse.text.as_str(), sparse.line_count), ("one", Some(4)), "a hole is not read");
    assert_eq!(last.text, "end");
}
