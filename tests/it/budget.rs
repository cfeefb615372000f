//! Budgets of results: what is left of texts that are too long.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use serde_json::{Value, json};
use toolcrib::call::{
    ChunkMode, Cut, CutKind, ResultBudget, STRUCTURED_CONTENT, Spending, ToolResponse, estimate_tokens,
};

fn cut(text: &str, most: usize) -> Cut {
    let cut = ResultBudget::characters(most).cut(text, None).unwrap();
    assert!(cut.text.chars().count() <= most, "{} of {most}: {}", cut.text.chars().count(), cut.text);
    cut
}

fn json_of(cut: &Cut) -> Value {
    assert_eq!(cut.kind, CutKind::Json);
    serde_json::from_str(&cut.text).unwrap_or_else(|error| panic!("{error}: {}", cut.text))
}

#[test]
fn a_text_that_fits_stays_as_it_is() {
    assert_eq!(ResultBudget::characters(5).cut("größe", None), None);
    assert_eq!(ResultBudget::tokens(3).cut("größe", None), None);
}

#[test]
fn an_array_keeps_its_first_items_and_says_how_many_there_were() {
    let items: Vec<Value> = (0..480).map(|id| json!({"id": id, "name": format!("item {id}")})).collect();

    let cut = cut(&json!(items).to_string(), 400);

    let left = json_of(&cut);
    let (note, shown) = left.as_array().unwrap().split_last().unwrap();
    assert_eq!(shown, &items[..shown.len()]);
    assert!(shown.len() >= 10);
    assert_eq!(*note, json!(format!("[{} of 480 items; narrow the request to see more]", shown.len())));
    assert_eq!((cut.shown, cut.total, cut.unit), (shown.len(), 480, "items"));
}

#[test]
fn a_large_member_does_not_hide_its_siblings() {
    let document = json!({
        "log": "x".repeat(5_000),
        "rows": (0..900).collect::<Vec<u32>>(),
        "nested": {"deep": {"values": (0..900).collect::<Vec<u32>>()}},
        "status": "ok",
        "count": 900,
    });

    let left = json_of(&cut(&document.to_string(), 600));

    assert_eq!(left["status"], "ok");
    assert_eq!(left["count"], 900);
    assert!(left["log"].as_str().unwrap().ends_with(" of 5000 characters]"));
    assert!(left["rows"].as_array().unwrap().len() > 10);
    assert!(left["nested"]["deep"]["values"].as_array().unwrap().len() > 10);
    assert_eq!(left["…"], "[all 5 members, some cut; narrow the request to see more]");
}

#[test]
fn an_object_with_too_many_members_keeps_the_first_ones() {
    let members: serde_json::Map<String, Value> = (0..500).map(|at| (format!("key{at}"), json!(at))).collect();

    let left = json_of(&cut(&Value::Object(members).to_string(), 300));

    let left = left.as_object().unwrap();
    assert_eq!(left["key0"], 0);
    assert!(left["…"].as_str().unwrap().contains(" of 500 members; "));
}

#[test]
fn the_note_takes_the_place_of_no_member() {
    let document = format!(r#"{{"…": 1, "text": "{}"}}"#, "x".repeat(500));

    let left = json_of(&cut(&document, 200));

    assert_eq!(left["…"], 1);
    assert!(left["……"].as_str().unwrap().starts_with('['));
}

#[test]
fn spaces_are_left_out_before_values_are() {
    let document = json!({"a": [1, 2, 3], "b": {"c": "x y"}});
    let pretty = serde_json::to_string_pretty(&document).unwrap();

    let cut = cut(&pretty, document.to_string().len());

    assert_eq!(cut.text, document.to_string());
    assert_eq!((cut.shown, cut.total), (2, 2));
}

#[test]
fn escapes_and_digits_are_never_split() {
    let long = r#"\ud83d\ude00\u00e9\n\"\\ab"#.repeat(60);
    let document = format!(r#"["{}", 12345678901234567890123456789012345678901234567890.5, "{long}"]"#, "a".repeat(50));

    for most in 60..400 {
        json_of(&cut(&document, most));
    }
}

#[test]
fn documents_of_one_line_each_stay_so() {
    let lines: Vec<String> = (0..300).map(|id| json!({"id": id, "text": "word"}).to_string()).collect();

    let cut = cut(&lines.join("\r\n"), 300);

    let left: Vec<Value> = cut.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(left[0], json!({"id": 0, "text": "word"}));
    assert!(left.last().unwrap()["…"].as_str().unwrap().contains(" of 300 lines; "));
}

#[test]
fn nesting_of_any_depth_is_cut() {
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let members = format!("{}1{}", "{\"a\":".repeat(200_000), "}".repeat(200_000));

    for document in [deep, members] {
        json_of(&cut(&document, 500));
    }
}

#[test]
fn a_table_keeps_its_header_and_its_first_and_last_rows() {
    let rows = (0..480).map(|row| format!("| {row} | name {row} |\n")).collect::<Vec<_>>().concat();
    let table = format!("| id | name |\n|----|------|\n{rows}");

    let cut = cut(&table, 500);

    assert!(cut.text.starts_with("| id | name |\n|----|------|\n| 0 | name 0 |\n"));
    assert!(cut.text.ends_with("| 479 | name 479 |\n"));
    assert!(cut.text.contains(&format!("\n[480 rows, {} shown; ", cut.shown)));
    assert_eq!(cut.text.lines().filter(|line| line.contains("name ")).count(), cut.shown + 1);
}

#[test]
fn a_row_with_line_breaks_in_quotation_marks_stays_whole() {
    let rows = (0..200).map(|row| format!("{row},\"two\r\nlines, {row}\",3\r\n")).collect::<Vec<_>>().concat();

    let cut = cut(&format!("id,text,n\r\n{rows}"), 300);

    assert_eq!(cut.kind, CutKind::Table);
    assert_eq!(cut.total, 200);
    assert!(cut.text.starts_with("id,text,n\r\n0,\"two\r\nlines, 0\",3\r\n"));
    assert!(cut.text.ends_with("199,\"two\r\nlines, 199\",3\r\n"));
    assert_eq!(cut.text.matches('"').count(), 2 * cut.shown);
}

#[test]
fn a_log_keeps_its_errors_and_folds_similar_lines() {
    let mut lines: Vec<String> = (0..300).map(|at| format!("2026-01-02 10:00:{:02} INFO step {at}", at % 60)).collect();
    lines.extend((0..50).map(|at| format!("2026-01-02 10:06:{at:02} DEBUG {}", ["ping", "pong"][at % 2])));
    lines.insert(200, "2026-01-02 10:03:20 ERROR disk is full".to_owned());
    lines.insert(325, "2026-01-02 10:06:20 WARN slow".to_owned());
    lines.push("2026-01-02 10:09:00 INFO bye".to_owned());

    let cut = cut(&lines.join("\n"), 900);

    assert_eq!(cut.kind, CutKind::Log);
    for line in [&lines[0], &lines[200], &lines[325], lines.last().unwrap()] {
        assert!(cut.text.contains(line.as_str()), "{line}: {}", cut.text);
    }
    assert!(cut.text.contains("[… 198 similar lines …]"), "{}", cut.text);
    assert!(cut.text.ends_with(&format!("[{} of 353 lines; narrow the request to see more]", cut.shown)));
}

#[test]
fn a_diff_keeps_the_headers_of_its_files_and_hunks() {
    let hunk = |at: usize| format!("@@ -{at},2 +{at},2 @@\n-old {at} {}\n+new {at}\n same\n", "x".repeat(60));
    let file = |name: &str, hunks: usize| {
        let hunks: String = (1..=hunks).map(|at| hunk(at * 10)).collect();
        format!("diff --git a/{name} b/{name}\nindex 1..2 100644\n--- a/{name}\n+++ b/{name}\n{hunks}")
    };
    let diff = format!(
        "A message.\n\n{}{}{}",
        file("one", 9),
        "diff --git a/i.png b/i.png\nBinary files differ\n",
        file("two", 2)
    );

    let cut = cut(&diff, 1000);

    assert_eq!((cut.kind, cut.total, cut.unit), (CutKind::Diff, 11, "hunks"));
    assert!(cut.text.starts_with("A message.\n\ndiff --git a/one b/one\n"));
    assert!(cut.text.contains("Binary files differ\n"));
    assert_eq!(cut.text.matches("@@ -").count(), 11);
    assert!(cut.text.contains("+new 10\n") && !cut.text.contains("+new 90\n"));
    assert_eq!(cut.text.matches("+++ b/two\n@@ -10,2 +10,2 @@\n-old 10").count(), 1);
    assert!(cut.text.contains(" of 9 hunks, "));
    assert!(cut.text.contains(&format!("[{} of 11 hunks in 3 of 3 files; ", cut.shown)));
}

#[test]
fn a_hunk_that_does_not_fit_keeps_its_first_lines() {
    let lines = (0..200).map(|line| format!("+line {line}\n")).collect::<Vec<_>>().concat();

    let cut = cut(&format!("--- /dev/null\n+++ b/new\n@@ -0,0 +1,200 @@\n{lines}"), 500);

    assert!(cut.text.starts_with("--- /dev/null\n+++ b/new\n@@ -0,0 +1,200 @@\n+line 0\n+line 1\n"));
    assert!(cut.text.chars().count() > 400);
    let shown = cut.text.matches("+line").count();
    assert!(cut.text.contains(&format!("\n[0 of 1 hunks, {} lines left out]\n", 200 - shown)));
}

#[test]
fn a_diff_of_many_files_keeps_the_first_ones() {
    let file = |at: usize| format!("--- a/file{at}\n+++ b/file{at}\n@@ -1 +1 @@\n-a\n+b\n");
    let diff: String = (0..90).map(file).collect();

    let cut = cut(&diff, 400);

    assert!(cut.text.starts_with("--- a/file0\n+++ b/file0\n"));
    assert!(cut.text.contains(" of 90 files; "));
}

#[test]
fn text_keeps_its_beginning_and_its_end_at_line_ends() {
    let lines = (0..400).map(|line| format!("Line number {line} of a story.\r\n")).collect::<Vec<_>>().concat();

    let cut = cut(&lines, 600);

    assert_eq!(cut.kind, CutKind::Text);
    let (head, tail) = cut.text.split_once("\r\n[").unwrap();
    assert!(head.ends_with(" of a story."));
    assert!(tail.ends_with("Line number 399 of a story.\r\n"));
    let (_, tail) = tail.split_once("]\n").unwrap();
    assert!(tail.starts_with("Line number "));
}

#[test]
fn text_of_one_line_is_cut_at_sentences() {
    let text = "Here is a sentence. ".repeat(100);

    let cut = cut(&text, 300);

    assert!(cut.text.starts_with("Here is a sentence. "));
    let (head, _) = cut.text.split_once("\n[").unwrap();
    assert!(head.ends_with("sentence."));
}

#[test]
fn letters_with_marks_and_line_breaks_of_two_characters_are_not_split() {
    let text = "e\u{301}👩🏽\u{200D}💻\r\n".repeat(100);

    for most in 1..60 {
        let left = cut(&text, most).text;

        let left = left.trim_end_matches('…');
        assert!(!left.ends_with(['\r', 'e', '\u{200D}', '👩']), "{left:?}");
    }
}

#[test]
fn the_note_names_the_way_to_the_whole() {
    let whole = Some(r#"read_artifact(id="r1")"#);
    let budget = ResultBudget::characters(200);

    let text = budget.cut(&"word ".repeat(1000), whole).unwrap();
    let array = budget.cut(&json!(vec!["word"; 1000]).to_string(), whole).unwrap();
    let string = budget.cut(&json!("word ".repeat(1000)).to_string(), whole).unwrap();

    assert!(text.text.contains(r#" of 5000 characters; read the rest with read_artifact(id="r1")]"#));
    let array: Vec<String> = serde_json::from_str(&array.text).unwrap();
    assert!(array.last().unwrap().ends_with(r#" of 1000 items; read the rest with read_artifact(id="r1")]"#));
    let string: String = serde_json::from_str(&string.text).unwrap();
    assert!(string.ends_with(r#" of 5000 characters; read the rest with read_artifact(id="r1")]"#));
}

#[test]
fn tokens_are_estimated_by_script() {
    assert_eq!(estimate_tokens(""), 0);
    assert_eq!(estimate_tokens("a quick fox"), 3);
    assert_eq!(estimate_tokens("12345678"), 6);
    assert_eq!(estimate_tokens("größe"), 3);
    assert_eq!(estimate_tokens("привет"), 3);
    assert_eq!(estimate_tokens("日本語で"), 5);
    assert_eq!(estimate_tokens("😀😀"), 6);
}

#[test]
fn a_budget_in_tokens_is_used_well() {
    let text = "日本語の文章です。".repeat(500) + &"An English sentence. ".repeat(500);

    let cut = ResultBudget::tokens(400).cut(&text, None).unwrap();

    let used = estimate_tokens(&cut.text);
    assert!((300..=400).contains(&used), "{used}");
}

#[test]
fn tokens_may_be_counted_by_a_function_of_the_program() {
    let words = |text: &str| text.split_whitespace().count();
    let budget = ResultBudget::tokens(100).counted_by(words);

    let cut = budget.cut(&"word ".repeat(5000), None).unwrap();

    let used = words(&cut.text);
    assert!((80..=100).contains(&used), "{used}");
    let hopeless = ResultBudget::tokens(1).counted_by(|_| 7);
    assert_eq!(hopeless.cut("text", None).unwrap().text, "");
}

#[test]
fn the_smaller_of_two_budgets_holds() {
    let both = ResultBudget::characters(300).and(ResultBudget::characters(200)).and(ResultBudget::tokens(90));

    assert_eq!((both.most_characters(), both.most_tokens()), (Some(200), Some(90)));
    let cut = both.cut(&"日本".repeat(500), None).unwrap();
    assert!(cut.text.chars().count() <= 200 && estimate_tokens(&cut.text) <= 90);
}

#[test]
fn ten_megabytes_of_any_structure_are_cut() {
    let megabytes = 10 * 1024 * 1024;
    let texts = [
        "x".repeat(megabytes),
        "\n".repeat(megabytes),
        format!("[{}1]", "1,".repeat(megabytes / 2)),
        format!("[{}[]]", "[],".repeat(megabytes / 3)),
        format!("\"{}\"", "\\n".repeat(megabytes / 2)),
        format!("id,b\n{}", "1,2\n".repeat(megabytes / 4)),
        "2026-01-02 INFO a\n".repeat(megabytes / 18),
        format!("--- a\n+++ b\n{}", "@@ -1 +1 @@\n-a\n+b\n".repeat(megabytes / 18)),
        "{\"a\":1}\n".repeat(megabytes / 8),
        "\"".repeat(megabytes),
        format!("a,b\n{}", "\"\n".repeat(megabytes / 2)),
    ];

    for text in texts {
        for most in [100, 20_000] {
            cut(&text, most);
        }
    }
}

#[test]
fn additions_end_where_the_budget_does_and_the_last_response_is_cut_by_itself() {
    let (budget, mut spending) = (ResultBudget::characters(200), Spending::default());
    let chunk = "A line of text.\n";
    let mut appended = String::new();

    for _ in 0..50 {
        match spending.cut(&budget, &[chunk], ChunkMode::Addition, None) {
            None => appended.push_str(chunk),
            Some(cut) => appended.extend(cut.texts.into_iter().flatten()),
        }
    }
    let last = spending.cut(&budget, &[&chunk.repeat(50)], ChunkMode::Result, None).unwrap();

    assert!(appended.chars().count() <= 200);
    assert!(appended.ends_with("\n[the rest of this stream is left out]"));
    assert!(appended.matches(chunk).count() >= 9);
    assert_eq!((last.report.total, last.report.characters), (800, 800));
    assert!(last.texts[0].as_ref().unwrap().chars().count() <= 200);
}

#[test]
fn additions_after_a_result_count_from_its_size() {
    let (budget, mut spending) = (ResultBudget::characters(200), Spending::default());
    assert_eq!(spending.cut(&budget, &[&"x".repeat(150)], ChunkMode::Result, None), None);

    let cut = spending.cut(&budget, &[&"y".repeat(40)], ChunkMode::Addition, None).unwrap();

    assert!(150 + cut.texts[0].as_ref().unwrap().len() <= 200);
    assert_eq!(spending.cut(&budget, &["progress"], ChunkMode::Progress, None), None);
    assert_eq!(spending.cut(&budget, &["short"], ChunkMode::Result, None), None);
    assert_eq!(spending.cut(&budget, &["more"], ChunkMode::Addition, None), None);
}

#[test]
fn blocks_of_text_share_the_budget() {
    let (budget, mut spending) = (ResultBudget::characters(500), Spending::default());
    let long = "A sentence. ".repeat(200);

    let cut = spending.cut(&budget, &["short", &long, &long], ChunkMode::Result, None).unwrap();

    let texts: Vec<&str> = cut.texts.iter().flatten().map(String::as_str).collect();
    assert_eq!(texts[0], "short");
    assert!(texts[1..].iter().all(|text| text.chars().count() > 150));
    assert!(texts.join("\n").chars().count() <= 500);
}

#[test]
fn structured_content_is_cut_as_json_and_the_value_stays_whole() {
    let structured = json!({"rows": (0..500).collect::<Vec<u32>>(), "next": null});
    let budget = ResultBudget::characters(120);
    let response = ToolResponse::of_text("500 rows")
        .with_metadata(STRUCTURED_CONTENT, structured.clone())
        .with_metadata("value", structured.clone());

    let cut = response.with_structured_within(&budget, None);

    let metadata = cut.metadata.clone().unwrap();
    let left = &metadata[STRUCTURED_CONTENT];
    assert_eq!(cut.text(), "500 rows");
    assert!(left.to_string().chars().count() <= 120, "{left}");
    assert_eq!((&left["rows"][0], &left["next"]), (&json!(0), &Value::Null));
    assert_eq!((&metadata["value"], &metadata["budget"]["kind"]), (&structured, &json!("json")));
    assert_eq!(cut.clone().with_structured_within(&budget, None), cut);
}

/// Texts that look like every structure, whole or damaged.
fn any_text() -> impl Strategy<Value = String> {
    let value = any_json().prop_map(|value| value.to_string());
    let pretty = any_json().prop_map(|value| serde_json::to_string_pretty(&value).unwrap());
    let lines = prop_oneof![
        "\\PC{0,20}",
        "[a-z]{1,4},[0-9]{1,3},\"[a-z\n]{0,4}\"",
        "\\| [a-z]{1,5} \\| [0-9]{1,3} \\|",
        Just("|---|---|".to_owned()),
        "2026-01-02 10:00:0[0-9] (INFO|ERROR|WARN) [a-c]{1,3}",
        "(--- a|\\+\\+\\+ b|diff --git|@@ -1,[0-9] \\+1,[0-9] @@|[ +-][a-z]{0,9})",
        "[\\[{\\]}\",:0-9a-z\\\\]{0,12}",
        any_json().prop_map(|value| value.to_string()),
    ];
    let lines = (prop::collection::vec(lines, 0..60), prop_oneof![Just("\n"), Just("\r\n")])
        .prop_map(|(lines, end)| lines.join(end));
    let repeated = (
        prop_oneof![
            "[a-z]{1,4},[0-9]{1,3}\n",
            "2026-01-02 10:00:0[0-9] INFO [a-c]{1,3}\n",
            "@@ -1 \\+1 @@\n-a\n\\+b\n",
            "\\PC{0,9}\r?\n?",
        ],
        1..80_usize,
        prop_oneof![Just(""), Just("--- a\n+++ b\n"), Just("| a | b |\n|---|---|\n")],
    )
        .prop_map(|(line, times, header)| format!("{header}{}", line.repeat(times)));
    prop_oneof![value, pretty, lines, repeated, "\\PC{0,400}"]
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,40}".prop_map(Value::from),
        "[\\x00-\\x7f😀é\"\\\\]{0,80}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 80, 12, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..12).prop_map(Value::from),
            prop::collection::vec(("\\PC{0,8}", inner), 0..12)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_text_is_cut_to_its_budget_or_stays(text in any_text(), most in 0_usize..500, whole in prop::option::of("[a-z(\"=)]{0,30}")) {
        let size = text.chars().count();

        let cut = ResultBudget::characters(most).cut(&text, whole.as_deref());

        prop_assert_eq!(cut.is_none(), size <= most);
        if let Some(cut) = cut {
            prop_assert!(cut.text.chars().count() <= most, "{:?}", cut);
            prop_assert!(cut.shown <= cut.total, "{:?}", cut);
        }
    }

    #[test]
    fn any_document_stays_a_document(value in any_json(), most in 2_usize..600, is_pretty: bool) {
        let text = if is_pretty { serde_json::to_string_pretty(&value).unwrap() } else { value.to_string() };

        if let Some(cut) = ResultBudget::characters(most).cut(&text, Some("read_artifact(id=\"x\")"))
            && (value.is_array() || value.is_object() || value.is_string())
        {
            let left: Result<Value, _> = serde_json::from_str(&cut.text);
            prop_assert!(left.is_ok(), "{}", cut.text);
        }
    }

    #[test]
    fn any_text_is_cut_to_its_tokens(text in any_text(), most in 0_usize..100) {
        let budget = ResultBudget::tokens(most);

        if let Some(cut) = budget.cut(&text, None) {
            prop_assert!(estimate_tokens(&cut.text) <= most, "{:?}", cut);
        } else {
            prop_assert!(estimate_tokens(&text) <= most);
        }
    }

    #[test]
    fn any_stream_is_within_its_budget(
        chunks in prop::collection::vec((prop::collection::vec(any_text(), 0..4), 0..3_usize), 0..12),
        most in 0_usize..400,
        in_tokens: bool,
    ) {
        let limit = if in_tokens { ResultBudget::tokens(most) } else { ResultBudget::characters(most) };
        let size = |text: &str| if in_tokens { estimate_tokens(text) } else { text.chars().count() };
        let mut spending = Spending::default();
        let mut appended: Vec<String> = Vec::new();

        for (texts, mode) in chunks {
            let mode = ChunkMode::ALL[mode];
            let given: Vec<&str> = texts.iter().map(String::as_str).collect();
            let left = match spending.cut(&limit, &given, mode, None) {
                None => texts.clone(),
                Some(cut) => {
                    prop_assert_eq!(cut.texts.len(), texts.len());
                    cut.texts.into_iter().flatten().collect()
                }
            };
            match mode {
                ChunkMode::Progress => {}
                ChunkMode::Addition => appended.push(left.join("\n")),
                ChunkMode::Result => appended = vec![left.join("\n")],
            }
            let total = size(&appended.concat());
            prop_assert!(total <= most, "{} of {}: {:?}", total, most, appended);
        }
    }
}
