//! Clones of `Durable` in joined branches and in spawned tasks.

use outlive::{
    server::{Durable, Result, Server, Tool},
    testing::TestServer,
};
use serde_json::json;
use tokio::task::JoinSet;

async fn text(tool: Tool) -> String {
    let server = TestServer::new(Server::builder("clones", "1").tool(tool)).unwrap();
    server.call_tool("tool", json!({})).crash_after_each().await.unwrap().text()
}

#[tokio::test]
async fn cloned_context_in_joined_branches_runs_steps() {
    async fn packs(cx: Durable) -> Result<String> {
        let pack = |number: u32| {
            let cx = cx.clone();
            async move { cx.step(("pack", number), async || Ok(number * 10)).await }
        };
        let (one, two): (Result<u32>, Result<u32>) = tokio::join!(pack(1), pack(2));
        Ok(format!("{} and {}", one?, two?))
    }
    assert_eq!(text(Tool::new("tool", packs)).await, "10 and 20");
}

#[tokio::test]
async fn cloned_context_in_spawned_task_fails_with_remedy() {
    async fn spawns(cx: Durable) -> Result<String> {
        let mut set = JoinSet::new();
        for number in 1..=2_u32 {
            let cx = cx.clone();
            set.spawn(async move { cx.step(("pack", number), async || Ok(number)).await });
        }
        let mut said = Vec::new();
        while let Some(done) = set.join_next().await {
            said.push(done?.unwrap_err().to_string());
        }
        said.sort();
        Ok(said.join("\n"))
    }
    let said = text(Tool::new("tool", spawns)).await;
    assert!(said.starts_with("`pack/1` is used outside its run; join futures"), "{said}");
}
