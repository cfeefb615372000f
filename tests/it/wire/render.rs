//! Results as providers want to have them back.

use serde_json::{Value, json};
use toolcrib::provider::{ToolResult, to_anthropic, to_gemini, to_mcp, to_openai, to_openai_responses};

fn of(content: &Value) -> ToolResult<'_> {
    ToolResult { content, value: None, is_error: false, id: Some("c1"), is_custom: false, name: Some("weather") }
}

fn mixed() -> Value {
    json!([
        {"type": "text", "text": "sunny"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
        {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
        {"type": "audio", "source": {"type": "base64", "media_type": "audio/wav", "data": "BBBB"}},
        {"type": "video", "source": {"type": "url", "url": "https://example.org/a.mp4"}},
        {"type": "chart", "points": [1]},
    ])
}

#[test]
fn chat_completions_get_text() {
    let content = mixed();

    let message = to_openai(of(&content));

    let text = "sunny\n[image: image/png, 3 bytes]\n[image: https://example.org/a.png]\n[audio: audio/wav, 3 bytes]\n\
                [video: https://example.org/a.mp4]\n{\"type\":\"chart\",\"points\":[1]}";
    assert_eq!(message, json!({"role": "tool", "tool_call_id": "c1", "content": text}));
}

#[test]
fn responses_get_text_or_a_list_with_pictures() {
    let (content, plain) = (mixed(), json!([{"type": "text", "text": "sunny"}, {"type": "text", "text": "warm"}]));

    let rich = to_openai_responses(of(&content));
    let text = to_openai_responses(ToolResult { is_custom: true, ..of(&plain) });

    assert_eq!(rich["type"], "function_call_output");
    assert_eq!(rich["output"][1], json!({"type": "input_image", "image_url": "data:image/png;base64,AAAA"}));
    assert_eq!(rich["output"][2], json!({"type": "input_image", "image_url": "https://example.org/a.png"}));
    assert_eq!(rich["output"][3]["type"], "input_text");
    assert_eq!(text, json!({"type": "custom_tool_call_output", "call_id": "c1", "output": "sunny\nwarm"}));
}

#[test]
fn anthropic_gets_pictures_and_whether_it_failed() {
    let content = mixed();

    let block = to_anthropic(ToolResult { is_error: true, ..of(&content) });

    assert_eq!((&block["tool_use_id"], &block["is_error"]), (&json!("c1"), &json!(true)));
    assert_eq!(block["content"][1], content[1]);
    assert_eq!(block["content"][2], content[2]);
    assert_eq!(block["content"][3], json!({"type": "text", "text": "[audio: audio/wav, 3 bytes]"}));
}

#[test]
fn gemini_gets_the_value_or_the_error_and_media_apart() {
    let (content, value) = (mixed(), json!({"sky": "blue"}));

    let part = to_gemini(ToolResult { value: Some(&value), ..of(&content) });
    let failed = to_gemini(ToolResult { is_error: true, value: Some(&value), ..of(&content) });

    let response = &part["functionResponse"];
    assert_eq!((&response["id"], &response["name"]), (&json!("c1"), &json!("weather")));
    assert_eq!(response["response"], json!({"output": value}));
    assert_eq!(response["parts"][0], json!({"inlineData": {"mimeType": "image/png", "data": "AAAA"}}));
    assert_eq!(response["parts"].as_array().map(Vec::len), Some(2));
    assert!(failed["functionResponse"]["response"]["error"].as_str().unwrap().starts_with("sunny\n[image: https"));
}

#[test]
fn mcp_gets_every_block_and_the_value() {
    let (content, value) = (mixed(), json!([1]));

    let result = to_mcp(ToolResult { value: Some(&value), ..of(&content) });
    let failed = to_mcp(ToolResult { value: Some(&value), is_error: true, ..of(&content) });

    assert_eq!(result["content"][1], json!({"type": "image", "data": "AAAA", "mimeType": "image/png"}));
    assert_eq!(result["content"][3], json!({"type": "audio", "data": "BBBB", "mimeType": "audio/wav"}));
    assert_eq!(
        result["content"][4],
        json!({"type": "resource_link", "uri": "https://example.org/a.mp4", "name": "video"})
    );
    assert_eq!((&result["structuredContent"], &result["isError"]), (&json!({"result": [1]}), &json!(false)));
    assert_eq!((failed.get("structuredContent"), &failed["isError"]), (None, &json!(true)));
}

#[test]
fn plain_text_and_nothing_are_content_too() {
    assert_eq!(to_openai(of(&json!("hi")))["content"], "hi");
    assert_eq!(to_anthropic(of(&json!([])))["content"], json!([]));
    assert_eq!(to_openai(ToolResult { id: None, ..of(&json!([])) }), json!({"role": "tool", "content": ""}));
}
