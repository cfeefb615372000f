//! The example of the client, run against a scripted server.

#[allow(dead_code, unreachable_pub, reason = "it is a program of its own")]
#[path = "../../../examples/mcp_client.rs"]
mod mcp_client;

#[tokio::test]
async fn the_example_lists_and_calls() {
    let target = super::target(&["well"]);
    let command = format!("'{}' '{}' well", target.program, target.args[0]);

    let last = mcp_client::run(&command, Some("add"), r#"{"a": 2, "b": 40}"#).await.unwrap().unwrap();

    assert_eq!(last.text(), "42");
}
