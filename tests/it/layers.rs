//! The shape of the crate, held to by reading its sources: who may know whom, and where `unsafe` may be.

#![allow(clippy::expect_used)]

use std::fs;
use std::path::{Path, PathBuf};

/// The modules of the core; each may use those before it.
const LAYERS: &[&str] = &[
    "near",
    "string_enum",
    "sync",
    "error",
    "bytes",
    "json",
    "front_matter",
    "store",
    "skill",
    "schema",
    "agent",
    "policy",
    "registry",
    "call",
    "trace",
    "provider",
    "text",
    "native",
    "artifact",
    "files",
    "process",
    "mcp",
];

fn sources() -> Vec<(PathBuf, String)> {
    fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("a folder of sources") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                collect(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut paths = Vec::new();
    collect(&root, &mut paths);
    paths
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path).expect("a source");
            (path.strip_prefix(&root).expect("inside the root").to_owned(), code_of(&text))
        })
        .collect()
}

/// The text without its comments.
fn code_of(text: &str) -> String {
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    code.collect::<Vec<_>>().join("\n")
}

/// The top modules that a text names after `crate::`; what the crate's root re-exports belongs to `error`.
fn used(code: &str) -> Vec<String> {
    let mut modules = Vec::new();
    for rest in code.split("crate::").skip(1) {
        let names = match rest.strip_prefix('{') {
            Some(group) => entries(group),
            None => vec![rest],
        };
        modules.extend(names.into_iter().map(|name| {
            let name: String =
                name.trim().chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect();
            if name.starts_with(char::is_uppercase) { "error".to_owned() } else { name }
        }));
    }
    modules
}

/// What stands between the commas of a group, whose opening brace is gone.
fn entries(group: &str) -> Vec<&str> {
    let (mut depth, mut start, mut found) = (0, 0, Vec::new());
    for (at, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                found.push(&group[start..at]);
                start = at + 1;
                if letter == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    found.retain(|entry| !entry.trim().is_empty());
    found
}

fn is_binding(path: &Path) -> bool {
    path.starts_with("bindings")
}

#[test]
fn what_a_text_uses_is_read_from_it() {
    let code = "use crate::schema::check::{Mode, Problem};\nuse crate::{\n    Error, Result,\n    registry::{Group, Tool},\n};";

    assert_eq!(used(code), ["schema", "error", "error", "registry"]);
    assert_eq!(used("fn find() -> crate::Result<crate::call::Answer> {"), ["error", "call"]);
    assert_eq!(used(&code_of("use std::fs; // not crate::call")), Vec::<String>::new());
}

#[test]
fn every_module_of_the_core_has_its_layer() {
    for (path, _) in sources().iter().filter(|(path, _)| !is_binding(path) && path != Path::new("lib.rs")) {
        let module = path.iter().next().and_then(|part| part.to_str()).unwrap_or_default();

        assert!(LAYERS.contains(&module.trim_end_matches(".rs")), "{} is in no layer", path.display());
    }
}

#[test]
fn a_module_of_the_core_uses_only_modules_below_it() {
    for (path, code) in sources().iter().filter(|(path, _)| !is_binding(path) && path != Path::new("lib.rs")) {
        let module = path.iter().next().and_then(|part| part.to_str()).unwrap_or_default();
        let layer = LAYERS.iter().position(|layer| *layer == module.trim_end_matches(".rs"));

        for other in used(code) {
            let below = LAYERS.iter().position(|layer| *layer == other);
            assert!(below.is_some() && below <= layer, "{} uses `{other}`", path.display());
        }
    }
}

#[test]
fn the_core_does_not_know_python() {
    for (path, code) in sources().iter().filter(|(path, _)| !is_binding(path) && path != Path::new("lib.rs")) {
        assert!(!code.contains("pyo3"), "{} names pyo3", path.display());
        assert!(!code.contains("bindings"), "{} names the bindings", path.display());
        let words = code.replace(char::is_whitespace, "");
        assert!(!words.contains("feature=\"python\""), "{} asks for the feature of the bindings", path.display());
    }
}

#[test]
fn unsafe_code_is_in_one_folder_and_the_allocator() {
    let (mut files, mut blocks) = (0, 0);
    for (path, code) in sources() {
        let words = code.split(|letter: char| !(letter.is_alphanumeric() || letter == '_'));
        let is_unsafe = words.into_iter().any(|word| matches!(word, "unsafe" | "unsafe_code"));
        let is_folder = path.starts_with("bindings/call/python");
        assert!(
            is_folder || path == Path::new("bindings/allocator.rs") || !is_unsafe,
            "{} has unsafe code",
            path.display()
        );
        if is_folder && code.contains("unsafe {") {
            files += 1;
            blocks += code.matches("unsafe {").count();
        }
    }

    assert!(files <= 6 && blocks <= 80, "{blocks} unsafe blocks in {files} files");
}

#[test]
fn every_unsafe_block_has_a_reason_of_its_own() {
    for (path, _) in sources().iter().filter(|(path, _)| path.starts_with("bindings/call/python")) {
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(path)).expect("a source");

        assert!(!text.contains("SAFETY: as "), "{} refers to another reason", path.display());
    }
}

#[test]
fn every_source_opens_with_what_it_owns() {
    for (path, _) in sources() {
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(&path)).expect("a source");

        assert!(text.starts_with("//! "), "{} opens without a word", path.display());
    }
}
