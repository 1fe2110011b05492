//! The test kit: strict calls, resources, prompts, timers and cancellation.

use std::time::{Duration, Instant};

use outlive::{
    Form, prompt, resource,
    server::{
        Durable, Error, Json, Result, Server, State,
        durable::{Cleanup, Retry},
        tasks::TaskConfig,
    },
    testing::TestServer,
    tool,
};
use serde_json::{Value, json};

use crate::input::dialogue::Notes;

#[derive(serde::Deserialize, schemars::JsonSchema, Form)]
struct Approval {
    yes: bool,
}

#[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Stock {
    article: String,
    count: u32,
}

#[tool]
async fn stock(article: String) -> Json<Stock> {
    Json(Stock { article, count: 3 })
}

#[tokio::test]
async fn structured_content_decodes_as_type_and_as_json() {
    let server = TestServer::new(Server::builder("kit", "1").tool(stock::tool())).unwrap();
    let outcome = server.call_tool("stock", json!({"article": "lamp"})).run().await.unwrap();
    let expected = json!({"article": "lamp", "count": 3});
    assert_eq!(outcome.structured::<Value>().unwrap(), expected);
    assert_eq!(outcome.structured::<Stock>().unwrap().count, 3);
    let failure = outcome.structured::<Vec<u8>>().unwrap_err().to_string();
    assert!(failure.contains("cannot be deserialized") && failure.contains("lamp"), "{failure}");
}

#[tool]
async fn deploy(cx: Durable) -> Result<String> {
    let approval: Approval = cx.elicit("approve", "Deploy?").await?;
    Ok(approval.yes.to_string())
}

#[tokio::test]
async fn strict_call_with_unused_input_response_fails() {
    let server = TestServer::new(Server::builder("kit", "1").tool(deploy::tool())).unwrap();
    let call = || server.call_tool("deploy", json!({})).accept("approve", json!({"yes": true}));
    assert_eq!(call().strict().crash_after_each().await.unwrap().text(), "true");
    let more = || call().accept("approve", json!({"yes": false})).decline("delete");
    assert_eq!(more().run().await.unwrap().text(), "true", "without `strict` it is allowed");
    let failure = more().strict().run().await.unwrap_err().to_string();
    assert!(failure.contains("`approve` has 2 responses but was requested 1 times"), "{failure}");
    let failure = call().decline("delete").strict().run().await.unwrap_err().to_string();
    assert!(failure.contains("`delete` has 1 responses but was requested 0 times"), "{failure}");
}

#[resource("stock://{article}")]
async fn stock_page(article: String) -> Option<String> {
    (article == "lamp").then(|| "3 lamps".to_owned())
}

#[prompt]
async fn advertise(article: String, count: u32) -> String {
    format!("Advertise {count} {article}s.")
}

#[tokio::test]
async fn kit_reads_resources_and_gets_prompts() {
    let builder = Server::builder("kit", "1")
        .resource_template(stock_page::resource_template())
        .prompt(advertise::prompt());
    let server = TestServer::new(builder).unwrap();
    assert_eq!(server.read_resource("stock://lamp").run().await.unwrap().text(), "3 lamps");
    let failure = server.read_resource("stock://chair").run().await.unwrap_err().to_string();
    assert!(failure.contains("stock://chair"), "{failure}");
    let arguments = json!({"article": "lamp", "count": "3"});
    let outcome = server.get_prompt("advertise", arguments).run().await.unwrap();
    assert_eq!(outcome.text(), "Advertise 3 lamps.");
}

#[tool]
async fn slow(cx: Durable) -> Result<String> {
    let (first, second) = tokio::join!(
        cx.sleep("day", Duration::from_secs(86_400)),
        cx.sleep("hour", Duration::from_secs(3_600)),
    );
    first.and(second)?;
    let approval: Approval = cx.elicit("approve", "Awake?").await?;
    cx.sleep("again", Duration::from_secs(86_400)).await?;
    let retry = Retry::attempts(9).initial_backoff(Duration::from_secs(5));
    cx.step_retry("flaky", retry, async |attempt| match attempt.last {
        true => Ok(()),
        false => Err(Error::new("not yet")),
    })
    .await?;
    Ok(approval.yes.to_string())
}

// The test has no `start_paused`: the kit must skip the timers itself.
#[tokio::test]
async fn handler_sleeping_for_days_finishes_immediately() {
    let server = TestServer::new(Server::builder("kit", "1").tool(slow::tool())).unwrap();
    let begun = Instant::now();
    let call = server.call_tool("slow", json!({})).accept("approve", json!({"yes": true}));
    assert_eq!(call.crash_after_each().await.unwrap().text(), "true");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[tool(task = "auto")]
async fn order(cx: Durable, notes: State<Notes>) -> Result<String> {
    let shelf: u32 = cx.step("reserve", async || Ok(7)).await?;
    cx.sleep("nap", Duration::from_secs(15)).await?;
    for parcel in 1..=2 {
        cx.step(("pack", parcel), async || {
            notes.note(format!("pack {parcel}"));
            Ok(())
        })
        .await?;
    }
    let shielded = cx.shielded();
    shielded.step("label", async || Ok(())).await?;
    Ok(format!("packed from shelf {shelf}"))
}

async fn give_back(task: Cleanup, notes: State<Notes>) -> Result<()> {
    let shelf = task.get::<u32>("reserve")?.ok_or("nothing was reserved")?;
    notes.note(format!("give back {shelf}"));
    Ok(())
}

#[tokio::test]
async fn cancelled_call_stops_at_next_step_and_runs_cleanup() {
    let notes = Notes::default();
    let tool = order::tool().cleanup(give_back);
    let server = Server::builder("kit", "1").tasks(TaskConfig::in_memory());
    let server = TestServer::new(server.state(notes.clone()).tool(tool)).unwrap();
    for (key, noted) in [("reserve", vec!["give back 7"]), ("nap", vec!["give back 7"])] {
        let cancelled = server.call_tool("order", json!({})).cancel_after(key).await.unwrap();
        assert!(cancelled.is_cancelled && cancelled.outcome.text().contains("cancelled"), "{key}");
        assert_eq!(cancelled.cleanup, Some(Ok(())));
        assert_eq!(notes.take(), noted, "{key}");
    }
    let call = server.call_tool("order", json!({}));
    let cancelled = call.cancel_after(("pack", 2)).await.unwrap();
    assert!(!cancelled.is_cancelled, "the shielded part completes");
    assert_eq!(cancelled.outcome.text(), "packed from shelf 7");
    assert_eq!((cancelled.cleanup, notes.take()), (None, vec!["pack 1".into(), "pack 2".into()]));
    let failure = server.call_tool("order", json!({})).cancel_after("pay").await.unwrap_err();
    assert!(failure.to_string().contains("`pay` was never recorded"), "{failure}");
}
