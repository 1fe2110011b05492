//! Servers on the same store: quarantined tasks and retries.

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

/// Poll interval of the waits.
const LOOK: Duration = Duration::from_millis(50);

/// The first version records a string, and then waits forever.
async fn first(cx: Durable) -> Result<String> {
    let image: String = cx.step("build", async || Ok("shop".to_owned())).await?;
    pending::<()>().await;
    Ok(image)
}

/// The second version expects a number in the journal, which is incompatible.
async fn second(cx: Durable) -> Result<String> {
    let image: u32 = cx.step("build", async || Ok(7)).await?;
    Ok(image.to_string())
}

/// The third version reads the journal of the first.
async fn third(cx: Durable) -> Result<String> {
    cx.step("build", async || Ok("again".to_owned())).await
}

async fn server(place: &Place, tool: Tool) -> Server {
    let tasks = TaskConfig::new(place.open().await);
    let builder = Server::builder("shop", "1").tasks(tasks);
    builder.tool(tool.task(TaskPolicy::Always)).build().unwrap()
}

/// Polls until a task matches.
async fn until(place: &Place, args: &[&str], fits: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..400 {
        let seen = lines(&place.run("list", &[&["--json"], args].concat()));
        if let Some(task) = seen.into_iter().find(&fits) {
            return task;
        }
        tokio::time::sleep(LOOK).await;
    }
    panic!("no task matched: {}", out(&place.run("list", &["--json"])));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quarantined_task_resumes_after_retry_with_compatible_handler() {
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

        // The second version cannot read the journal.
        let new = server(&place, Tool::new("ship", second)).await;
        let _awake = Client::builder("test", "1").connect(&new).await.unwrap();
        let _ = _awake.call_tool("nothing", json!({})).await;
        let kept = until(&place, &["--phase", "quarantined"], |_| true).await;
        assert_eq!(kept["id"], id);
        assert!(kept["message"].as_str().unwrap().contains("`build`"), "{kept}");
        // A retry on the running server quarantines the task again.
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
        assert_eq!(text, "shop", "the recorded step is not executed again");
        fixed.drain(Duration::from_secs(5)).await;
    }
}
