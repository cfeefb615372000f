//! Values by their declared type.

use serde_json::json;

use super::{call, only, tool};

#[test]
fn text_stays_text_where_text_is_declared() {
    let find = tool(&json!({"zip": {"type": "string"}, "version": {"type": "string"}, "flag": {"type": "string"}}));

    let call = only(&call("<zip>01234</zip><version>1.10</version><flag>true</flag>"), Some(&find));

    assert_eq!(call.arguments, json!({"zip": "01234", "version": "1.10", "flag": "true"}));
}

#[test]
fn scalars_become_what_is_declared() {
    let find = tool(&json!({
        "i": {"type": "integer"}, "n": {"type": "number"}, "b": {"type": "boolean"}, "z": {"type": "null"},
        "e": {"enum": ["fast", 3]}, "u": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    }));
    let params = "<i><![CDATA[ 42 ]]></i><n>2.5</n><b>\nTrue\n</b><z>null</z><e>3</e><u>7</u>";

    let call = only(&call(params), Some(&find));

    assert_eq!(call.arguments, json!({"i": 42, "n": 2.5, "b": true, "z": null, "e": 3, "u": 7}));
}

#[test]
fn what_does_not_fit_is_left_to_the_check() {
    let find = tool(&json!({"i": {"type": "integer"}}));

    let call = only(&call("<i>many</i><other>x</other>"), Some(&find));

    assert_eq!(call.arguments, json!({"i": "many", "other": "x"}));
    assert_eq!(call.error, None);
}

#[test]
fn lists_and_objects_may_be_json_or_elements() {
    let find = tool(&json!({
        "tags": {"type": "array", "items": {"type": "string"}},
        "rows": {"type": "array", "items": {"$ref": "#/properties/row"}},
        "row": {"type": "object", "properties": {"a": {"type": "integer"}, "zip": {"type": "string"}}},
    }));
    let written = "<tags>[\"1\", \"2\"]</tags><rows><row><a>1</a><zip>02134</zip></row><row><a>2</a></row></rows>\
                   <row><![CDATA[{\"a\": \"3\"}]]></row>";

    let call = only(&call(written), Some(&find));

    let rows = json!([{"a": 1, "zip": "02134"}, {"a": 2}]);
    assert_eq!(call.arguments, json!({"tags": ["1", "2"], "rows": rows, "row": {"a": 3}}));
}

#[test]
fn an_element_for_each_item_is_a_list_too() {
    let find = tool(&json!({"url": {"type": "array", "items": {"type": "string"}}, "n": {"type": "integer"}}));

    let call = only(&call("<url>a</url><url>b</url><url>c</url>"), Some(&find));

    assert_eq!(call.arguments, json!({"url": ["a", "b", "c"]}));
    assert!(!call.has_duplicate_keys);
}

#[test]
fn a_key_that_comes_twice_is_told() {
    let find = tool(&json!({"n": {"type": "integer"}}));

    let call = only(&call("<n>1</n><n>2</n>"), Some(&find));

    assert_eq!(call.arguments, json!({"n": 2}));
    assert!(call.has_duplicate_keys);
}

#[test]
fn markup_in_declared_text_is_text() {
    let find = tool(&json!({"html": {"type": "string"}, "n": {"type": "integer"}}));
    let written = "<html>hello <b class='x'>bold</b><br> &amp; <!-- kept --> end</html><n>1</n>";

    let call = only(&call(written), Some(&find));

    assert_eq!(call.arguments, json!({"html": "hello <b class='x'>bold</b><br> & <!-- kept --> end", "n": 1}));
}

#[test]
fn blanks_count_inside_of_cdata_only() {
    let find = tool(&json!({"old": {"type": "string"}, "new": {"type": "string"}}));

    let call = only(&call("<old>\n  <![CDATA[    return 1\n]]>\n</old><new>\n  plain\n</new>"), Some(&find));

    assert_eq!(call.arguments, json!({"old": "    return 1\n", "new": "plain"}));
}

#[test]
fn code_may_hold_anything_in_cdata() {
    let find = tool(&json!({"code": {"type": "string"}}));
    let code = "if a < b && c > d: print('</code></params></tool_call><tool_call>')";

    let call = only(&call(&format!("<code><![CDATA[{code}]]></code>")), Some(&find));

    assert_eq!(call.arguments, json!({"code": code}));
    assert_eq!(call.repairs, []);
}

#[test]
fn a_schema_that_refers_to_itself_over_and_over_takes_no_time() {
    let again = json!({"anyOf": [{"$ref": "#/properties/a"}, {"$ref": "#/properties/a"}, {"$ref": "#/properties/a"}]});
    let find = tool(&json!({"a": again}));

    let call = only(&call("<a>01</a>"), Some(&find));

    assert_eq!(call.arguments, json!({"a": "01"}));
}

#[test]
fn nested_text_is_declared_as_well() {
    let find =
        tool(&json!({"o": {"type": "object", "properties": {"html": {"type": "string"}, "n": {"type": "integer"}}}}));

    let call = only(&call("<o><html><p>x</p></html><n>3</n></o>"), Some(&find));

    assert_eq!(call.arguments, json!({"o": {"html": "<p>x</p>", "n": 3}}));
}

#[test]
fn a_single_element_is_a_list_only_by_its_name_or_its_type() {
    let find = tool(&json!({"l": {"type": "array"}, "d": {"type": "object"}, "u": {}}));
    for (written, expected) in [
        ("<u><x>1</x></u>", json!({"u": {"x": "1"}})),
        ("<u><item>1</item></u>", json!({"u": ["1"]})),
        ("<u><x>1</x><x>2</x></u>", json!({"u": ["1", "2"]})),
        ("<d><item>1</item></d>", json!({"d": {"item": "1"}})),
        ("<l><x>1</x></l>", json!({"l": ["1"]})),
    ] {
        assert_eq!(only(&call(written), Some(&find)).arguments, expected, "{written}");
    }
    assert_eq!(only(&call("<u><x>1</x></u>"), None).arguments, json!({"u": {"x": 1}}));
}
