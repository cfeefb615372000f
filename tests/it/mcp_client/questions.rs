//! Questions of a server to the user and to a model.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use serde_json::{Value, json};
use toolcrib::call::Code;
use toolcrib::mcp::client::{CallOptions, Client, ClientOptions, Sampler};
use toolcrib::native::{Asker, Question, ToolContext, Unanswered};

use super::{HttpServer, arguments, call, client_with, connected, options, target};

/// A context whose user gives an answer.
fn context(answer: Result<Value, Unanswered>) -> ToolContext {
    let asker = Asker::new(move |question| {
        assert!(matches!(&question, Question::User { text, schema } if text == "Who?" && schema["type"] == "object"));
        let answer = answer.clone();
        async move { answer }
    });
    ToolContext { asker: Some(asker), ..ToolContext::of("ask") }
}

async fn ask(client: &Client, context: ToolContext) -> Value {
    let call = client.call("ask", context, arguments(json!({})), CallOptions::default());
    let last = call.map(Result::unwrap).collect::<Vec<_>>().await.pop().unwrap();
    serde_json::from_str(&last.text()).unwrap_or_else(|_| panic!("{}", last.text()))
}

fn answers() -> Vec<(Result<Value, Unanswered>, Value)> {
    vec![
        (Ok(json!({"name": "Ann"})), json!({"action": "accept", "content": {"name": "Ann"}})),
        (Ok(json!("Ann")), json!({"action": "cancel"})),
        (Err(Unanswered::Declined), json!({"action": "decline"})),
        (Err(Unanswered::NotSupported), json!({"action": "decline"})),
        (Err(Unanswered::Failed("x".to_owned())), json!({"action": "cancel"})),
    ]
}

#[tokio::test]
async fn a_question_to_the_user_goes_to_the_host_of_the_call() {
    let servers = [HttpServer::start(&["well"]), HttpServer::start(&["well", "--protocol", "2026-07-28"])];
    let mut clients = vec![connected(&["well"]).await, connected(&["well", "--protocol", "2026-07-28"]).await];
    for server in &servers {
        clients.push(server.client().await);
    }

    for client in clients {
        for (answer, expected) in answers() {
            let received = ask(&client, context(answer)).await;

            assert_eq!(received["result"], expected, "{:?}", client.server_info());
        }
        assert_eq!(ask(&client, ToolContext::of("ask")).await["result"]["action"], "decline");
    }
}

#[tokio::test]
async fn a_request_with_fields_of_other_types_is_refused_before_anybody_is_asked() {
    let sampler: Sampler = Arc::new(|_, _| Box::pin(async { panic!("the model was asked") }));
    let client = client_with(target(&["well"]), ClientOptions { sampler: Some(sampler), ..ClientOptions::default() });
    client.connect().await.unwrap();
    let asker = Asker::new(|_| async { panic!("the user was asked") });
    let context = ToolContext { asker: Some(asker), ..ToolContext::of("ask") };
    let requests = [
        ("ask", json!({"schema": "str"}), "requestedSchema"),
        ("ask", json!({"schema": ["str"]}), "requestedSchema"),
        ("sample", json!({"request": {"messages": "Hi", "maxTokens": 1}}), "messages"),
        ("sample", json!({"request": {"messages": [7], "maxTokens": 1}}), "messages"),
        ("sample", json!({"request": {"messages": [], "maxTokens": "many"}}), "maxTokens"),
        ("sample", json!({"request": {"messages": [], "maxTokens": 1, "systemPrompt": {}}}), "systemPrompt"),
        ("sample", json!({"request": {"messages": [], "maxTokens": 1, "stopSequences": "a"}}), "stopSequences"),
    ];

    for (tool, request, field) in requests {
        let call = client.call(tool, context.clone(), arguments(request), CallOptions::default());
        let last = call.map(Result::unwrap).collect::<Vec<_>>().await.pop().unwrap();

        let refusal: Value = serde_json::from_str(&last.text()).unwrap();
        assert_eq!(refusal["error"]["code"], -32602, "{refusal}");
        assert!(refusal["error"]["message"].as_str().unwrap().contains(field), "{refusal}");
    }
}

#[tokio::test]
async fn an_ambiguous_question_is_refused() {
    let client = connected(&["well"]).await;
    let other = ToolContext { caller: Some("eve".into()), ..ToolContext::of("wait") };
    let mut waiting = client.call("wait", other, arguments(json!({})), CallOptions::default()).boxed();
    assert!(tokio::time::timeout(Duration::from_millis(200), waiting.next()).await.is_err());

    let ann = ToolContext { caller: Some("ann".into()), ..context(Ok(json!({"name": "Ann"}))) };
    let received = ask(&client, ann).await;

    assert!(received["error"]["message"].as_str().unwrap().contains("several callers"), "{received}");
}

#[tokio::test]
async fn over_http_a_question_finds_its_call_among_others() {
    let server = HttpServer::start(&["well"]);
    let client = server.client().await;
    let other = ToolContext { caller: Some("eve".into()), ..ToolContext::of("wait") };
    let mut waiting = client.call("wait", other, arguments(json!({})), CallOptions::default()).boxed();
    assert!(tokio::time::timeout(Duration::from_millis(200), waiting.next()).await.is_err());

    let ann = ToolContext { caller: Some("ann".into()), ..context(Ok(json!({"name": "Ann"}))) };
    let received = ask(&client, ann).await;

    assert_eq!(received["result"]["content"]["name"], "Ann", "{received}");
}

#[tokio::test]
async fn a_model_is_asked_through_the_sampler() {
    for version in ["2025-11-25", "2026-07-28"] {
        let sampler: toolcrib::mcp::client::Sampler = Arc::new(|context, params| {
            Box::pin(async move {
                assert_eq!((&*context.tool, &params["maxTokens"]), ("sample", &json!(10)));
                Ok(json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "something"}}))
            })
        });
        let with_sampler = ClientOptions { sampler: Some(sampler), ..options(Duration::from_secs(30)) };
        let client = client_with(target(&["well", "--protocol", version]), with_sampler);
        client.connect().await.unwrap();

        let text = call(&client, "sample", json!({})).await.text();

        assert!(text.contains("something"), "{version}: {text}");
    }
}

#[tokio::test]
async fn without_a_sampler_a_request_for_a_model_is_refused() {
    let older = connected(&["well"]).await;
    let newest = connected(&["well", "--protocol", "2026-07-28"]).await;

    let answered = call(&older, "sample", json!({})).await.text();
    let refused = call(&newest, "sample", json!({})).await;

    assert!(answered.contains("-32601"), "{answered}");
    assert_eq!(refused.code, Some(Code::Failed));
}

#[tokio::test]
async fn a_server_that_asks_again_and_again_is_answered_a_limited_number_of_times() {
    let client = connected(&["many-rounds", "--protocol", "2026-07-28"]).await;

    let call = client.call("ask", context(Ok(json!({"name": "Ann"}))), arguments(json!({})), CallOptions::default());
    let last = call.map(Result::unwrap).collect::<Vec<_>>().await.pop().unwrap();

    assert_eq!(last.code, Some(Code::Failed));
    assert!(last.text().contains("10 times"), "{}", last.text());
}

#[tokio::test]
async fn calls_side_by_side_may_each_have_their_questions() {
    let client = client_with(target(&["well"]), ClientOptions { max_requests: 5, ..options(Duration::from_secs(30)) });
    client.connect().await.unwrap();
    let all = |times: usize| {
        futures_util::future::join_all((0..6).map(|_| {
            let ask = client.call(
                "ask",
                context(Ok(json!({"name": "Ann"}))),
                arguments(json!({"times": times})),
                CallOptions::default(),
            );
            async { ask.map(Result::unwrap).collect::<Vec<_>>().await.pop().unwrap() }
        }))
    };

    let few = all(5).await;
    let many = all(5000).await;

    assert!(few.iter().all(|last| last.text().contains("Ann")), "{few:?}");
    assert!(many.iter().all(|last| last.text().contains("more than 5 questions")), "{many:?}");
}

#[tokio::test]
async fn a_server_that_asks_too_often_ends_its_call() {
    let sampler: Sampler = Arc::new(|_, _| {
        let message = json!({"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m"});
        Box::pin(async move { Ok(message) })
    });
    let modern = ["well", "--protocol", "2026-07-28"];
    let servers = [HttpServer::start(&["well"]), HttpServer::start(&modern)];
    let limited = || ClientOptions { sampler: Some(sampler.clone()), max_requests: 5, ..ClientOptions::default() };
    let clients = [
        client_with(target(&["well"]), limited()),
        client_with(target(&modern), limited()),
        client_with(target(&["many-rounds", "--protocol", "2026-07-28"]), limited()),
        client_with(servers[0].target(), limited()),
        client_with(servers[1].target(), limited()),
    ];
    for client in clients {
        client.connect().await.unwrap();
        for tool in ["ask", "sample"] {
            let questions = Arc::new(AtomicUsize::new(0));
            let count = questions.clone();
            let asker = Asker::new(move |_| {
                count.fetch_add(1, Ordering::Relaxed);
                async { Ok(json!({"name": "Ann"})) }
            });
            let context = ToolContext { asker: Some(asker), ..ToolContext::of(tool) };
            let call = client.call(tool, context, arguments(json!({"times": 5000})), CallOptions::default());

            let last = call.map(Result::unwrap).collect::<Vec<_>>().await.pop().unwrap();

            assert_eq!(last.code, Some(Code::Failed), "{}", last.text());
            assert!(last.text().contains("more than 5 questions and model requests"), "{}", last.text());
            assert!(questions.load(Ordering::Relaxed) <= 5);
        }
        let few = client.call(
            "ask",
            context(Ok(json!({"name": "Ann"}))),
            arguments(json!({"times": 5})),
            CallOptions::default(),
        );
        let few = few.map(Result::unwrap).collect::<Vec<_>>().await.pop().unwrap();
        assert_eq!(few.code.is_some(), few.text().contains("more than 5"), "{}", few.text());
    }
}
