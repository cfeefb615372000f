//! Results as the system that this format comes from wrote them, for programs that rely on its very bytes.
//!
//! Nothing is escaped, and what has no text is left out: use [`format_tool_result`](super::format_tool_result) wherever the
//! content is not your own.

/// What a tool gave, with the text of each value already decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shown {
    /// A value as text.
    Text(String),
    /// The items of a list.
    List(Vec<Shown>),
    /// Values by key.
    Entries(Vec<(String, Shown)>),
}

/// Writes a result without escaping anything; an empty text is no data, and an empty error no error.
#[must_use]
pub fn format_plain(name: &str, success: bool, data: &Shown, error: &str) -> String {
    let mut lines =
        vec!["<tool_result>".to_owned(), format!("  <name>{name}</name>"), format!("  <success>{success}</success>")];
    let data = text(data);
    if !data.is_empty() {
        lines.push("  <data>".to_owned());
        lines.extend(data.split('\n').map(|line| format!("    {line}")));
        lines.push("  </data>".to_owned());
    }
    if !error.is_empty() {
        lines.push(format!("  <error>{error}</error>"));
    }
    lines.push("</tool_result>".to_owned());
    lines.join("\n")
}

fn text(shown: &Shown) -> String {
    match shown {
        Shown::Text(text) => text.clone(),
        Shown::List(items) => joined(items.iter().map(|item| element("item", item))),
        Shown::Entries(entries) => {
            joined(entries.iter().map(|(key, value)| element(&key.replace([' ', '-'], "_"), value)))
        }
    }
}

fn element(name: &str, value: &Shown) -> String {
    match value {
        Shown::Text(text) => format!("<{name}>{text}</{name}>"),
        Shown::List(_) | Shown::Entries(_) => format!("<{name}>\n{}\n</{name}>", text(value)),
    }
}

fn joined(elements: impl Iterator<Item = String>) -> String {
    elements.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_indented_once_and_nothing_is_escaped() {
        let text = |text: &str| Shown::Text(text.to_owned());
        let data = Shown::Entries(vec![
            ("page title".to_owned(), text("a < b")),
            (
                "top-hits".to_owned(),
                Shown::List(vec![text("one\ntwo"), Shown::Entries(vec![("n".to_owned(), text("0"))])]),
            ),
        ]);

        let result = format_plain("search", true, &data, "");

        assert_eq!(
            result,
            "<tool_result>\n  <name>search</name>\n  <success>true</success>\n  <data>\n    <page_title>a < b</page_title>\n    \
             <top_hits>\n    <item>one\n    two</item>\n    <item>\n    <n>0</n>\n    </item>\n    </top_hits>\n  </data>\n\
             </tool_result>"
        );
    }

    #[test]
    fn what_has_no_text_is_left_out() {
        let result = format_plain("ping", false, &Shown::Text(String::new()), "no answer");

        assert_eq!(
            result,
            "<tool_result>\n  <name>ping</name>\n  <success>false</success>\n  <error>no answer</error>\n</tool_result>"
        );
    }
}
