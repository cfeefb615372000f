//! Conditions on arguments, and what a model could try to get around them.

use serde_json::{Value, json};
use toolcrib::policy::{CallFacts, Decision};

use super::decision;

/// True if a rule that denies matches a call of its tool.
fn denies(conditions: &Value, arguments: &Value) -> bool {
    let rule = json!({"tool": "t", "arguments": conditions, "decision": "deny"});
    decision(&[rule], &CallFacts::of("t"), arguments) == Decision::Deny
}

/// True if a rule that allows matches a call of its tool.
fn allows(conditions: &Value, arguments: &Value) -> bool {
    let allowing = json!({"tool": "t", "arguments": conditions, "decision": "allow", "priority": 1});
    let closing = json!({"tool": "t", "decision": "deny"});
    decision(&[allowing, closing], &CallFacts::of("t"), arguments) == Decision::Allow
}

#[test]
fn each_operator_tells_what_fits_from_what_does_not() {
    for (condition, fitting, others) in [
        (json!("ls"), vec![json!("ls")], vec![json!("ls "), json!(["ls"]), json!(null)]),
        (json!({"equals": 1}), vec![json!(1), json!(1.0)], vec![json!(true), json!(1.5)]),
        (
            json!({"equals": {"a": [1, {"b": 2}]}}),
            vec![json!({"a": [1.0, {"b": 2}]})],
            vec![json!({"a": [1, {"b": 2, "c": 3}]})],
        ),
        (json!({"not_equals": "safe"}), vec![json!("other"), json!(1)], vec![json!("safe")]),
        (json!({"in": ["a", 2]}), vec![json!("a"), json!(2.0)], vec![json!("b"), json!(3)]),
        (json!({"prefix": "/tmp/"}), vec![json!("/tmp/x")], vec![json!("/tmp"), json!("x/tmp/"), json!(["/tmp/"])]),
        (json!({"suffix": ".py"}), vec![json!("a.py")], vec![json!("a.pyc"), json!(1)]),
        (json!({"contains": "rm"}), vec![json!("a rm b"), json!(["rm"])], vec![json!("r m"), json!(["a rm"])]),
        (json!({"contains": 2}), vec![json!([1, 2.0])], vec![json!("2"), json!(2)]),
        (
            json!({"glob": "/etc/*.conf"}),
            vec![json!("/etc/a/b.conf")],
            vec![json!("/etc/b.conf~"), json!("x/etc/b.conf")],
        ),
        (json!({"glob": "exact"}), vec![json!("exact")], vec![json!("exact ")]),
        (json!({"matches": "^rm\\s"}), vec![json!("rm -r")], vec![json!("ls\nrm"), json!("arm x")]),
        (json!({"matches": "secret"}), vec![json!("a secret b")], vec![json!("Secret")]),
        (json!({"gt": 10}), vec![json!(10.5), json!(1e30)], vec![json!(10), json!(-11), json!("9")]),
        (json!({"ge": 10, "lt": 20}), vec![json!(10), json!(19.9)], vec![json!(9.99), json!(20)]),
        (json!({"le": 0.1}), vec![json!(0.1), json!(-5)], vec![json!(0.11)]),
        (json!({"exists": true}), vec![json!(null), json!(0), json!("")], vec![]),
        (json!({"absent": false}), vec![json!(null)], vec![]),
        (json!({"type": "integer"}), vec![json!(1), json!(2.0)], vec![json!(1.5), json!("1")]),
        (json!({"type": ["null", "array"]}), vec![json!(null), json!([])], vec![json!({})]),
        (json!({"type": "number"}), vec![json!(1), json!(1.5)], vec![json!(true)]),
    ] {
        let conditions = json!({"x": condition});
        for value in fitting {
            assert!(
                denies(&conditions, &json!({"x": value})) && allows(&conditions, &json!({"x": value})),
                "{condition} {value}"
            );
        }
        for value in others {
            assert!(
                !denies(&conditions, &json!({"x": value})) && !allows(&conditions, &json!({"x": value})),
                "{condition} {value}"
            );
        }
    }
}

#[test]
fn a_text_that_is_a_number_is_one_for_a_rule_that_denies_and_not_for_one_that_allows() {
    for (condition, value) in [
        (json!({"equals": 1}), json!("1")),
        (json!({"in": ["a", 2]}), json!("2")),
        (json!({"suffix": "1"}), json!(1)),
        (json!({"gt": 10}), json!("11")),
    ] {
        let conditions = json!({"x": condition});

        assert!(denies(&conditions, &json!({"x": value})), "{condition} {value}");
        assert!(!allows(&conditions, &json!({"x": value})), "{condition} {value}");
    }
}

#[test]
fn a_rule_is_never_about_a_call_without_the_arguments_it_names() {
    for condition in [
        json!("a"),
        json!({"not_equals": "a"}),
        json!({"matches": ""}),
        json!({"glob": "*"}),
        json!({"exists": true}),
        json!({"type": "null"}),
        json!({"le": 10}),
    ] {
        let conditions = json!({"x": condition});
        for arguments in [json!({}), json!({"y": "a"}), json!({"X": "a"}), Value::Null] {
            assert!(!denies(&conditions, &arguments) && !allows(&conditions, &arguments), "{condition} {arguments}");
        }
    }
}

#[test]
fn that_an_argument_is_missing_can_be_a_condition() {
    for conditions in [json!({"x": {"exists": false}}), json!({"x": {"absent": true}})] {
        assert!(denies(&conditions, &json!({"y": 1})) && denies(&conditions, &Value::Null));
        assert!(!denies(&conditions, &json!({"x": null})));
    }
}

#[test]
fn conditions_on_several_arguments_have_to_hold_together() {
    let conditions = json!({"a": 1, "b.c": {"prefix": "x"}, "/d/0": true});

    assert!(denies(&conditions, &json!({"a": 1, "b": {"c": "xy"}, "d": [true]})));
    for arguments in [
        json!({"a": 2, "b": {"c": "xy"}, "d": [true]}),
        json!({"a": 1, "b": {"c": "y"}, "d": [true]}),
        json!({"a": 1, "b": {"c": "xy"}, "d": []}),
        json!({"a": 1, "b.c": "xy", "d": [true]}),
    ] {
        assert!(!denies(&conditions, &arguments), "{arguments}");
    }
}

#[test]
fn a_rule_that_denies_is_met_by_any_item_and_one_that_allows_by_all_of_them() {
    let conditions = json!({"files[*].path": {"prefix": "/tmp/"}});
    let files = |paths: &[&str]| json!({"files": paths.iter().map(|path| json!({"path": path})).collect::<Vec<_>>()});

    assert!(denies(&conditions, &files(&["/tmp/a", "/etc/b"])) && !allows(&conditions, &files(&["/tmp/a", "/etc/b"])));
    assert!(denies(&conditions, &files(&["/tmp/a"])) && allows(&conditions, &files(&["/tmp/a"])));
    assert!(!denies(&conditions, &files(&["/etc/b"])) && !allows(&conditions, &files(&["/etc/b"])));
    assert!(!denies(&conditions, &files(&[])) && !allows(&conditions, &files(&[])));
    let partly = json!({"files": [{"path": "/tmp/a"}, {"uri": "/etc/b"}]});
    assert!(denies(&conditions, &partly) && !allows(&conditions, &partly));
}

#[test]
fn that_items_lack_something_is_read_widely_too() {
    let conditions = json!({"files[*].path": {"exists": false}});
    let partly = json!({"files": [{"path": "/tmp/a"}, {"uri": "/etc/b"}]});

    assert!(denies(&conditions, &partly) && !allows(&conditions, &partly));
    assert!(allows(&conditions, &json!({"files": [{"uri": "x"}]})));
}

#[test]
fn text_that_looks_like_json_does_not_pass_for_an_argument() {
    let conditions = json!({"command": {"prefix": "git "}});

    for arguments in [
        json!({"note": "\"command\":\"git log\"", "command": "rm"}),
        json!({"note": {"command": "git log"}, "command": "rm"}),
        json!({"command\u{200b}": "git log", "command": "rm"}),
        json!({"command": ["git log"]}),
        json!({"command": {"": "git log"}}),
    ] {
        assert!(!allows(&conditions, &arguments), "{arguments}");
    }
}

#[test]
fn a_pattern_over_all_arguments_is_searched_in_their_canonical_text() {
    let matches = |pattern: &str, arguments: &Value| {
        let rule = json!({"tool": "t", "args_pattern": pattern, "decision": "deny"});
        decision(&[rule], &CallFacts::of("t"), arguments) == Decision::Deny
    };

    assert!(matches("\"a\":1,\"b\":2", &json!({"b": 2, "a": 1})));
    assert!(matches("rm -rf", &json!({"command": "rm -rf /"})));
    assert!(!matches("rm -rf", &Value::Null));
    assert!(matches(r#"\0"command":"git [a-z]+"\0"#, &json!({"command": "git log", "z": {}})));
    assert!(!matches(r#"\0"command":"git [a-z]+"\0"#, &json!({"z": {"command": "git log"}, "command": "rm"})));
}

#[test]
fn hostile_arguments_take_time_that_grows_with_their_size_only() {
    let text = "a".repeat(1 << 20);
    let deep = (0..128).fold(json!(1), |inner, _| json!({ "a": inner }));
    let wide = json!({"x": vec![json!({"y": "z"}); 50_000]});

    assert!(!denies(&json!({"x": {"matches": "^(a+)+$"}}), &json!({"x": format!("{text}!")})));
    assert!(!denies(&json!({"x": {"matches": "(.*a){20}b"}}), &json!({"x": text})));
    assert!(!denies(&json!({"x": {"glob": "*a*a*a*a*a*a*a*a*b"}}), &json!({"x": text})));
    assert!(!denies(&json!({"a.a.a": 1}), &deep));
    assert!(!denies(&json!({"x[*].y": "q"}), &wide));
}
