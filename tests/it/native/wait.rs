//! The tool `wait`, on a clock that does not wait.

use std::time::Duration;

use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::time::Instant;
use toolcrib::native::{ToolContext, tools};
use toolcrib::schema::check::Mode;

async fn wait(arguments: Value) -> (Vec<(String, bool)>, Duration) {
    let began = Instant::now();
    let items: Vec<_> = tools::wait().run(ToolContext::of("wait"), arguments).collect().await;
    let said = items.into_iter().map(|item| match item {
        Ok(response) => (response.text(), response.is_last),
        Err(failure) => (failure.reply("wait").text(), true),
    });
    (said.collect(), began.elapsed())
}

#[tokio::test(start_paused = true)]
async fn it_waits_for_the_given_time() {
    let (said, took) = wait(json!({"seconds": 90})).await;

    assert_eq!(said, [("Waited 90 seconds.".to_owned(), true)]);
    assert!((90.0..90.1).contains(&took.as_secs_f64()), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn it_reports_on_the_way() {
    let (said, took) = wait(json!({"seconds": 2.5, "every": 1})).await;

    let expected =
        [("Waited 1 of 2.5 seconds.", false), ("Waited 2 of 2.5 seconds.", false), ("Waited 2.5 seconds.", true)];
    assert_eq!(said, expected.map(|(text, is_last)| (text.to_owned(), is_last)));
    assert!((2.5..2.6).contains(&took.as_secs_f64()), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn an_interval_as_long_as_the_wait_reports_nothing_in_between() {
    let (said, _) = wait(json!({"seconds": 1, "every": 1})).await;

    assert_eq!(said, [("Waited 1 seconds.".to_owned(), true)]);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_waited_for_is_an_error_and_no_panic() {
    for arguments in [
        json!({"seconds": -1}),
        json!({"seconds": 1e300}),
        json!({"seconds": 10, "every": 0}),
        json!({"seconds": 10, "every": -1}),
        json!({"seconds": 86400, "every": 1e-300}),
    ] {
        let (said, took) = wait(arguments.clone()).await;

        assert!(said.len() == 1 && said[0].0.starts_with("Error: "), "{arguments}: {said:?}");
        assert_eq!(took, Duration::ZERO);
    }
}

#[test]
fn its_schema_says_what_it_takes() {
    let checker = tools::wait().checker().clone();

    assert!(checker.check(&json!({"seconds": 1.5}), Mode::Check, &[]).is_ok());
    assert!(checker.check(&json!({"seconds": 1, "every": null}), Mode::Check, &[]).is_ok());
    for wrong in [json!({}), json!({"seconds": -1}), json!({"seconds": 86401}), json!({"seconds": 1, "every": 0})] {
        assert!(checker.check(&wrong, Mode::Check, &[]).is_err(), "{wrong}");
    }
}
