//! What is mended, and what is not.

use serde_json::{Value, json};
use toolcrib::call::RepairKind;

use super::{call, only, tool};

fn strings() -> Value {
    json!({"a": {"type": "string"}, "b": {"type": "string"}, "items": {"type": "array", "items": {"type": "string"}}})
}

#[test]
fn what_was_mended_is_listed() {
    let find = tool(&strings());
    let both = json!({"a": "1", "b": "2"});
    for (text, arguments, repairs) in [
        (call("<a><![CDATA[1]]><b><![CDATA[2]]></b>"), both.clone(), vec!["a: the closing tag of <a> was missing"]),
        (call("<a>1<b>2</b>"), both.clone(), vec!["a: the closing tag of <a> was missing"]),
        (
            call("<a>1<b>2"),
            both.clone(),
            vec!["a: the closing tag of <a> was missing", "b: the closing tag of <b> was missing"],
        ),
        (
            "<tool_call><name>t</name><params><a>1</a><b>2</b></tool_call>".to_owned(),
            both.clone(),
            vec![": the closing tag of <params> was missing"],
        ),
        (
            "<tool_call><name>t<params><a>1</a><b>2</b></params></tool_call>".to_owned(),
            both.clone(),
            vec![": the closing tag of <name> was missing"],
        ),
        (
            "<tool_call><t><a>1</a><b>2</b></t></tool_call>".to_owned(),
            both.clone(),
            vec![": the tool's name t was used as a tag instead of <name>"],
        ),
        (
            "<tool_call><t><params><a>1</a><b>2</b></params></t></tool_call>".to_owned(),
            both.clone(),
            vec![": the tool's name t was used as a tag instead of <name>"],
        ),
        (
            "<tool_call name=\"t\"><params><a>1</a><b>2</b></params></tool_call>".to_owned(),
            both.clone(),
            vec![": the name stood in the tag <tool_call>"],
        ),
        (
            "<tool_call><name=t><params><a>1</a><b>2</b></params></tool_call>".to_owned(),
            both.clone(),
            vec![": <name> was written in another way"],
        ),
        (
            call("<a=1><b=\"2\"/>"),
            both.clone(),
            vec!["a: <a> was written in another way", "b: <b> was written in another way"],
        ),
        (
            call("<a=<![CDATA[1]]></a><b=2</b>"),
            both.clone(),
            vec!["a: <a> was written in another way", "b: <b> was written in another way"],
        ),
        (
            call("<parameter=a>1</parameter><param name=\"b\">2</param>"),
            both.clone(),
            vec!["a: <a> was written in another way", "b: <b> was written in another way"],
        ),
        (
            "<tool_call><name>t</name><a>1</a><b>2</b></tool_call>".to_owned(),
            both.clone(),
            vec![": <a> stood outside of <params>", ": <b> stood outside of <params>"],
        ),
        (call("{\"a\": \"1\", \"b\": \"2\"}"), both, vec![": the parameters were written as JSON"]),
        (call("<a>x < y && z</a>"), json!({"a": "x < y && z"}), vec!["a: a bare & or < was taken as it is"]),
        (
            call("<items><item><![CDATA[1]]><item><![CDATA[2]]></item></items>"),
            json!({"items": ["1", "2"]}),
            vec!["items.item: the closing tag of <item> was missing"],
        ),
    ] {
        let call = only(&text, Some(&find));

        let listed: Vec<String> =
            call.repairs.iter().map(|repair| format!("{}: {}", repair.at, repair.text())).collect();
        assert_eq!(call.error, None, "{text}");
        assert_eq!(call.arguments, arguments, "{text}");
        assert_eq!(listed, repairs, "{text}");
    }
}

#[test]
fn what_could_be_meant_in_two_ways_is_an_error() {
    let find = tool(&strings());
    for (text, what) in [
        (call("<a>1</b>"), "</b> stands where </a> is expected"),
        (call("<a>1<c>2</c>"), "<a> is not closed"),
        (call("<items>x<item>1</item></items>"), "<items> has both text and tags in it"),
        (call("some words"), "<params> has text in it instead of tags"),
        (call("<a>1</a> and <b>2</b>"), "there is text between the tags of <params>"),
        (call("<a=1>2</a>"), "<a> has one value in its tag and another inside"),
        ("<tool_call><params><a>1</a></params></tool_call>".to_owned(), "the call has no <name>"),
        ("<tool_call><name> </name></tool_call>".to_owned(), "<name> is empty"),
        ("<tool_call><name>t</name><c>1</c></tool_call>".to_owned(), "<c> stands outside of <params>"),
        (
            call("<items><item><tool_call><name>t</name></tool_call></item></items>x"),
            "there is text between the tags of <params>",
        ),
    ] {
        let call = only(&text, Some(&find));

        assert_eq!(call.error.expect("an error").what, what, "{text}");
        assert_eq!(call.arguments, json!({}), "{text}");
    }
}

#[test]
fn repairs_have_a_kind() {
    let call = only(&call("<a>x & y</a><b><![CDATA[1]]>"), None);

    let kinds: Vec<RepairKind> = call.repairs.iter().map(|repair| repair.what).collect();
    assert_eq!(kinds, [RepairKind::Markup, RepairKind::Tag]);
}

#[test]
fn a_value_in_an_attribute_is_taken_or_told_and_never_dropped() {
    let find = tool(&strings());
    for written in
        ["<a value='x &amp; y'/>", "<a type=\"string\" value=\"x &amp; y\"></a>", "<a text='' value='x & y'/>"]
    {
        let read = only(&call(written), Some(&find));

        assert_eq!(read.arguments, json!({"a": "x & y"}), "{written}");
        assert_eq!(read.repairs[0].text(), "the value of <a> stood in an attribute", "{written}");
    }
    for written in ["<a text=\"abc\"></a>", "<a content='abc'/>"] {
        let error = only(&call(written), Some(&find)).error.expect("an error");

        assert!(error.what.starts_with("<a> is empty, and something stands in its attribute"), "{written}");
    }
    for (written, value) in [("<a type='string'></a>", ""), ("<a class='x'>1</a>", "1")] {
        assert_eq!(only(&call(written), Some(&find)).arguments, json!({"a": value}), "{written}");
    }
}
