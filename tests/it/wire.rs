//! Calls as providers write them, and results as they want to have them back.

#![allow(clippy::expect_used, clippy::unwrap_used)]

mod render;

use serde_json::{Value, json};
use toolcrib::call::RepairKind;
use toolcrib::provider::{WireFormat, read, read_all};
use toolcrib::text::{CallFormat, read_all_text, read_text};

fn calls() -> Vec<(&'static str, Value)> {
    let text = "{\"city\": \"Bern\", \"days\": 3}";
    let object = json!({"city": "Bern", "days": 3});
    vec![
        ("anthropic", json!({"type": "tool_use", "id": "c1", "name": "weather", "input": object})),
        ("anthropic", json!({"type": "tool_use", "id": "c1", "name": "weather", "input": {}, "raw_input": text})),
        ("openai", json!({"id": "c1", "type": "function", "function": {"name": "weather", "arguments": text}})),
        ("openai", json!({"id": "c1", "index": 0, "function": {"name": "weather", "arguments": object}})),
        (
            "openai_responses",
            json!({
                "type": "function_call", "id": "fc_1", "call_id": "c1", "name": "weather", "arguments": text, "status": "completed",
            }),
        ),
        ("gemini", json!({"functionCall": {"id": "c1", "name": "weather", "args": object}})),
        ("gemini", json!({"text": null, "function_call": {"id": "c1", "name": "weather", "args": object}})),
        ("bedrock", json!({"toolUse": {"toolUseId": "c1", "name": "weather", "input": object}})),
        ("bedrock", json!({"toolUseId": "c1", "name": "weather", "input": object})),
        (
            "mcp",
            json!({"jsonrpc": "2.0", "id": "c1", "method": "tools/call", "params": {"name": "weather", "arguments": object}}),
        ),
        ("bare", json!({"id": "c1", "name": "weather", "arguments": text})),
        ("bare", json!({"id": "c1", "name": "weather", "parameters": object})),
        ("bare", json!({"id": "c1", "name": "weather", "args": object, "type": "tool_call"})),
        ("bare", json!({"type": null, "id": "c1", "name": "weather", "args": object})),
        ("bare", json!({"type": "function", "id": "c1", "name": "weather", "parameters": object})),
        ("bare", json!({"type": "agent.custom_tool_use", "id": "c1", "name": "weather", "input": object})),
        ("bare", json!({"call_id": "c1", "name": "weather", "params": object})),
        ("bare", json!({"tool_call_id": "c1", "name": "weather", "input": text})),
    ]
}

fn pieces() -> Vec<Value> {
    let first = json!({"index": 0, "id": "c1", "type": "function", "function": {"name": "weather", "arguments": ""}});
    let whole = json!({"index": 0, "id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}});
    let chunk = |call: &Value| {
        json!({
            "object": "chat.completion.chunk",
            "choices": [{"index": 0, "finish_reason": null, "delta": {"role": "assistant", "tool_calls": [call]}}],
        })
    };
    let item = |status: &str| json!({"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}", "status": status});
    let parts = json!([{"jsonPath": "$.city", "stringValue": "Be"}]);
    let untyped = json!({"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}"});
    let start = json!({"toolUseId": "c1", "name": "weather"});
    let block = json!({"type": "tool_use", "id": "c1", "name": "weather", "input": {}});
    vec![
        json!({"contentBlockIndex": 1, "start": {"toolUse": start}}),
        json!({"toolUse": start}),
        json!({"toolUse": {"toolUseId": "c1", "name": "weather", "input": null}}),
        start,
        json!({"object": "response", "status": "in_progress", "output": [untyped]}),
        json!({"type": "response.created", "response": {"status": "queued", "output": [untyped]}}),
        json!({"object": "response", "status": "in_progress", "output": [item("completed")]}),
        json!({"status": "in_progress", "steps": [untyped]}),
        json!({
            "type": "AIMessageChunk",
            "content": "",
            "tool_calls": [{"type": "tool_call", "name": "weather", "args": {}, "id": "c1"}],
            "tool_call_chunks": [{"type": "tool_call_chunk", "name": "weather", "args": "", "id": "c1", "index": 0}],
        }),
        json!({"functionCall": {"name": "weather", "args": {}, "willContinue": "true"}}),
        json!({"type": "message", "role": "assistant", "content": [block], "stop_reason": null, "usage": {}}),
        json!({"type": "message_start", "message": {"type": "message", "content": [block], "stop_reason": null}}),
        chunk(&first),
        chunk(&whole),
        chunk(&json!({"index": 0, "function": {"arguments": "{}"}})),
        json!({"choices": [{"delta": {"function_call": {"name": "weather", "arguments": ""}}}]}),
        json!([first]),
        json!({"role": "assistant", "tool_calls": [first]}),
        first,
        json!({"functionCall": {"id": "c1", "name": "weather", "willContinue": true}}),
        json!({"function_call": {"name": "weather", "args": {}, "will_continue": true}}),
        json!({"functionCall": {"name": "weather", "partialArgs": parts}}),
        json!({"name": "weather", "args": null, "partial_args": parts, "will_continue": null}),
        json!({"candidates": [{"content": {"role": "model", "parts": [
            {"functionCall": {"name": "weather", "args": {}, "willContinue": true}},
        ]}}]}),
        item("in_progress"),
        item("queued"),
        json!({"output": [item("in_progress")]}),
        json!({"type": "response.output_item.added", "item": item("in_progress")}),
        json!({"type": "response.output_item.added", "item": {"type": "function_call", "name": "weather", "arguments": ""}}),
        json!({"type": "response.function_call_arguments.delta", "item_id": "i", "delta": "{}"}),
        json!({"type": "response.function_call_arguments.done", "item_id": "i", "name": "weather", "arguments": "{}"}),
        json!({"type": "custom_tool_call", "name": "weather", "input": "x", "status": "in_progress"}),
        json!({"type": "content_block_start", "index": 1, "content_block": {
            "type": "tool_use", "id": "c1", "name": "weather", "input": {},
        }}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "{}"}}),
        json!({"contentBlockStart": {"start": {"toolUse": {"toolUseId": "c1", "name": "weather"}}, "contentBlockIndex": 1}}),
        json!({"contentBlockDelta": {"delta": {"toolUse": {"input": "{}"}}, "contentBlockIndex": 1}}),
        json!({"type": "tool_call_chunk", "name": "weather", "args": "", "id": "c1", "index": 0}),
        json!({"type": "tool-call-start", "index": 0, "delta": {"message": {"tool_calls": whole}}}),
    ]
}

#[test]
fn a_piece_of_a_stream_is_refused_by_its_name() {
    for piece in pieces() {
        let all = read_all(&piece).expect("an object");

        let error = all.first().and_then(|call| call.error.as_ref()).unwrap_or_else(|| panic!("no error: {piece}"));
        assert!(error.to_string().contains("a piece of a streamed call"), "{piece}: {error}");
        assert_eq!(all.len(), 1, "{piece}");
        let one = read(&piece, None).expect("a call with an error");
        assert!(one.error.is_some(), "{piece}");
    }
}

#[test]
fn the_text_of_a_stream_gives_no_calls() {
    let pieces = [
        json!({"object": "chat.completion.chunk", "choices": [{"delta": {"role": "assistant", "content": "<tool_call>"}}]}),
        json!({"object": "chat.completion.chunk", "choices": [], "usage": {"total_tokens": 3}}),
        json!({"type": "response.output_text.delta", "delta": "hello"}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hello"}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}),
        json!({"contentBlockDelta": {"delta": {"text": "hello"}, "contentBlockIndex": 0}}),
        json!({"candidates": [{"content": {"role": "model", "parts": [{"text": "hello"}]}}]}),
    ];
    for piece in pieces {
        assert_eq!(read_all(&piece).expect("an object"), [], "{piece}");
    }
}

#[test]
fn a_call_of_a_response_that_failed_or_was_cancelled_is_refused() {
    let item = json!({"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}"});
    for status in ["failed", "cancelled", "expired"] {
        let calls = read_all(&json!({"object": "response", "status": status, "output": [item]})).expect("an object");

        let error = calls[0].error.as_ref().expect("an error").to_string();
        assert!(error.contains("a response that failed or was cancelled"), "{status}: {error}");
        assert_eq!(calls.len(), 1, "{status}");
    }
}

#[test]
fn a_message_in_a_history_has_no_reason_for_its_end() {
    let block = json!({"type": "tool_use", "id": "c1", "name": "weather", "input": {}});
    let messages = [
        json!({"role": "assistant", "content": [block]}),
        json!({"type": "message", "role": "assistant", "content": [block]}),
        json!({"functionCall": {"name": "weather", "willContinue": false, "partialArgs": []}}),
    ];
    for message in messages {
        let calls = read_all(&message).expect("an object");

        let found: Vec<_> = calls.iter().map(|call| (call.name.as_str(), call.error.is_none())).collect();
        assert_eq!(found, [("weather", true)], "{message}");
    }
}

#[test]
fn a_call_under_a_type_that_is_not_known_is_none_of_the_programs() {
    let call = |kind: Value| json!({"type": kind, "id": "s", "name": "weather", "arguments": {}});
    let others = [
        call(json!("mcp_list_tools")),
        call(json!("some_later_server_call")),
        call(json!(7)),
        json!({"type": "some_later_server_call", "id": "s", "function": {"name": "weather", "arguments": "{}"}}),
        json!({"toolUse": {"type": "some_later_use", "toolUseId": "s", "name": "weather", "input": {}}}),
    ];
    for other in others {
        let own = json!({"type": "tool_use", "id": "c1", "name": "add", "input": {}});

        let beside = read_all(&json!({"role": "assistant", "content": [other, own]})).expect("an object");
        let alone = read(&other, None);
        let text = read_text(&other.to_string(), None, None);

        assert_eq!(beside.iter().map(|call| call.name.as_str()).collect::<Vec<_>>(), ["add"], "{other}");
        for read in [alone, text] {
            let error = read.expect_err("no call").what;
            assert!(error.starts_with("not a tool call: an object"), "{other}: {error}");
        }
    }
    let error = read(&call(json!("some_later_server_call")), None).unwrap_err().what;
    assert!(error.contains("of the type `some_later_server_call`"), "{error}");
}

#[test]
fn a_call_that_asks_the_program_for_an_approval_is_never_passed_over() {
    let request =
        json!({"type": "mcp_approval_request", "id": "m", "name": "weather", "arguments": "{}", "server_label": "s"});

    let calls =
        read_all(&json!({"object": "response", "status": "completed", "output": [request]})).expect("an object");

    let error = calls[0].error.as_ref().expect("an error").to_string();
    assert!(error.contains("asks for the approval of this call"), "{error}");
    assert_eq!((calls.len(), calls[0].id.as_deref()), (1, Some("m")));
}

#[test]
fn calls_are_found_wherever_providers_put_them() {
    let item = json!({"type": "function_call", "id": "c1", "name": "weather", "arguments": {}});
    let live = json!({"id": "c1", "name": "weather", "args": {}});
    let chat = json!({"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}});
    let whole = [
        json!({"object": "interaction", "status": "requires_action", "outputs": [item]}),
        json!({"status": "requires_action", "steps": [{"type": "thought"}, item]}),
        json!({"toolCall": {"functionCalls": [live]}}),
        json!({"server_content": null, "tool_call": {"function_calls": [live]}}),
        json!({"functionCalls": [live]}),
        json!({"object": "thread.run", "status": "requires_action", "required_action": {
            "type": "submit_tool_outputs", "submit_tool_outputs": {"tool_calls": [chat]},
        }}),
    ];
    for message in whole {
        let calls = read_all(&message).expect("an object");

        let found: Vec<_> = calls.iter().map(|call| (call.id.as_deref(), call.error.is_none())).collect();
        assert_eq!(found, [(Some("c1"), true)], "{message}");
    }
    for other in [json!({"steps": [live]}), json!({"toolCall": live})] {
        assert_eq!(read_all(&other).expect("an object"), [], "{other}");
    }
}

#[test]
fn an_event_with_something_whole_gives_its_calls() {
    let item =
        json!({"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}", "status": "completed"});
    let block = json!({"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Bern"}});
    let events = [
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": {"status": "completed", "output": [item]}}),
        json!({"type": "content_block_stop", "index": 1, "content_block": block}),
        json!({"type": "message_stop", "message": {"role": "assistant", "content": [block], "stop_reason": "tool_use"}}),
    ];
    for event in events {
        let calls = read_all(&event).expect("an object");

        let found: Vec<_> = calls.iter().map(|call| (call.name.as_str(), call.error.is_none())).collect();
        assert_eq!(found, [("weather", true)], "{event}");
    }
}

#[test]
fn a_call_that_the_provider_runs_is_left_out_of_messages_and_refused_alone() {
    let calls = [
        json!({"type": "server_tool_use", "id": "s", "name": "weather", "input": {"city": "Bern"}}),
        json!({"type": "mcp_tool_use", "id": "s", "name": "weather", "server_name": "m", "input": {}}),
        json!({"type": "mcp_call", "id": "s", "name": "weather", "arguments": "{}", "server_label": "m"}),
        json!({"type": "web_search_call", "id": "s", "status": "completed"}),
        json!({"type": "tool_search_call", "id": "s", "execution": "server", "arguments": {}}),
        json!({"type": "mcp_server_tool_call", "id": "s", "name": "weather", "arguments": {}, "server_name": "m"}),
        json!({"type": "agent.mcp_tool_use", "id": "s", "name": "weather", "input": {}, "mcp_server_name": "m"}),
        json!({"type": "agent.tool_use", "id": "s", "name": "weather", "input": {}}),
        json!({"type": "function_call", "call_id": "s", "name": "weather", "arguments": "{}", "output": "done"}),
        json!({"toolUse": {"toolUseId": "s", "name": "weather", "input": {}, "type": "server_tool_use"}}),
    ];
    for call in calls {
        let own = json!({"type": "tool_use", "id": "c1", "name": "add", "input": {}});
        let message = json!({"role": "assistant", "content": [call, own, {"type": "text", "text": "It is so."}]});

        let names: Vec<_> = read_all(&message).expect("an object").into_iter().map(|call| call.name).collect();
        assert_eq!(names, ["add"], "{call}");
        let alone = read(&call, None).expect("a call with an error").error.expect("an error").to_string();
        assert!(alone.contains("the provider runs this call itself"), "{alone}");
    }
}

#[test]
fn a_built_in_tool_that_the_program_must_run_is_never_passed_over() {
    for kind in ["local_shell_call", "computer_call", "shell_call", "apply_patch_call", "tool_search_call"] {
        let response = json!({"output": [
            {"type": kind, "call_id": "c1", "status": "completed", "action": {}, "execution": "client"},
        ]});

        let calls = read_all(&response).expect("an object");

        let error = calls[0].error.as_ref().expect("an error").to_string();
        assert!(error.contains(kind) && error.contains("built-in tool"), "{error}");
        assert_eq!((calls.len(), calls[0].id.as_deref()), (1, Some("c1")));
    }
}

#[test]
fn a_response_of_converse_gives_its_calls() {
    let response = |reason: &str| {
        json!({
            "output": {"message": {"role": "assistant", "content": [
                {"text": "One moment."},
                {"toolUse": {"toolUseId": "c1", "name": "weather", "input": {"city": "Bern"}}},
            ]}},
            "stopReason": reason,
        })
    };

    let calls = read_all(&response("tool_use")).expect("an object");

    assert_eq!((calls[0].name.as_str(), calls[0].id.as_deref(), calls[0].is_truncated), ("weather", Some("c1"), false));
    assert!(read_all(&response("max_tokens")).expect("an object")[0].is_truncated);
}

#[test]
fn every_format_is_read() {
    for (format, call) in calls() {
        let read = read(&call, None).expect("a call");

        assert_eq!(read.error, None, "{call}");
        assert_eq!(
            (read.id.as_deref(), read.name.as_str(), read.format.as_ref()),
            (Some("c1"), "weather", format),
            "{call}"
        );
        assert_eq!(read.arguments, json!({"city": "Bern", "days": 3}), "{call}");
    }
}

#[test]
fn the_json_text_of_a_call_is_read_as_the_call() {
    for (format, call) in calls() {
        for text in [call.to_string(), format!("```json\n{call}\n```")] {
            let read = read_text(&text, None, None).expect("a call");

            assert_eq!((read.name.as_str(), read.format.as_ref()), ("weather", format), "{text}");
            assert_eq!(read.arguments["days"], 3, "{text}");
        }
    }
}

#[test]
fn a_format_that_is_named_is_the_only_one_that_is_tried() {
    for (format, call) in calls() {
        for wanted in WireFormat::ALL {
            let result = read(&call, Some(wanted));

            assert!(result.is_ok() || wanted.as_str() != format, "{wanted}: {call}");
            if let Err(error) = result {
                assert!(error.what.contains(wanted.as_str()), "{error}");
            }
        }
    }
}

#[test]
fn custom_calls_have_their_text_as_an_argument() {
    let item = json!({"type": "custom_tool_call", "call_id": "c1", "name": "run", "input": "print(1)"});
    let chat = json!({"id": "c1", "type": "custom", "custom": {"name": "run", "input": "print(1)"}});

    for (call, format) in [(item, "openai_responses_custom"), (chat, "openai_custom")] {
        let call = read(&call, None).unwrap();

        assert_eq!((call.format.as_ref(), call.arguments), (format, json!({"input": "print(1)"})));
    }
}

#[test]
fn the_older_function_call_is_read() {
    let message =
        json!({"role": "assistant", "content": null, "function_call": {"name": "weather", "arguments": "{}"}});

    let call = read(&message, None).unwrap();

    assert_eq!((call.name.as_str(), call.format.as_ref(), call.id), ("weather", "openai", None));
}

#[test]
fn whole_messages_and_answers_give_all_their_calls() {
    let call = |name: &str| json!({"id": name, "type": "function", "function": {"name": name, "arguments": "{}"}});
    let block = |name: &str| json!({"type": "tool_use", "id": name, "name": name, "input": {}});
    let item = |name: &str| json!({"type": "function_call", "call_id": name, "name": name, "arguments": "{}"});
    let part = |name: &str| json!({"functionCall": {"id": name, "name": name, "args": {}}});
    let text = json!({"type": "text", "text": "{\"name\": \"no\"}"});
    let answers = [
        json!([block("a"), text, block("b")]),
        json!({"role": "assistant", "name": "Friday", "content": [text, block("a"), block("b")]}),
        json!({"role": "assistant", "content": "on my way", "tool_calls": [call("a"), call("b")], "function_call": null}),
        json!({"choices": [{"index": 0, "message": {"role": "assistant", "tool_calls": [call("a"), call("b")]}}]}),
        json!({"object": "response", "output": [{"type": "reasoning", "summary": []}, item("a"), item("b")]}),
        json!({"candidates": [{"content": {"role": "model", "parts": [{"text": "hm"}, part("a"), part("b")]}}]}),
    ];
    for answer in answers {
        let calls = read_all(&answer).expect("an answer");
        let names: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();

        assert_eq!(names, ["a", "b"], "{answer}");
        assert!(read(&answer, None).unwrap_err().what.contains("2 calls"), "{answer}");
        let again = read_all_text(&answer.to_string(), None, None).unwrap();
        assert_eq!(again, calls);
    }
}

#[test]
fn what_is_no_call_is_told_with_what_was_seen_and_what_is_understood() {
    let others = [
        json!({}),
        json!([]),
        json!(7),
        json!(null),
        json!("weather"),
        json!({"a": 1}),
        json!({"type": "text", "text": "x"}),
        json!({"role": "user", "name": "Ann", "content": "hello"}),
        json!({"type": "tool_result", "id": "1", "name": "weather", "output": "x"}),
        json!({"name": "weather", "description": "Tell the weather.", "parameters": {"type": "object"}}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
    ];
    for other in others {
        let error = read(&other, None).expect_err("no call");

        assert!(error.what.starts_with("not a tool call") && error.how.contains("Supported are"), "{other}: {error}");
    }
    let error = read(&json!({"a": 1, "b": 2}), None).unwrap_err();
    assert_eq!(error.what, "not a tool call: an object with `a`, `b`");
}

#[test]
fn two_sets_of_arguments_are_ambiguous() {
    let error = read(&json!({"name": "weather", "arguments": {}, "input": {}}), None).unwrap_err();

    assert_eq!(error.what, "the call has `arguments` and `input`, and only one of them can be the arguments");
}

#[test]
fn a_call_with_broken_arguments_is_a_call_with_an_error() {
    for arguments in [json!("nonsense"), json!("[1]"), json!([1]), json!(7), json!(true)] {
        let call = read(&json!({"id": "c1", "function": {"name": "weather", "arguments": arguments}}), None).unwrap();

        assert_eq!((call.name.as_str(), call.id.as_deref()), ("weather", Some("c1")));
        assert!(call.error.is_some(), "{arguments}");
    }
    for name in [json!(null), json!(7), json!(["weather"])] {
        assert!(read(&json!({"function": {"name": name, "arguments": "{}"}}), None).unwrap().error.is_some(), "{name}");
    }
}

#[test]
fn what_was_mended_is_on_the_call() {
    let broken = json!({"function": {"name": "weather", "arguments": "{'city': 'Bern'}"}});
    let cut = json!({"function": {"name": "weather", "arguments": "{\"city\": \"Be"}});
    let twice = json!({"function": {"name": "weather", "arguments": "{\"a\": 1, \"a\": 2}"}});

    assert_eq!(read(&broken, None).unwrap().repairs.len(), 1);
    assert!(read(&cut, None).unwrap().is_truncated);
    assert!(read(&twice, None).unwrap().has_duplicate_keys);
    let text = "{'name': 'weather', 'arguments': {\"a\": 1, \"a\": 2}";
    let call = read_text(text, None, None).unwrap();
    assert!(call.is_truncated && call.has_duplicate_keys && !call.repairs.is_empty());
}

#[test]
fn numbers_are_ids_too() {
    let request = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "weather"}});

    assert_eq!(read(&request, None).unwrap().id.as_deref(), Some("7"));
}

#[test]
fn a_text_that_is_not_json_is_parsed_in_the_text_formats() {
    let xml = "<tool_call><name>a</name></tool_call>";

    assert_eq!(read_text(xml, None, None).unwrap().name, "a");
    assert_eq!(read_text(xml, CallFormat::parse("xml"), None).unwrap().name, "a");
    assert_eq!(read_text("{\"name\": \"b\"}", None, None).unwrap().name, "b");
    assert!(read_text(xml, CallFormat::parse("openai"), None).is_err());
    assert!(read_text("none", CallFormat::parse("xml"), None).unwrap_err().what.contains("`xml`"));
}

#[test]
fn a_message_with_too_many_calls_or_too_much_text_is_refused() {
    let calls = vec![json!({"name": "a"}); 1001];

    assert!(read_all(&Value::Array(calls)).unwrap_err().what.contains("more than 1000"));
    assert!(read_text(&" ".repeat((1 << 20) + 1), None, None).unwrap_err().what.contains("bytes"));
}

#[test]
fn the_last_call_of_an_answer_that_was_cut_off_is_truncated() {
    let call = |name: &str| json!({"id": name, "type": "function", "function": {"name": name, "arguments": "{}"}});
    let block = |name: &str| json!({"type": "tool_use", "id": name, "name": name, "input": {}});
    let item = |name: &str, status: &str| json!({"type": "function_call", "call_id": name, "name": name, "arguments": "{}", "status": status});
    let part = |name: &str| json!({"functionCall": {"id": name, "name": name, "args": {}}});
    let answers = [
        (json!({"role": "assistant", "content": [block("a"), block("b")], "stop_reason": "max_tokens"}), true),
        (json!({"role": "assistant", "content": [block("a"), block("b")], "stop_reason": "tool_use"}), false),
        (json!({"choices": [{"finish_reason": "length", "message": {"tool_calls": [call("a"), call("b")]}}]}), true),
        (
            json!({"choices": [{"finish_reason": "tool_calls", "message": {"tool_calls": [call("a"), call("b")]}}]}),
            false,
        ),
        (json!({"candidates": [{"finishReason": "MAX_TOKENS", "content": {"parts": [part("a"), part("b")]}}]}), true),
        (json!({"candidates": [{"finishReason": "STOP", "content": {"parts": [part("a"), part("b")]}}]}), false),
        (json!({"status": "incomplete", "output": [item("a", "completed"), item("b", "incomplete")]}), true),
        (json!({"status": "incomplete", "output": [item("a", "completed"), item("b", "completed")]}), false),
        (json!({"output": [item("a", "completed"), item("b", "incomplete")]}), true),
    ];
    for (answer, is_cut) in answers {
        let calls = read_all(&answer).expect("an answer");

        assert_eq!(calls.iter().map(|call| call.is_truncated).collect::<Vec<_>>(), [false, is_cut], "{answer}");
    }
}

#[test]
fn keys_that_come_twice_are_listed_in_every_kind_of_text() {
    let texts = [
        "{\"name\": \"f\", \"arguments\": {\"a\": 1, \"a\": 2}}",
        "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1, \"a\": 2}}</tool_call>",
        "<tool_call>{'name': 'f', 'arguments': {'a': 1, 'a': 2}}</tool_call>",
        "<tool_call><name>f</name><params><a>1</a><a>2</a></params></tool_call>",
        "<function=f><parameter=a>1</parameter><parameter=a>2</parameter></function>",
        "<invoke name=\"f\"><parameter name=\"a\">1</parameter><parameter name=\"a\">2</parameter></invoke>",
        "Action: f\nAction Input: {\"a\": 1, \"a\": 2}",
    ];
    for text in texts {
        let call = read_text(text, None, None).expect("a call");

        let listed = call.repairs.iter().filter(|repair| repair.what == RepairKind::Duplicate).count();
        assert!(!call.has_duplicate_keys || listed == 1, "{text}: {call:?}");
        assert!(call.has_duplicate_keys || text.contains("<params>"), "{text}: {call:?}");
    }
}

#[test]
fn a_text_with_a_key_beside_the_arguments_is_not_run_with_the_others_alone() {
    let text = r#"{"name": "send", "arguments": {"to": "ann"}, "draft": true}"#;

    let (call, calls) =
        (read_text(text, None, None).unwrap(), read_all_text(&format!("[{text}]"), None, None).unwrap());

    for call in [&call, &calls[0]] {
        assert_eq!(call.name, "send");
        assert!(call.error.as_ref().is_some_and(|error| error.what.contains("`draft`")), "{call:?}");
    }
}
