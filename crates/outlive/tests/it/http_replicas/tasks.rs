//! One legacy client behind a round-robin proxy.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::world::{Common, open};
use crate::support::http::{HttpFixture, Request, Response, Stream};

/// A proxy that sends each request to the next replica.
struct Proxy {
    replicas: [HttpFixture; 2],
    next: AtomicUsize,
}

impl Proxy {
    fn next(&self) -> &HttpFixture {
        &self.replicas[self.next.fetch_add(1, Ordering::Relaxed) % 2]
    }

    async fn send(&self, request: Request) -> Response {
        self.next().send(request).await
    }

    async fn open(&self, request: Request) -> Stream {
        self.next().open(request).await
    }
}

#[tokio::test]
async fn task_calls_spread_over_replicas_behave_as_on_one() {
    let common = Common::default();
    let replicas = [common.replica().await, common.replica().await];
    let session = open(&replicas[0], None).await;
    let proxy = Proxy { replicas, next: AtomicUsize::new(0) };
    // Each round has an odd number of requests, so that both replicas handle every step.
    for round in 0..4 {
        let call = json!({"name": "deploy", "arguments": {}, "task": {"ttl": 60_000}});
        let created = proxy.send(session.request("tools/call").params(call)).await.result();
        let task = json!({"taskId": created["task"]["taskId"]});
        let get = || session.request("tasks/get").params(task.clone());
        let status = |response: Response| response.result()["status"].clone();
        while status(proxy.send(get()).await) != "input_required" {
            tokio::task::yield_now().await;
        }
        let mut result = proxy.open(session.request("tasks/result").params(task.clone())).await;
        let asked: Value = result.message().await;
        let content = json!({"action": "accept", "content": {"yes": round % 2 == 0}});
        assert_eq!(proxy.send(session.reply(&asked, content)).await.status(), 202);
        let mut answer = result.message().await;
        while answer["method"] == "notifications/tasks/status" {
            answer = result.message().await;
        }
        let text = format!("form {}", round % 2 == 0);
        assert_eq!(answer["result"]["content"][0]["text"], text, "{answer}");
        assert_eq!(status(proxy.send(get()).await), "completed");
        let again = session.request("tasks/result").params(task.clone());
        assert_eq!(proxy.send(again).await.text(), text);
        if round % 2 == 0 {
            // One extra request, so that the next round starts on the other replica.
            assert_eq!(proxy.send(session.request("ping")).await.status(), 200);
        }
    }
    assert_eq!(proxy.send(session.delete()).await.status(), 204);
    common.forget_what_was_confirmed();
    for _ in 0..2 {
        assert_eq!(proxy.send(session.request("ping")).await.status(), 404);
    }
}
