//! Agents as data: inputs, prompts, and definitions in files.

#![allow(clippy::expect_used, clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use toolcrib::agent::{
    AgentDefinition, AgentFile, AgentFolder, AgentInput, AgentLimits, AgentParts, Inputs, Template, schema_of_inputs,
};
use toolcrib::store::Disk;
use toolcrib::{Error, Result};

fn cases(name: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/gemini_cases.json");
    let file: Value = serde_json::from_str(&fs::read_to_string(path).expect("the cases")).expect("JSON");
    file[name].as_array().expect("a list").clone()
}

fn parts() -> AgentParts {
    AgentParts { name: "finder".to_owned(), description: "Finds files.".to_owned(), ..AgentParts::default() }
}

fn input(kind: &str) -> AgentInput {
    AgentInput { kind: kind.to_owned(), description: "d".to_owned(), required: true }
}

#[test]
fn inputs_become_the_schemas_of_the_cases() {
    for case in cases("schema") {
        let inputs = case["inputs"].as_object().unwrap().iter().map(|(name, input)| {
            let text = |key: &str| input[key].as_str().unwrap().to_owned();
            let required = input["required"].as_bool().unwrap();
            (name.clone(), AgentInput { kind: text("type"), description: text("description"), required })
        });

        let schema = schema_of_inputs(&inputs.collect(), false);

        if let Some(text) = case.get("throws") {
            assert_eq!(schema.unwrap_err().to_string(), text.as_str().unwrap());
        } else {
            // A list of required inputs is always there, also if it is empty.
            let mut expected = case["result"].clone();
            expected.as_object_mut().unwrap().entry("required").or_insert_with(|| json!([]));
            assert_eq!(schema.unwrap(), expected);
        }
    }
}

#[test]
fn an_unknown_type_is_a_string_where_that_is_asked_for() {
    let inputs = [("a".to_owned(), input("date"))].into_iter().collect();

    let schema = schema_of_inputs(&inputs, true).unwrap();

    assert_eq!(schema["properties"]["a"], json!({"description": "d", "type": "string"}));
}

#[test]
fn templates_are_filled_as_in_the_cases() {
    for case in cases("template") {
        let template = Template::parse(case["template"].as_str().unwrap());

        let text = template.render(case["inputs"].as_object().unwrap());

        match case.get("throws") {
            Some(error) => assert_eq!(text.unwrap_err().to_string(), error.as_str().unwrap()),
            None => assert_eq!(text.as_deref(), Ok(case["result"].as_str().unwrap())),
        }
    }
}

#[test]
fn a_raw_schema_gets_the_keys_that_it_lacks() {
    let inputs = Inputs::Schema(json!({"type": "object"}));

    let definition = AgentDefinition::new(AgentParts { inputs, ..parts() }).unwrap();

    assert_eq!(definition.parameters(), &json!({"type": "object", "properties": {}, "required": []}));
}

#[test]
fn an_invalid_raw_schema_is_refused() {
    for schema in [json!({"type": "string"}), json!({"type": "object", "properties": 1}), json!(1)] {
        let refused = AgentDefinition::new(AgentParts { inputs: Inputs::Schema(schema), ..parts() });

        assert!(matches!(refused, Err(Error::InvalidSchema { .. })), "{refused:?}");
    }
}

#[test]
fn a_definition_without_a_name_or_a_description_is_refused() {
    let nameless = AgentDefinition::new(AgentParts { name: " ".to_owned(), ..parts() });
    let undescribed = AgentDefinition::new(AgentParts { description: String::new(), ..parts() });

    assert_eq!(nameless.unwrap_err().to_string(), "invalid agent ` `: missing `name`");
    assert_eq!(undescribed.unwrap_err().to_string(), "invalid agent `finder`: missing `description`");
}

#[test]
fn a_prompt_has_all_of_its_placeholders_filled() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer", "default": 3}}});
    let definition = AgentDefinition::new(AgentParts {
        inputs: Inputs::Schema(schema),
        system_prompt: Some("Find ${n} of ${what}.".to_owned()),
        initial_messages: vec![
            json!({"role": "user", "content": "${what}"}),
            json!({"role": "model", "content": [{"type": "text", "text": "${n}", "id": "${n}"}]}),
        ],
        ..parts()
    })
    .unwrap();

    let prompt = definition.render(json!({"what": "files"}).as_object().unwrap()).unwrap();

    assert_eq!(prompt.system_prompt.as_deref(), Some("Find 3 of files."));
    assert_eq!(prompt.query, "Get Started!");
    assert_eq!(prompt.initial_messages[0]["content"], "files");
    assert_eq!(prompt.initial_messages[1]["content"][0], json!({"type": "text", "text": "3", "id": "${n}"}));
}

#[test]
fn a_prompt_names_the_missing_inputs_of_all_of_its_parts() {
    let definition = AgentDefinition::new(AgentParts {
        system_prompt: Some("${a}".to_owned()),
        query: Some("${b} ${a}".to_owned()),
        initial_messages: vec![json!({"role": "user", "content": "${c}"})],
        ..parts()
    })
    .unwrap();

    let error = definition.render(json!({"x": 1}).as_object().unwrap()).unwrap_err();

    let text = "Template validation failed: Missing required input parameters: a, b, c. Available inputs: x";
    assert_eq!(error.to_string(), text);
}

/// A folder that goes when the test does.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNTER: AtomicUsize = AtomicUsize::new(0);
        let name = format!("toolcrib-agent-{}-{}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a new folder");
        Self(path)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).expect("a new file");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn read(text: &str) -> Result<AgentFile> {
    let folder = Folder::new();
    AgentFile::read(&Disk, &folder.write("a.md", text))
}

fn reason(text: &str) -> String {
    match read(text) {
        Err(Error::AgentFile { reason, .. }) => reason,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn a_file_has_every_field_of_a_definition() {
    let text = "---
name: finder
display_name: The finder
description: >-
  Finds
  files.
inputs:
  what: {type: string, description: The name.}
  limit: {type: integer, description: The most., required: false}
query: Find ${what}
tools: [read_file, grep]
groups: search, files
output:
  name: report
  description: The files.
  schema: {type: object, properties: {paths: {type: array}}}
limits: {turns: 5, time: 1.5, tokens: null}
model: small
initial_messages:
  - {role: user, content: 'Look for ${what}'}
---

You find files.

---
Be brief.
";

    let definition = read(text).unwrap().definition;

    assert_eq!((definition.name(), definition.display_name()), ("finder", "The finder"));
    assert_eq!(definition.description(), "Finds files.");
    assert_eq!(definition.parameters()["required"], json!(["what"]));
    assert_eq!((definition.query(), definition.model()), ("Find ${what}", Some("small")));
    assert_eq!(definition.system_prompt(), Some("You find files.\n\n---\nBe brief."));
    assert_eq!(
        (definition.tools().join(" "), definition.groups().join(" ")),
        ("read_file grep".to_owned(), "search files".to_owned())
    );
    assert_eq!(definition.output().unwrap().name, "report");
    let limits = AgentLimits { turns: Some(5), time: Some(Duration::from_millis(1500)), tokens: None };
    assert_eq!(definition.limits(), limits);
    assert_eq!(definition.initial_messages().count(), 1);
}

#[test]
fn a_file_may_have_a_schema_as_inputs() {
    let text = "---\nname: a\ndescription: b\ninputs: {type: object, properties: {n: {type: integer}}}\n---\n";

    let definition = read(text).unwrap().definition;

    assert_eq!(definition.parameters()["properties"]["n"], json!({"type": "integer"}));
    assert_eq!(definition.system_prompt(), None);
}

#[test]
fn an_invalid_file_names_its_field() {
    let with = |more: &str| reason(&format!("---\nname: a\ndescription: b\n{more}\n---\n"));

    assert_eq!(reason("# No front matter\n"), "its first line is not `---`");
    assert_eq!(reason("---\nname: a\n---\n"), "missing `description`");
    assert_eq!(reason("---\n- a\n---\n"), "expected a mapping as front matter");
    assert_eq!(with("toools: x"), "unknown field `toools`: did you mean `tools`?");
    assert_eq!(with("limits: {turns: 0}"), "`limits.turns`: expected an integer >= 1, got 0");
    assert_eq!(with("limits: {time: -1}"), "`limits.time`: expected a number of seconds > 0, got -1");
    assert_eq!(with("inputs: {x: string}"), "`inputs.x`: expected a mapping, got text");
    assert_eq!(with("inputs: {x: {description: d}}"), "`inputs.x`: missing `type`");
    assert_eq!(with("output: {name: x}"), "`output`: missing `schema`");
    let unsupported = "Unsupported input type 'date' for parameter 'x'. \
                       Supported types: string, number, integer, boolean, string[], number[]";
    assert_eq!(with("inputs: {x: {type: date}}"), unsupported);
    assert!(with("inputs: [").starts_with("line 4: "), "{}", with("inputs: ["));
}

#[test]
fn a_folder_reports_each_file_that_is_wrong_and_reads_the_others() {
    let folder = Folder::new();
    for name in ["a.md", "b.md"] {
        folder.write(name, format!("---\nname: {name}\ndescription: d\n---\n"));
    }
    folder.write("c.md", "---\nname: a.md\ndescription: d\n---\n");
    folder.write("d.md", b"---\nname: \xff\n---\n");
    folder.write("README.md", "# Agents\n");
    folder.write("_draft.md", "no agent");
    folder.write("notes.txt", "no agent");

    let agents = AgentFolder::read(&Disk, &folder.0).unwrap();

    let names: Vec<&str> = agents.files().iter().map(|file| file.definition.name()).collect();
    assert_eq!(names, ["a.md", "b.md"]);
    let problems: Vec<String> = agents.problems().iter().map(|problem| problem.reason.clone()).collect();
    assert_eq!(problems, ["the name `a.md` is taken by `a.md`", "it is not UTF-8"]);
}

#[test]
fn a_reloaded_folder_names_the_agents_that_differ() {
    let folder = Folder::new();
    let agent = |name: &str, text: &str| {
        folder.write(&format!("{name}.md"), format!("---\nname: {name}\ndescription: {text}\n---\n"))
    };
    for name in ["gone", "kept", "edited"] {
        agent(name, "d");
    }
    let mut agents = AgentFolder::read(&Disk, &folder.0).unwrap();

    fs::remove_file(folder.0.join("gone.md")).unwrap();
    agent("edited", "e");
    agent("new", "d");
    let changed = agents.reload(&Disk).unwrap();

    assert_eq!(changed, ["edited", "new", "gone"]);
    assert_eq!(agents.reload(&Disk).unwrap(), Vec::<String>::new());
}

#[test]
fn a_folder_that_is_gone_changes_nothing() {
    let folder = Folder::new();
    folder.write("a.md", "---\nname: a\ndescription: d\n---\n");
    let mut agents = AgentFolder::read(&Disk, &folder.0).unwrap();
    drop(folder);

    let refused = agents.reload(&Disk);

    assert!(matches!(refused, Err(Error::MissingFile { .. })), "{refused:?}");
    assert_eq!(agents.files().len(), 1);
}
