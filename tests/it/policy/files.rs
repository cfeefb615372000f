//! Policy files: loading, problems, and that no problem allows anything.

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;
use serde_json::json;
use toolcrib::Error;
use toolcrib::policy::{CallFacts, Decision, Effect, Policy, PolicyFile, PolicyProblem, Rule, Tier, append, canonical};
use toolcrib::store::Disk;

use super::{decided, rule};
use crate::approval::Place;

fn written(place: &Place, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let path = place.path().join(name);
    fs::write(&path, text).expect("a new file");
    path
}

/// The policy of one file of the project, which allows calls that no rule matches.
fn loaded(text: impl AsRef<[u8]>) -> (Policy, Vec<PolicyProblem>) {
    let place = Place::new();
    let path = written(&place, "policy.toml", text);
    Policy::from_files(vec![PolicyFile::new(Tier::Project, path)], Decision::Allow)
}

/// The problems of a file as text, without its folder.
fn told(problems: &[PolicyProblem]) -> Vec<String> {
    let texts = problems.iter().map(ToString::to_string);
    texts.map(|text| text.split_once("policy.toml").map_or(text.clone(), |(_, rest)| rest.to_owned())).collect()
}

const GOOD: &str = r#"
# What this project may do.
[[rule]]
id = "no-force-push"
tool = ["shell", "git__*"]
decision = "deny"
priority = 100
reason = "Force pushes are done by hand."
arguments = { command = { matches = 'push\s.*--force' }, "env[*]" = { exists = true } }
match = [{ tool = "shell", arguments = { command = "git push --force", env = ["A"] } }]
not_match = ["git__push"]

[[rule]]
server = "github"
kind = "read"
decision = "allow"

[rule.arguments]
limit = { le = 100, ge = 0.5 }
since.type = "string"
"#;

#[test]
fn rules_are_read_with_their_tier_and_place() {
    let (policy, problems) = loaded(GOOD);

    assert_eq!(told(&problems), Vec::<String>::new());
    let rules = policy.rules();
    assert_eq!(rules.iter().map(|rule| rule.id()).collect::<Vec<_>>(), ["no-force-push", "project-2"]);
    assert!(rules.iter().all(|rule| rule.tier() == Tier::Project));
    let lines: Vec<_> =
        rules.iter().filter_map(|rule| rule.origin()).map(|origin| (origin.line, origin.index)).collect();
    assert_eq!(lines, [(3, 1), (13, 2)]);
    let subject = CallFacts { server: Some("github"), kind: toolcrib::policy::ToolKind::Read, ..CallFacts::of("list") };
    assert!(rules[1].matches(&subject, &json!({"limit": 100, "since": "today"})));
    assert!(!rules[1].matches(&subject, &json!({"limit": 101, "since": "today"})));
}

#[test]
fn tiers_go_before_each_other_whatever_order_the_files_come_in() {
    let place = Place::new();
    let file = |name: &str, decision: &str| {
        written(&place, name, format!("[[rule]]\ntool = \"x\"\ndecision = \"{decision}\"\npriority = 7\n"))
    };
    let sources = vec![
        PolicyFile::new(Tier::Admin, file("admin.toml", "ask")),
        PolicyFile::new(Tier::Default, file("default.toml", "deny")),
        PolicyFile::new(Tier::User, file("user.toml", "allow")),
    ];

    let (policy, problems) = Policy::from_files(sources, Decision::Deny);

    assert!(problems.is_empty());
    let tiers: Vec<_> = policy.rules().iter().map(|rule| rule.tier()).collect();
    assert_eq!(tiers, [Tier::Admin, Tier::User, Tier::Default]);
    assert_eq!(decided(&policy, &CallFacts::of("x")).decision, Decision::Ask);
}

#[test]
fn a_mistake_is_told_with_file_line_rule_field_reason_and_what_to_do() {
    let (_, problems) = loaded(
        "[[rule]]\ntool = \"a\"\ndecision = \"allow\"\n\n[[rule]]\nid = \"second\"\ntool = \"b\"\ndecision = \"dney\"\n\
         [rule.arguments]\n\"x.y\" = { gt = \"1\" }\n",
    );

    assert_eq!(
        told(&problems),
        [
            ":8: rule 2 (`second`): `decision`: unknown decision `dney` (did you mean `deny`?); calls that the rule matches are denied",
            ":10: rule 2 (`second`): `arguments.x.y.gt`: expected a number, got a string; calls that the rule matches are denied",
        ]
    );
    let first = &problems[0];
    assert_eq!((first.line, first.rule, first.id.as_deref()), (Some(8), Some(2), Some("second")));
    assert_eq!((first.field.as_deref(), first.effect), (Some("decision"), Effect::Denied));
    assert_eq!(first.tier, Tier::Project);
}

/// True for each of the tools `a` and `b` that a policy of one file allows.
fn open(text: &str) -> (bool, bool) {
    let (policy, problems) = loaded(text);
    assert!(!problems.is_empty(), "{text}");
    let is_open = |tool: &str| decided(&policy, &CallFacts::of(tool)).decision == Decision::Allow;
    (is_open("a"), is_open("b"))
}

#[test]
fn a_rule_that_cannot_be_used_opens_nothing() {
    for (rule, expected) in [
        // Ignored: it allows, or it is in shadow mode.
        ("tool = \"a\"\ndecision = \"allow\"\npriority = -1", (true, true)),
        ("tool = \"a\"\ndecision = \"deny\"\nshadow = true\npriority = -1", (true, true)),
        // Replaced by a rule that denies the same calls, as far as it could be parsed.
        ("tool = \"a\"\ndecision = \"deny\"\npriority = -1", (false, true)),
        ("tool = \"a\"\ndecision = \"ask\"\nreason = 1", (false, true)),
        ("tool = \"a\"\ndecision = \"dny\"", (false, true)),
        ("tool = \"a\"\ndecison = \"allow\"", (false, true)),
        ("tool = \"a\"\ndecision = 1979-05-27", (false, true)),
        ("tool = \"a\"\ndecision = \"deny\"\narguments = { x = { matches = \"(\" } }", (false, true)),
        ("tool = \"a\"\ndecision = \"deny\"\narguments = { x = 1979-05-27 }", (false, true)),
        ("tool = \"a\"\ndecision = \"deny\"\narguments = { x = nan }", (false, true)),
        ("tool = \"a\"\ndecision = \"deny\"\ntier = \"admin\"", (false, true)),
        ("tool = \"a\"\ndecision = \"deny\"\nshadow = \"yes\"", (false, true)),
        ("tool = \"a\"\ndecision = \"deny\"\nnot_match = [\"a\"]", (false, true)),
        // Everything is denied: none of its conditions is valid, or can be trusted.
        ("tools = \"a\"\ndecision = \"deny\"", (false, false)),
        ("tool = [\"a\", 1]\ndecision = \"deny\"", (false, false)),
        ("tool = \"a[\"\ndecision = \"ask\"", (false, false)),
        ("decision = \"deny\"", (false, false)),
        ("tool = \"a\"\ndecision = \"deny\"\nmatch = [\"b\"]", (false, false)),
    ] {
        assert_eq!(open(&format!("[[rule]]\n{rule}\n")), expected, "{rule}");
    }
}

#[test]
fn what_stands_in_for_a_rule_has_its_place_in_the_order() {
    let with = |broken: &str| {
        let text =
            format!("[[rule]]\ntool = \"a\"\ndecision = \"allow\"\npriority = 500\n[[rule]]\ntool = \"a\"\n{broken}\n");
        let (policy, _) = loaded(text);
        decided(&policy, &CallFacts::of("a")).decision
    };

    assert_eq!(with("decision = \"dny\"\npriority = 100"), Decision::Allow);
    assert_eq!(with("decision = \"dny\"\npriority = 600"), Decision::Deny);
    assert_eq!(with("decision = \"deny\"\npriority = \"low\""), Decision::Deny);
}

#[test]
fn a_file_that_cannot_be_read_closes_its_tier() {
    for (text, expected) in [
        (b"[[rule]\n".to_vec(), ":1: invalid TOML: "),
        (b"a = 1\na = 2\n".to_vec(), ":2: invalid TOML: duplicate key"),
        (b"[[rule]]\ntool = \"\xff\"\n".to_vec(), ": invalid UTF-8 at byte 17"),
        (
            b"[rule]\ntool = \"a\"\ndecision = \"deny\"\n".to_vec(),
            ":1: `rule` is not a list of tables (write `[[rule]]`)",
        ),
        (b"rule = [1]\n".to_vec(), ":1: rule 1: expected a table of fields"),
        (b"[[rules]]\ntool = \"a\"\ndecision = \"deny\"\n".to_vec(), ":1: unknown key `rules` (did you mean `rule`?)"),
        (vec![b'#'; (1 << 20) + 1], ": the file is larger than 1048576 bytes"),
        ([b"a = ".to_vec(), b"[".repeat(100_000)].concat(), ":1: invalid TOML: "),
    ] {
        let (policy, problems) = loaded(&text);

        let told = told(&problems);
        assert!(told[0].starts_with(expected), "{told:?}");
        assert!(told[0].ends_with("; every call is denied unless a stronger tier allows it"), "{told:?}");
        assert_eq!(decided(&policy, &CallFacts::of("a")).decision, Decision::Deny);
        policy.add(rule(&json!({"tool": "a", "decision": "allow", "tier": "user"}))).expect("a new rule");
        assert_eq!(decided(&policy, &CallFacts::of("a")).decision, Decision::Allow);
    }
}

#[test]
fn a_missing_file_closes_its_tier_unless_it_may_be_missing() {
    let place = Place::new();
    let source = PolicyFile::new(Tier::User, place.path().join("missing.toml"));

    let (closed, problems) = Policy::from_files(vec![source.clone()], Decision::Allow);
    let (open, none) = Policy::from_files(vec![source.optional()], Decision::Allow);
    let (folder, refused) = Policy::from_files(vec![PolicyFile::new(Tier::User, place.path())], Decision::Allow);

    assert!(problems[0].to_string().contains("the file does not exist"));
    assert_eq!(decided(&closed, &CallFacts::of("a")).decision, Decision::Deny);
    assert!(none.is_empty());
    assert_eq!(decided(&open, &CallFacts::of("a")).decision, Decision::Allow);
    assert_eq!(refused.len(), 1);
    assert_eq!(decided(&folder, &CallFacts::of("a")).decision, Decision::Deny);
}

#[test]
fn a_rule_whose_id_is_taken_is_used_under_another_one() {
    let text = "[[rule]]\nid = \"x\"\ntool = \"a\"\ndecision = \"deny\"\n[[rule]]\nid = \"x\"\ntool = \"b\"\ndecision = \"deny\"\n";

    let (policy, problems) = loaded(text);

    assert_eq!(
        told(&problems),
        [":5: rule 2 (`x`): `id`: the id is taken by another rule (the rule is used as `x-2`)"]
    );
    assert_eq!(decided(&policy, &CallFacts::of("b")).rule().map(|rule| rule.id().to_owned()), Some("x-2".to_owned()));
}

#[test]
fn reading_files_again_changes_everything_or_nothing() {
    let place = Place::new();
    let path = written(&place, "policy.toml", "[[rule]]\ntool = \"a\"\ndecision = \"deny\"\n");
    let (policy, _) = Policy::from_files(vec![PolicyFile::new(Tier::Project, &path)], Decision::Allow);
    policy.add(rule(&json!({"id": "mine", "tool": "c", "decision": "deny"}))).expect("a new rule");
    let state = |policy: &Policy| ["a", "b", "c"].map(|tool| decided(policy, &CallFacts::of(tool)).decision);

    fs::write(&path, "[[rule]]\ntool = \"b\"\ndecision = \"deny\"\n[[rule]]\n").expect("a bad file");
    let problems = policy.reload().expect_err("what is wrong");

    assert_eq!(problems.len(), 2);
    assert_eq!(state(&policy), [Decision::Deny, Decision::Allow, Decision::Deny]);
    fs::write(&path, "[[rule]]\ntool = \"b\"\ndecision = \"ask\"\n").expect("a good file");
    policy.reload().expect("good files");
    assert_eq!(state(&policy), [Decision::Allow, Decision::Ask, Decision::Deny]);
}

#[test]
fn a_rule_is_written_as_it_is_read() {
    let fields = json!({
        "id": "r", "tool": ["a", "b\\*"], "decision": "ask", "priority": 3, "reason": "say \"why\"\nhere", "shadow": true,
        "arguments": {"x.y": {"gt": 1.5, "type": "number"}, "[\"a b\"]": ["é", {"k": 1}]}, "args_pattern": "\\0\"a\"",
        "not_match": ["c"],
    });
    let place = Place::new();
    let text = rule(&fields).to_toml().expect("TOML");
    let path = written(&place, "policy.toml", &text);

    let (policy, problems) = Policy::from_files(vec![PolicyFile::new(Tier::Default, path)], Decision::Allow);

    assert!(problems.is_empty(), "{problems:?} {text}");
    let mut expected = fields;
    expected["tier"] = json!("default");
    assert_eq!(policy.rules()[0].to_value(), expected);
}

#[test]
fn a_rule_with_a_value_that_toml_lacks_is_not_written() {
    for value in [json!(null), json!([1, null]), serde_json::from_str("123456789012345678901234567890").expect("JSON")]
    {
        let rule = rule(&json!({"id": "r", "tool": "a", "decision": "deny", "arguments": {"x": {"equals": value}}}));

        assert!(matches!(rule.to_toml(), Err(Error::InvalidRule { .. })));
    }
}

#[test]
fn a_rule_that_is_added_to_a_file_leaves_what_is_there() {
    let place = Place::new();
    let path = written(&place, "user.toml", GOOD.trim_end());
    let source = PolicyFile::new(Tier::User, &path);
    let (policy, _) = Policy::from_files(vec![source.clone()], Decision::Deny);
    let always = rule(&json!({"id": "always-mail", "tool": "mail", "decision": "allow", "priority": 950}));

    policy.add_to_file(source.clone(), always.clone()).expect("a saved rule");
    policy
        .add_to_file(source.clone(), rule(&json!({"tool": "mail", "decision": "allow", "priority": 950})))
        .expect("known");

    let text = fs::read_to_string(&path).expect("the file");
    assert!(text.starts_with(GOOD.trim_end()));
    assert_eq!(text.matches("[[rule]]").count(), 3);
    assert_eq!(decided(&policy, &CallFacts::of("mail")).decision, Decision::Allow);
    policy.reload().expect("good files");
    assert_eq!(policy.rules().len(), 3);
    assert_eq!(policy.rule("always-mail").expect("the rule").tier(), Tier::User);
}

#[test]
fn a_file_that_is_not_there_is_made_for_a_rule() {
    let place = Place::new();
    let path = place.path().join("user.toml");
    let policy = Policy::default();

    let added = policy
        .add_to_file(PolicyFile::new(Tier::User, &path), rule(&json!({"tool": "a", "decision": "deny"})))
        .expect("a saved rule");

    let (again, problems) = Policy::from_files(vec![PolicyFile::new(Tier::User, path)], Decision::Allow);
    assert!(problems.is_empty());
    assert_eq!(again.rules()[0].to_value(), added.to_value());
    policy.reload().expect("the new file");
    assert_eq!(policy.rules().len(), 1);
}

#[test]
fn a_rule_is_remembered_in_the_file_of_its_tier() {
    let place = Place::new();
    let path = place.path().join("user.toml");
    let always = || rule(&json!({"tool": "mail", "decision": "allow", "tier": "user", "priority": 950}));
    let (policy, _) = Policy::from_files(vec![PolicyFile::new(Tier::User, &path).optional()], Decision::Ask);
    let (other, _) = Policy::from_files(vec![], Decision::Ask);

    for policy in [&policy, &other] {
        for _ in 0..2 {
            policy.remember(always()).expect("a rule");
        }
    }

    assert_eq!(fs::read_to_string(&path).expect("the file").matches("[[rule]]").count(), 1);
    policy.reload().expect("good files");
    for policy in [policy, other] {
        assert_eq!(policy.rules().len(), 1);
        assert_eq!(decided(&policy, &CallFacts::of("mail")).decision, Decision::Allow);
    }
}

#[test]
fn rules_that_were_remembered_do_not_clash_with_those_of_the_program() {
    let place = Place::new();
    let path = place.path().join("user.toml");
    let start = || {
        let (policy, problems) = Policy::from_files(vec![PolicyFile::new(Tier::User, &path).optional()], Decision::Ask);
        policy.add(rule(&json!({"tool": "a", "decision": "ask"}))).expect("a rule without an id");
        (policy, problems)
    };
    let (first, _) = start();
    first.remember(rule(&json!({"tool": "mail", "decision": "allow", "tier": "user"}))).expect("a rule");

    let (second, problems) = start();
    second.remember(rule(&json!({"tool": "post", "decision": "allow", "tier": "user"}))).expect("a rule");

    assert!(problems.is_empty());
    assert_eq!((first.reload(), second.reload()), (Ok(()), Ok(())));
    assert_eq!((first.rules().len(), second.rules().len()), (3, 3));
}

#[test]
fn a_file_that_cannot_be_added_to_stays_as_it_is() {
    let place = Place::new();
    for text in ["[[rule]", "rule = [{ tool = \"a\", decision = \"deny\" }]\n", "[rule]\ntool = \"a\"\n"] {
        let path = written(&place, "user.toml", text);
        let policy = Policy::default();

        let refused =
            policy.add_to_file(PolicyFile::new(Tier::User, &path), rule(&json!({"tool": "a", "decision": "allow"})));

        assert!(matches!(refused, Err(Error::InvalidPolicyFile { .. })), "{refused:?}");
        assert_eq!(fs::read_to_string(&path).expect("the file"), text);
        assert!(policy.rules().is_empty());
    }
}

fn any_rule() -> impl Strategy<Value = Rule> {
    let text = "[a-zé\"'\\\\ \n\t#=\\[\\]{}.*\u{7f}-]{1,12}";
    let names = prop::collection::vec("[a-z_*?é ]{1,8}", 1..4);
    let value = prop_oneof![
        any::<i64>().prop_map(|number| json!(number)),
        any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(|number| json!(number)),
        text.prop_map(|text| json!(text)),
        any::<bool>().prop_map(|flag| json!(flag)),
    ];
    let arguments = prop::collection::btree_map("[a-z\"= ]{1,6}", value, 1..4);
    let decision = prop::sample::select(Decision::ALL.to_vec());
    (names, text, arguments, decision, 0..=999u16).prop_map(|(names, reason, arguments, decision, priority)| {
        let arguments: serde_json::Map<_, _> =
            arguments.into_iter().map(|(key, value)| (format!("[{}]", json!(key)), json!({"equals": value}))).collect();
        rule(&json!({"tool": names, "reason": reason, "arguments": arguments, "decision": decision.as_str(), "priority": priority}))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_rules_that_are_added_to_a_file_are_read_back(rules in prop::collection::vec(any_rule(), 1..4)) {
        let place = Place::new();
        let path = place.path().join("user.toml");
        let mut expected = Vec::new();

        for rule in &rules {
            if append(&Disk, &path, rule).expect("an added rule") {
                expected.push(canonical(&rule.to_value()));
            }
        }

        let (policy, problems) = Policy::from_files(vec![PolicyFile::new(Tier::Default, &path)], Decision::Allow);
        prop_assert!(problems.is_empty(), "{:?}", problems);
        let mut read: Vec<_> = policy.rules();
        read.sort_by_key(|rule| rule.origin().map(|origin| origin.index));
        let read: Vec<_> = read.iter().map(|rule| {
            let mut value = rule.to_value();
            value.as_object_mut().expect("fields").shift_remove("id");
            canonical(&value)
        }).collect();
        prop_assert_eq!(read, expected);
    }

    #[test]
    fn no_file_whatsoever_opens_a_tool_that_a_stronger_tier_closes(text in ".{0,200}") {
        let (policy, _) = loaded(text);
        policy.add(rule(&json!({"tool": "a", "decision": "deny", "tier": "user"}))).expect("a new rule");

        prop_assert_eq!(decided(&policy, &CallFacts::of("a")).decision, Decision::Deny);
    }
}

#[test]
fn a_misspelt_field_never_puts_a_rule_behind_those_it_is_there_to_stop() {
    let place = Place::new();
    for wrong in ["priorty = 900", "priority = \"high\"", "priority = 1000", "Priority = 900\nreason = \"no\""] {
        let deny = format!("[[rule]]\ntool = \"shell\"\ndecision = \"deny\"\n{wrong}\n");
        let allow = "[[rule]]\ntool = \"shell\"\ndecision = \"allow\"\npriority = 999\n";
        let path = written(&place, "project.toml", deny + allow);

        let (policy, problems) = Policy::from_files(vec![PolicyFile::new(Tier::Project, path)], Decision::Allow);

        assert_eq!(problems.len(), 1, "{problems:?}");
        assert_eq!(decided(&policy, &CallFacts::of("shell")).decision, Decision::Deny, "{wrong}");
        assert_eq!(decided(&policy, &CallFacts::of("mail")).decision, Decision::Allow);
    }
}
