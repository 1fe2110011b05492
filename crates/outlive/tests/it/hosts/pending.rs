//! Legacy clients without tasks: a call waits for one slice, or as long as progress extends the
//! client's timeout.

use outlive::server::hosts::Host;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::world::{Runs, hosts, legacy, server, server_with, task_of};
use crate::support::pipe::{LEGACY, Pipe, text};

#[tokio::test(start_paused = true)]
async fn call_within_its_slice_returns_its_ordinary_result() {
    for version in LEGACY {
        let runs = Runs::default();
        let mut pipe = Pipe::speaking(&server(&runs), version).await;
        for (tool, ms) in [("nap", 3_000), ("always", 3_000)] {
            let done = pipe.call(tool, json!({"ms": ms})).await;
            assert_eq!(text(&done), "slept 3000 ms", "{version} {tool}");
            assert!(done.get("_meta").is_none(), "{done}");
        }
        assert_eq!(runs.count(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn call_beyond_its_slice_returns_pending_result() {
    let runs = Runs::default();
    let mut pipe = legacy(&server(&runs)).await;
    let began = Instant::now();
    let pending = pipe.call("render", json!({"ms": 20_000})).await;
    assert_eq!(began.elapsed().as_millis() / 100, 41, "one slice of a timeout of 6 s");
    assert!(pending.get("isError").is_none(), "a model that reads an error tries again");
    let id = task_of(&pending);
    // Tests skip time, so the wall clock stands still.
    let expected = format!(
        "`render` is still running (task {id}, 0 s so far: frame 4 of 20, about 0 s left).\n\
         Call task_result with {{\"task\":\"{id}\"}} to wait for the result. Do not call `render` \
         again for it: that would join the same run.\nIf the user should not wait, say that it is \
         running; the result is stored until "
    );
    let told = text(&pending);
    assert!(told.starts_with(&expected), "{told}\n{expected}");
    let task = &pending["structuredContent"]["task"];
    assert_eq!(
        (&task["tool"], &task["status"], &task["done"], &task["total"]),
        (&json!("render"), &json!("working"), &json!(4.0), &json!(20.0))
    );
    assert_eq!(task["next"], json!({"tool": "task_result", "arguments": {"task": id}}));
}

#[tokio::test(start_paused = true)]
async fn pending_results_have_the_model_stop_at_the_sixth() {
    let runs = Runs::default();
    let mut pipe = legacy(&server(&runs)).await;
    let pending = pipe.call("nap", json!({"ms": 45_000})).await;
    let id = task_of(&pending);
    let mut texts = vec![text(&pending).to_owned()];
    let done = loop {
        let answer = pipe.call("task_result", json!({"task": id})).await;
        if answer["structuredContent"].get("task").is_none() {
            break answer;
        }
        texts.push(text(&answer).to_owned());
    };
    assert_eq!(text(&done), "slept 45000 ms");
    assert_eq!(done["_meta"]["io.modelcontextprotocol/related-task"]["taskId"], id);
    assert_eq!((texts.len(), runs.count()), (10, 1));
    for (number, text) in texts.iter().enumerate() {
        assert_eq!(text.contains("stop here"), number == 5, "{number}: {text}");
    }
    assert!(texts[1].starts_with("Still running after 0 s. Call task_result again"), "{texts:?}");
}

/// Calls a tool with a progress token and returns the notified values and the result.
async fn with_token(pipe: &mut Pipe, tool: &str, ms: u64) -> (Vec<f64>, Value) {
    let arguments = json!({"ms": ms});
    let params = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": 7}});
    let id = pipe.send("tools/call", params).await;
    let mut messages = pipe.read_to(id).await;
    let last = messages.pop().unwrap();
    let values = messages.iter().map(|told| {
        assert_eq!(told["method"], "notifications/progress", "{told}");
        told["params"]["progress"].as_f64().unwrap()
    });
    (values.collect(), last["result"].clone())
}

#[tokio::test(start_paused = true)]
async fn progress_token_alone_does_not_extend_the_wait() {
    let mut pipe = legacy(&server(&Runs::default())).await;
    let (values, pending) = with_token(&mut pipe, "render", 20_000).await;
    task_of(&pending);
    assert_eq!(values, [1.0, 2.0, 3.0, 4.0], "progress of a task reaches the waiting request");
}

#[tokio::test(start_paused = true)]
async fn progress_of_host_that_extends_its_timeout_keeps_the_call_waiting() {
    let host = Host::new().progress_extends(true);
    let mut pipe = legacy(&server_with(&Runs::default(), hosts().host("test", host))).await;
    let (values, done) = with_token(&mut pipe, "render_late", 30_000).await;
    assert_eq!(text(&done), "30 frames");
    assert!(values.is_sorted(), "{values:?}");
    // Notifications before and between the frames do not hide a frame.
    for frame in 1..30 {
        assert!(values.contains(&f64::from(frame)), "{frame}: {values:?}");
    }
    // Without a token the client gets no progress, so its timeout ends the call.
    task_of(&pipe.call("render", json!({"ms": 31_000})).await);
}

#[tokio::test(start_paused = true)]
async fn keep_alive_notifications_of_silent_tool_increase() {
    let host = Host::new().progress_extends(true);
    let server = server_with(&Runs::default(), hosts().host("test", host));
    let mut pipe = legacy(&server).await;
    let arguments = json!({"ms": 35_000});
    let params = json!({"name": "nap", "arguments": arguments, "_meta": {"progressToken": "a"}});
    let id = pipe.send("tools/call", params).await;
    let mut values = Vec::new();
    let done = loop {
        let message = pipe.read().await;
        match message["id"] == id {
            true => break message["result"].clone(),
            false => values.push(message["params"]["progress"].as_f64().unwrap()),
        }
    };
    assert_eq!(text(&done), "slept 35000 ms");
    assert!(values.len() > 10, "three per call timeout of 6 s: {values:?}");
    assert!(values.is_sorted());
}

#[tokio::test(start_paused = true)]
async fn output_schema_is_listed_with_pending_results() {
    let runs = Runs::default();
    let mut pipe = legacy(&server(&runs)).await;
    let tools = pipe.result("tools/list", json!({})).await["tools"].clone();
    let find = |name: &str| {
        let tools = tools.as_array().unwrap();
        tools.iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("{name}"))
    };
    let wide = &find("typed_nap")["outputSchema"];
    assert_eq!(wide["anyOf"][0]["properties"]["ms"]["type"], "integer", "{wide}");
    assert_eq!(wide["anyOf"][1]["required"], json!(["task"]));
    assert_eq!(find("always")["execution"]["taskSupport"], "optional");
    let pending = pipe.call("typed_nap", json!({"ms": 20_000})).await;
    task_of(&pending);
}
