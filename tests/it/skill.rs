//! Skills: parsing a `SKILL.md`, and the prompt for an agent.

#![allow(clippy::expect_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use toolcrib::skill::{Skill, Skills, Template};
use toolcrib::{Error, Result};

/// A folder that goes when the test does.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNTER: AtomicUsize = AtomicUsize::new(0);
        let name = format!("toolcrib-skill-{}-{}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a new folder");
        Self(path)
    }

    fn with(text: impl AsRef<[u8]>) -> Self {
        let folder = Self::new();
        fs::write(folder.0.join("SKILL.md"), text).expect("a new file");
        folder
    }

    fn read(&self) -> Result<Skill> {
        Skill::read(self.0.to_str().expect("a path of text"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn fields(text: impl AsRef<[u8]>) -> (String, String) {
    let skill = Folder::with(text).read().expect("a skill");
    (skill.name, skill.description)
}

fn reason(text: impl AsRef<[u8]>) -> String {
    match Folder::with(text).read() {
        Err(Error::SkillFrontMatter { reason, .. }) => reason,
        other => panic!("not refused: {other:?}"),
    }
}

fn pair(name: &str, description: &str) -> (String, String) {
    (name.to_owned(), description.to_owned())
}

#[test]
fn a_skill_says_its_name_and_description_in_any_yaml() {
    assert_eq!(fields("---\nname: pdf\ndescription: Reads PDF files.\n---\n# PDF\n"), pair("pdf", "Reads PDF files."));
    assert_eq!(
        fields("---\n# a comment\n\"name\": 'it''s' # another\ndescription: \"a\\tb: \\u00e9\"\n---"),
        pair("it's", "a\tb: é")
    );
    assert_eq!(fields("---\nname: a\ndescription: >-\n  one\n  two\n\n  three\n---\n"), pair("a", "one two\nthree"));
    assert_eq!(fields("---\nname: a\ndescription: |\n  one\n  two\n---\n"), pair("a", "one\ntwo\n"));
    assert_eq!(fields("---\nname: a\ndescription: one\n  two\n---\n"), pair("a", "one two"));
    assert_eq!(fields("---\n{name: a, description: b}\n---\n"), pair("a", "b"));
    assert_eq!(fields("{\n\t\"name\": \"a\",\n\t\"description\": \"b\"\n}\ntext"), pair("a", "b"));
    assert_eq!(fields("---\nname: 名前\ndescription: 説明 🧰\n---\n"), pair("名前", "説明 🧰"));
}

#[test]
fn values_that_only_look_like_something_else_are_text() {
    assert_eq!(fields("---\nname: 1.10\ndescription: yes\n---\n"), pair("1.10", "yes"));
    assert_eq!(fields("---\nname: 2024-01-02\ndescription: \"null\"\n---\n"), pair("2024-01-02", "null"));
}

#[test]
fn marks_and_line_endings_make_no_difference() {
    assert_eq!(fields("\u{feff}---\r\nname: a\r\ndescription: |\r\n  b\r\n  c\r\n---\r\n"), pair("a", "b\nc\n"));
}

#[test]
fn anchors_and_merged_mappings_are_understood() {
    assert_eq!(fields("---\nname: &n a\ndescription: *n\n---\n"), pair("a", "a"));
    assert_eq!(fields("---\nbase: &b {name: x, description: y}\n<<: *b\nname: a\n---\n"), pair("a", "y"));
    assert_eq!(fields("---\n<<: [{name: x}, {name: z, description: y}]\n---\n"), pair("x", "y"));
    assert_eq!(fields("---\nname: first\nname: last\ndescription: b\n---\n"), pair("last", "b"));
}

#[test]
fn a_field_that_is_missing_is_named() {
    assert_eq!(reason("---\ndescription: b\n---\n"), "`name` is missing or empty");
    assert_eq!(reason("---\nname: a\n---\n"), "`description` is missing or empty");
    assert_eq!(reason("---\nname: ~\ndescription: b\n---\n"), "`name` is missing or empty");
    assert_eq!(reason("---\nname: ' '\ndescription: b\n---\n"), "`name` is missing or empty");
    assert_eq!(reason("---\nname: [a]\ndescription: b\n---\n"), "`name`: expected text, got a list");
    assert_eq!(reason("---\nname: a\ndescription: {b: c}\n---\n"), "`description`: expected text, got a mapping");
    assert_eq!(reason("---\n- name\n---\n"), "`name` is missing or empty");
    assert_eq!(reason("---\n---\n"), "`name` is missing or empty");
}

#[test]
fn front_matter_that_cannot_be_read_says_where() {
    assert_eq!(reason("# Skill\n"), "its first line is not `---`");
    assert_eq!(reason("---\nname: a\n"), "it does not end with a second line `---`");
    assert!(reason("\n---\nname: a\ndescription: Use when: asked\n---\n").starts_with("line 4: "));
    assert!(reason("---\nname: a\n...\nname: b\n---\n").contains("document"));
    assert!(reason("---\nname: *unknown\n---\n").starts_with("line 2: "));
}

#[test]
fn a_name_is_one_line_of_text() {
    for name in ["a\\nb", "a\\u001b[2J", "a\\0", "\\u2028", "a\\x85"] {
        let text = format!("---\nname: \"{name}\"\ndescription: b\n---\n");

        assert!(reason(text).contains("`name`"), "{name}");
    }
    assert!(reason("---\nname: |\n  a\n  b\ndescription: c\n---\n").contains("control character '\\n'"));
}

#[test]
fn front_matter_has_limits() {
    let long = format!("---\nname: a\ndescription: {}\n---\n", "x".repeat(70_000));
    let deep = format!("---\nname: a\ndescription: b\nmore: {}\n---\n", "[".repeat(5_000));
    let nested = (0..200).map(|depth| format!("{}k:", " ".repeat(depth))).collect::<Vec<_>>().join("\n");
    let chain = (1..2_000).map(|at| format!("k{at}: &a{at} {{<<: *a{}}}", at - 1)).collect::<Vec<_>>().join("\n");

    assert_eq!(reason(long), "it does not end within 65536 bytes");
    assert!(reason(deep).starts_with("line 4: "));
    assert!(reason(format!("---\n{nested}\n---\n")).starts_with("line "));
    assert!(reason(format!("---\nk0: &a0 {{name: a, description: b}}\n{chain}\n<<: *a1999\n---\n")).contains("`name`"));
}

#[test]
fn aliases_cannot_grow() {
    let lines =
        (1..1_000).map(|at| format!("a{at}: &a{at} [*a{}, *a{}]", at - 1, at - 1)).collect::<Vec<_>>().join("\n");
    let text = format!("---\na0: &a0 [x, x]\n{lines}\n<<: *a999\nname: a\ndescription: b\n---\n");

    assert_eq!(fields(text), pair("a", "b"));
}

#[test]
fn only_the_beginning_of_a_file_is_read() {
    let mut text = b"---\nname: a\ndescription: b\n---\n".to_vec();
    text.resize(200_000, 0xff);

    assert_eq!(fields(text), pair("a", "b"));
}

#[test]
fn a_folder_must_be_one_and_have_the_file() {
    let empty = Folder::new();
    let folder_as_file = Folder::new();
    fs::create_dir(folder_as_file.0.join("SKILL.md")).expect("a new folder");

    assert!(matches!(Skill::read("/no/such/folder"), Err(Error::SkillDirectory { .. })));
    assert!(matches!(Skill::read(""), Err(Error::SkillDirectory { .. })));
    assert!(matches!(Skill::read("a\0b"), Err(Error::SkillDirectory { .. })));
    assert!(matches!(Skill::read(file!()), Err(Error::SkillDirectory { .. })));
    assert!(matches!(empty.read(), Err(Error::SkillFile { .. })));
    assert!(matches!(folder_as_file.read(), Err(Error::SkillFile { .. })));
}

#[cfg(unix)]
#[test]
fn links_are_followed_to_files_only() {
    use std::os::unix::fs::symlink;
    let real = Folder::with("---\nname: a\ndescription: b\n---\n");
    let (linked, device, dangling) = (Folder::new(), Folder::new(), Folder::new());
    symlink(real.0.join("SKILL.md"), linked.0.join("SKILL.md")).expect("a new link");
    symlink("/dev/zero", device.0.join("SKILL.md")).expect("a new link");
    symlink(Path::new("nowhere"), dangling.0.join("SKILL.md")).expect("a new link");

    assert_eq!(linked.read().map(|skill| skill.name).as_deref(), Ok("a"));
    assert!(matches!(device.read(), Err(Error::SkillFile { .. })));
    assert!(matches!(dangling.read(), Err(Error::SkillFile { .. })));
}

fn skill(name: &str) -> Skill {
    Skill { name: name.to_owned(), description: format!("Does {name}."), dir: format!("/skills/{name}") }
}

#[test]
fn an_agent_without_skills_is_told_nothing() {
    assert_eq!(Skills::default().prompt(), None);
}

#[test]
fn an_agent_is_told_the_instruction_and_every_skill_in_order() {
    let mut skills = Skills::default();
    skills.describe_with(Some("Use these:"), Some("{name} in {dir} ({{{description}}})")).expect("a template");
    skills.insert(skill("b")).expect("a new name");
    skills.insert(skill("a")).expect("a new name");

    let prompt = skills.prompt();

    assert_eq!(prompt.as_deref(), Some("Use these:\nb in /skills/b ({Does b.})\na in /skills/a ({Does a.})"));
}

#[test]
fn what_a_skill_says_is_not_filled_in_again() {
    let mut skills = Skills::default();
    skills.describe_with(Some("{name}"), Some("{description}")).expect("a template");
    skills.insert(Skill { description: "{dir} {{x}}".to_owned(), ..skill("a") }).expect("a new name");

    assert_eq!(skills.prompt().as_deref(), Some("{name}\n{dir} {{x}}"));
}

#[test]
fn empty_texts_stand_for_the_default() {
    let mut skills = Skills::default();
    skills.insert(skill("a")).expect("a new name");
    let default = skills.prompt();

    skills.describe_with(Some(""), Some("")).expect("the default");

    assert_eq!(skills.prompt(), default);
    assert!(default.is_some_and(|prompt| prompt.contains("## a\nDoes a.\nRead `/skills/a/SKILL.md`")));
}

#[test]
fn a_name_is_taken_once() {
    let mut skills = Skills::default();
    skills.insert(skill("a")).expect("a new name");

    assert_eq!(skills.insert(skill("a")), Err(Error::DuplicateSkill { name: "a".to_owned() }));
    assert_eq!(skills.remove("a"), Some(skill("a")));
    assert_eq!(skills.remove("a"), None);
    assert_eq!(skills.insert(skill("a")), Ok(()));
}

#[test]
fn a_template_that_cannot_be_filled_in_says_why() {
    for (template, part) in [
        ("{nam}", "`{nam}`"),
        ("{}", "`{}`"),
        ("{0}", "`{0}`"),
        ("{name!r}", "`{name!r}`"),
        ("{name:>9}", "`{name:>9}`"),
        ("{ name }", "`{ name }`"),
        ("{name", "single `{`"),
        ("name}", "single `}`"),
        ("{name}}", "single `}`"),
    ] {
        let Err(Error::SkillTemplate { reason }) = Template::parse(template) else { panic!("{template} was accepted") };

        assert!(reason.contains(part), "{template}: {reason}");
    }
}

proptest! {
    #[test]
    fn any_text_is_a_template_or_an_error(text in "[{}a-z !]*") {
        let _ = Template::parse(&text);
    }

    #[test]
    fn text_with_its_braces_doubled_is_itself(text: String) {
        let template = Template::parse(&text.replace('{', "{{").replace('}', "}}")).expect("only text");

        prop_assert_eq!(template.fill(&skill("a")), text);
    }

    #[test]
    fn any_front_matter_is_a_skill_or_an_error(text in "(---\n)?([a-z]{1,4}: ?|[ \\-&*!|>'\"{}\\[\\],#\n~<]|name: |description: |---\n){0,40}") {
        let _ = Folder::with(text).read();
    }
}
