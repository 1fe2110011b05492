//! Servers on the same store: what they keep, they go on with.

use std::{future::pending, time::Duration};

use outlive::{
    client::Client,
    server::{
        Durable, Result, Server, Tool,
        tasks::{TaskConfig, TaskPolicy},
    },
};
use serde_json::{Value, json};

use super::{Place, fine, lines, out};

/// How often is looked for what a server does by itself.
const LOOK: Duration = Duration::from_millis(50);

/// The first version records a text, and waits for better times.
async fn first(cx: Durable) -> Result<String> {
    let image: String = cx.step("build", async || Ok("shop".to_owned())).await?;
    pending::<()>().await;
    Ok(image)
}

/// The second one reads a number there.
async fn second(cx: Durable) -> Result<String> {
    let image: u32 = cx.step("build", async || Ok(7)).await?;
    Ok(image.to_string())
}

/// The third reads what the first has written.
async fn third(cx: Durable) -> Result<String> {
    cx.step("build", async || Ok("again".to_owned())).await
}

async fn server(place: &Place, tool: Tool) -> Server {
    let tasks = TaskConfig::new(place.open().await);
    let builder = Server::builder("shop", "1").tasks(tasks);
    builder.tool(tool.task(TaskPolicy::Always)).build().unwrap()
}

/// Asks until a task is as it should be.
async fn until(place: &Place, args: &[&str], fits: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..400 {
        let seen = lines(&place.run("list", &[&["--json"], args].concat()));
        if let Some(task) = seen.into_iter().find(&fits) {
            return task;
        }
        tokio::time::sleep(LOOK).await;
    }
    panic!("it never was so: {}", out(&place.run("list", &["--json"])));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_server_has_kept_goes_on_when_it_can() {
    for place in Place::both().await {
        let old = server(&place, Tool::new("ship", first)).await;
        let client = Client::builder("test", "1").connect(&old).await.unwrap();
        let calling = tokio::spawn(async move { client.call_tool("ship", json!({})).await });
        let task = until(&place, &[], |task| task["phase"] == "running").await;
        let id = task["id"].as_str().unwrap();
        for _ in 0..400 {
            let shown = &lines(&place.run("show", &[id, "--json"]))[0];
            if shown["journal"].as_array().unwrap().iter().any(|line| line["key"] == "build") {
                break;
            }
            tokio::time::sleep(LOOK).await;
        }
        old.drain(Duration::from_secs(5)).await;
        calling.abort();

        // Another version cannot read it.
        let new = server(&place, Tool::new("ship", second)).await;
        let _awake = Client::builder("test", "1").connect(&new).await.unwrap();
        let _ = _awake.call_tool("nothing", json!({})).await;
        let kept = until(&place, &["--phase", "quarantined"], |_| true).await;
        assert_eq!(kept["id"], id);
        assert!(kept["message"].as_str().unwrap().contains("`build`"), "{kept}");
        // It is tried again, by the server that runs, and cannot be read any better.
        let claims = kept["claims"].as_u64().unwrap();
        fine(&place.run("retry", &[id]));
        let again = |task: &Value| task["claims"].as_u64().unwrap() > claims;
        until(&place, &["--phase", "quarantined"], again).await;
        new.drain(Duration::from_secs(5)).await;

        let fixed = server(&place, Tool::new("ship", third)).await;
        let awake = Client::builder("test", "1").connect(&fixed).await.unwrap();
        let _ = awake.call_tool("nothing", json!({})).await;
        fine(&place.run("retry", &["--all-quarantined"]));
        let done = until(&place, &["--phase", "ended"], |_| true).await;
        assert_eq!((&done["state"], &done["id"]), (&json!("completed"), &json!(id)));
        let text = &done["outcome"]["result"]["content"][0]["text"];
        assert_eq!(text, "shop", "what was recorded is not done again");
        fixed.drain(Duration::from_secs(5)).await;
    }
}
