//! The attempt number of `step_retry`, and bodies that count attempts themselves.

use std::time::Duration;

use outlive::{
    server::{Durable, Error, Result, Server, Tool, durable::Retry},
    testing::TestServer,
};
use serde_json::json;

async fn text(tool: Tool) -> String {
    let server = TestServer::new(Server::builder("retries", "1").tool(tool)).unwrap();
    server.call_tool("tool", json!({})).run().await.unwrap().text()
}

#[tokio::test(start_paused = true)]
async fn retried_body_with_own_counter_compiles_and_counts() {
    async fn flaky(cx: Durable) -> Result<String> {
        let mut tries = 0;
        let done: String = cx
            .step_retry("a", Retry::attempts(3), |_| {
                tries += 1;
                async move {
                    if tries < 3 { Err(Error::new("not yet")) } else { Ok("done".to_owned()) }
                }
            })
            .await?;
        Ok(format!("{done} after {tries}"))
    }
    assert_eq!(text(Tool::new("tool", flaky)).await, "done after 3");
}

#[tokio::test(start_paused = true)]
async fn retried_body_receives_attempt_number() {
    async fn flaky(cx: Durable) -> Result<String> {
        let article = String::from("lamp");
        let retry = Retry::attempts(3).initial_backoff(Duration::from_secs(60));
        cx.step_retry("a", retry, async |attempt| match attempt.last {
            true => Ok(format!("{article} at attempt {}", attempt.number)),
            false => Err(Error::new(format!("attempt {} of {article}", attempt.number))),
        })
        .await
    }
    assert_eq!(text(Tool::new("tool", flaky)).await, "lamp at attempt 3");
}
