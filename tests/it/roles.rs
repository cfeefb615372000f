//! Roles: their views, changes, and file.

#![allow(clippy::expect_used)]

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;
use serde_json::{Value, json};
use toolcrib::Error;
use toolcrib::registry::{RecordStamp, Registry, Role, Roles, RolesFile, View};
use toolcrib::store::Disk;

use crate::registry::add;

fn stamp() -> RecordStamp {
    RecordStamp { id: "7d9f".to_owned(), at: "2026-01-02T03:04:05.678+01:00".to_owned() }
}

#[allow(clippy::unnecessary_wraps, reason = "no list at all is another answer")]
fn some(ids: &[&str]) -> Option<Vec<String>> {
    Some(ids.iter().map(|id| (*id).to_owned()).collect())
}

fn roles(records: &[(&str, Option<Vec<String>>)]) -> Roles {
    let mut roles = Roles::new(None);
    for (name, groups) in records {
        roles.add(Role::new(name, "Be kind.", groups.clone()), stamp()).expect("a new name");
    }
    roles
}

fn workshop() -> Registry<u32> {
    let mut registry = Registry::default();
    for id in ["org_management", "files", "web"] {
        registry.create_group(id, "", true, None).expect("a new name");
        add(&mut registry, &format!("{id}_tool"), id, 0);
    }
    add(&mut registry, "look", "basic", 1);
    registry
}

fn seen(view: &View) -> Vec<String> {
    view.listed(&workshop()).iter().map(|tool| tool.name.to_string()).collect()
}

/// A file of its own for one test.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("toolcrib-roles-{}-{name}.json", std::process::id())))
    }

    fn with(name: &str, content: &str) -> Self {
        let file = Self::new(name);
        fs::write(&file.0, content).expect("a folder to write to");
        file
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Loads a file in which everything has to be right.
fn load(roles: &mut Roles, file: &Temporary) -> Result<(), Error> {
    let read = RolesFile::load(&Disk, &file.0)?;
    read.check(&file.0)?;
    roles.replace(read);
    Ok(())
}

const ALL: [&str; 4] = ["org_management_tool", "files_tool", "web_tool", "look"];

#[test]
fn a_role_sees_its_groups_none_of_them_or_the_default() {
    let mut limited = Roles::new(some(&["web"]));
    limited.add(Role::new("any", "", None), stamp()).expect("a new name");
    let roles = roles(&[("reader", some(&["files", "nowhere"])), ("nobody", some(&[])), ("any", None)]);

    assert_eq!(seen(&roles.view("reader")), ["files_tool"]);
    assert!(seen(&roles.view("nobody")).is_empty());
    assert_eq!(seen(&roles.view("any")), ALL);
    assert_eq!(seen(&limited.view("any")), ["web_tool"]);
}

#[test]
fn who_has_no_role_sees_nothing() {
    let roles = roles(&[("reader", None)]);

    for name in ["", "Reader", "reader ", "re\u{430}der", "basic"] {
        assert!(seen(&roles.view(name)).is_empty(), "{name:?}");
    }
}

#[test]
fn the_root_role_has_exactly_one_group_and_is_not_to_be_changed() {
    let mut roles = roles(&[]);

    assert_eq!(seen(&roles.view("root")), ["org_management_tool"]);
    assert_eq!(seen(&Role::new("root", "", some(&["web"])).view(None)), ["org_management_tool"]);
    let refused = Err(Error::SystemRole { name: "root".to_owned() });
    assert_eq!(roles.add(Role::new("root", "", None), stamp()), refused);
    assert_eq!(roles.update("root", "", |_| ()).map(drop), refused);
    assert_eq!(roles.remove("root").map(drop), refused);
}

#[test]
fn a_view_follows_its_role() {
    let mut roles = roles(&[("reader", some(&["files"]))]);
    let view = roles.view("reader");
    let before = view.revision();

    roles.update("reader", "later", |role| role.tool_groups = some(&["web"])).expect("a role");
    assert_eq!(seen(&view), ["web_tool"]);
    assert_ne!(view.revision(), before);
    roles.remove("reader").expect("a role");
    assert!(seen(&view).is_empty());
    roles.add(Role::new("reader", "", None), stamp()).expect("a free name");

    assert!(seen(&view).is_empty(), "that is another role of the same name");
}

#[test]
fn names_are_unique_and_not_empty_and_never_changed() {
    let mut roles = roles(&[("reader", None)]);

    let again = roles.add(Role::new("reader", "", some(&[])), stamp());
    let empty = roles.add(Role::new("", "", None), stamp());
    let strange = json!({ "createdBy": null, "id": 7 }).as_object().cloned().expect("an object");
    let strange = roles.add(Role { details: strange, ..Role::new("strange", "", None) }, stamp());
    let disguised = json!({ "id": "root" }).as_object().cloned().expect("an object");
    let disguised = roles.add(Role { details: disguised, ..Role::new("boss", "", None) }, stamp());
    let updated = roles.update("reader", "later", |role| role.name = "root".to_owned()).cloned();

    assert_eq!(again, Err(Error::DuplicateRole { name: "reader".to_owned() }));
    assert!(matches!(empty, Err(Error::InvalidRole { .. })));
    assert_eq!(strange, Err(Error::InvalidRole { reason: "id: expected a string, got a number".to_owned() }));
    assert_eq!(disguised, Err(Error::SystemRole { name: "root".to_owned() }));
    assert_eq!(updated.map(|role| role.name), Ok("reader".to_owned()));
    assert_eq!(roles.update("nobody", "", |_| ()).err(), Some(Error::UnknownRole { name: "nobody".to_owned() }));
    assert_eq!(roles.remove("nobody").err(), Some(Error::UnknownRole { name: "nobody".to_owned() }));
}

#[test]
fn a_record_says_what_the_role_is() {
    let roles = roles(&[("reader", some(&["files"]))]);

    assert_eq!(
        roles.file().value(),
        json!({ "roles": [{
            "id": "7d9f",
            "name": "reader",
            "rolePrompt": "Be kind.",
            "toolGroups": ["files"],
            "status": "active",
            "createdBy": null,
            "createdAt": "2026-01-02T03:04:05.678+01:00",
            "llmServiceId": null,
        }] })
    );
}

#[test]
fn a_file_keeps_what_it_says_beside_the_roles_in_use() {
    let file = Temporary::with(
        "rest",
        r#"{"roles": [
            {"id": "root", "name": "boss", "rolePrompt": "", "toolGroups": ["web"]},
            {"id": "1", "name": "gone", "rolePrompt": "", "status": "deleted", "deletedBy": null, "mood": "good"},
            {"id": "2", "name": "reader", "rolePrompt": "Read.", "toolGroups": null, "mood": [1.50]},
            {"id": "3", "name": "root", "rolePrompt": "", "toolGroups": ["web"]}
        ], "agents": [{"id": "root"}]}"#,
    );
    let mut roles = roles(&[]);

    roles.replace(RolesFile::load(&Disk, &file.0).expect("a file of roles"));
    roles.file().save(&Disk, &file.0).expect("a place to write");

    let saved: Value = serde_json::from_slice(&fs::read(&file.0).expect("a file")).expect("JSON");
    assert_eq!(saved["agents"], json!([{ "id": "root" }]));
    let names: Vec<&str> =
        saved["roles"].as_array().expect("a list").iter().filter_map(|it| it["name"].as_str()).collect();
    assert_eq!(names, ["reader", "gone"], "root is neither loaded nor written");
    assert_eq!(saved["roles"][0]["mood"].to_string(), "[1.50]");
    assert_eq!(saved["roles"][1]["status"], "deleted");
    assert!(roles.get("gone").is_none() && seen(&roles.view("gone")).is_empty());
}

#[test]
fn a_malformed_file_is_refused_with_a_word_on_every_record_and_changes_nothing() {
    let mut roles = roles(&[("reader", some(&["files"]))]);
    let view = roles.view("reader");
    let before = roles.file().value();
    for (content, reason) in [
        ("", "invalid JSON: EOF while parsing a value at line 1 column 0"),
        ("[]", "expected an object, got a list"),
        ("{}", "missing list `roles`"),
        (r#"{"roles": {}}"#, "expected a list as `roles`, got an object"),
        (r#"{"roles": [1]}"#, "roles[0]: expected an object, got a number"),
        (r#"{"roles": [{}]}"#, "roles[0].name: it is missing"),
        (r#"{"roles": [{"name": ""}]}"#, "roles[0].name: it is empty"),
        (r#"{"roles": [{"name": "a", "rolePrompt": 1}]}"#, "roles[0].rolePrompt: expected a string, got a number"),
        (
            r#"{"roles": [{"name": "a"}, {"name": "b", "toolGroups": "web"}]}"#,
            "roles[1].toolGroups: expected a list of ids or null, got a string",
        ),
        (
            r#"{"roles": [{"name": "a", "toolGroups": ["web", null]}]}"#,
            "roles[0].toolGroups: expected an id at 1, got null",
        ),
        (r#"{"roles": [{"name": "a", "status": "on"}]}"#, "roles[0].status: expected `active` or `deleted`, got `on`"),
        (r#"{"roles": [{"name": "a", "createdBy": 1}]}"#, "roles[0].createdBy: expected a string, got a number"),
        (
            r#"{"roles": [{"name": "a", "id": null}, {"name": 1}]}"#,
            "roles[0].id: expected a string, got null; roles[1].name: expected a string, got a number",
        ),
        (r#"{"roles": [{"name": "a"}, {"name": "a"}]}"#, "roles[1].name: the name `a` is taken by an earlier record"),
    ] {
        let file = Temporary::with("malformed", content);

        let refused = load(&mut roles, &file);

        let path = file.0.display().to_string();
        assert_eq!(refused, Err(Error::RoleFile { path, reason: reason.to_owned() }));
    }
    assert_eq!(roles.file().value(), before);
    assert_eq!(seen(&view), ["files_tool"]);
}

#[test]
fn the_records_that_are_roles_can_be_had_without_the_others() {
    let file = Temporary::with("some", r#"{"roles": [{"name": 1}, {"name": "a", "toolGroups": ["web"]}]}"#);
    let mut roles = roles(&[("old", None)]);
    let old = roles.view("old");

    let read = RolesFile::load(&Disk, &file.0).expect("a file of roles");
    let told: Vec<String> = read.problems().iter().map(ToString::to_string).collect();
    roles.replace(read);

    assert_eq!(told, ["roles[0].name: expected a string, got a number"]);
    assert_eq!(seen(&roles.view("a")), ["web_tool"]);
    assert!(seen(&old).is_empty(), "a role that is not in the file is gone");
}

#[test]
fn a_file_that_is_missing_or_too_large_is_told() {
    let file = Temporary::new("missing");
    let mut roles = roles(&[]);

    assert!(matches!(load(&mut roles, &file), Err(Error::MissingFile { .. })));
    fs::write(&file.0, " ".repeat(toolcrib::registry::ROLES_LIMIT + 1)).expect("a folder to write to");

    assert!(matches!(load(&mut roles, &file), Err(Error::FileTooLarge { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// The seventh property: what is saved is what is loaded.
    #[test]
    fn any_roles_come_back_with_the_same_groups_in_the_same_order(
        records in prop::collection::btree_map(".+", (".*", prop::option::of(prop::collection::vec(".*", 0..4))), 0..6)
    ) {
        let file = Temporary::new("any");
        let mut saved = Roles::new(None);
        for (name, (prompt, groups)) in &records {
            let added = saved.add(Role::new(name, prompt, groups.clone()), stamp());
            prop_assert_eq!(added.is_ok(), name != "root");
        }
        let mut loaded = roles(&[("other", None)]);

        saved.file().save(&Disk, &file.0).expect("a place to write");
        load(&mut loaded, &file).expect("what was saved");

        prop_assert_eq!(loaded.all().collect::<Vec<_>>(), saved.all().collect::<Vec<_>>());
    }
}
