//! The fallback tools.

use serde_json::{Value, json};

use super::world::{Runs, legacy, server, task_of};
use crate::support::pipe::{LEGACY, Pipe, result, text};

const UNKNOWN: &str =
    "no such task, or its result was deleted; call the tool again if you still need it";

fn names(list: &Value) -> Vec<&str> {
    list["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn fallback_tools_are_listed_for_clients_without_tasks_only() {
    let server = server(&Runs::default());
    for version in LEGACY {
        let list = Pipe::speaking(&server, version).await.result("tools/list", json!({})).await;
        assert!(names(&list).ends_with(&["plain", "task_result", "task_cancel"]), "{version}");
    }
    let mut modern = Pipe::open(&server);
    let list = result(&modern.modern("tools/list", json!({})).await);
    assert!(names(&list).ends_with(&["task_result", "task_cancel"]));
    let tasks = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let list = result(&modern.modern_with(tasks, "tools/list", json!({})).await);
    assert!(names(&list).ends_with(&["plain"]), "{list}");
    let mut declares = Pipe::open(&server);
    declares.legacy_with("2025-11-25", json!({"tasks": {}})).await;
    let list = declares.result("tools/list", json!({})).await;
    assert!(names(&list).ends_with(&["plain"]), "{list}");
}

#[tokio::test(start_paused = true)]
async fn status_of_task_is_returned_without_waiting() {
    let mut pipe = legacy(&server(&Runs::default())).await;
    let id = task_of(&pipe.call("render", json!({"ms": 20_000})).await);
    let began = tokio::time::Instant::now();
    let status = pipe.call("task_result", json!({"task": id, "wait_seconds": 0})).await;
    assert!(began.elapsed().is_zero());
    assert_eq!(status["structuredContent"]["task"]["status"], "working", "{status}");
}

#[tokio::test(start_paused = true)]
async fn result_without_task_argument_finds_the_only_running_task() {
    let mut pipe = legacy(&server(&Runs::default())).await;
    let none = pipe.call("task_result", json!({})).await;
    assert_eq!(
        (text(&none), &none["isError"]),
        ("no task is running; call the tool to start one", &json!(true))
    );
    let first = task_of(&pipe.call("nap", json!({"ms": 9_000})).await);
    let second = task_of(&pipe.call("nap", json!({"ms": 8_000})).await);
    let several = pipe.call("task_result", json!({})).await;
    assert_eq!(several["isError"], true);
    assert!(text(&several).contains(&first) && text(&several).contains(&second), "{several}");
    for (id, ms) in [(&first, 9_000), (&second, 8_000)] {
        let done = pipe.call("task_result", json!({"task": id})).await;
        assert_eq!(text(&done), format!("slept {ms} ms"));
    }
    let third = pipe.call("nap", json!({"ms": 11_000})).await;
    task_of(&third);
    pipe.call("task_result", json!({})).await;
    assert_eq!(text(&pipe.call("task_result", json!({})).await), "slept 11000 ms");
}

#[tokio::test(start_paused = true)]
async fn cancel_stops_the_task() {
    let mut pipe = legacy(&server(&Runs::default())).await;
    let id = task_of(&pipe.call("nap", json!({"ms": 60_000})).await);
    let cancelled = pipe.call("task_cancel", json!({"task": id})).await;
    let expected = format!("Cancellation of `nap` (task {id}) is requested; it has 30 s to stop.");
    assert_eq!(text(&cancelled), expected);
    let mut done = pipe.call("task_result", json!({"task": id})).await;
    while done["isError"] != true {
        done = pipe.call("task_result", json!({"task": id})).await;
    }
    assert_eq!(text(&done), "the task was cancelled");
    let again = pipe.call("task_cancel", json!({"task": id})).await;
    assert!(text(&again).contains("has already ended"), "{again}");
}

#[tokio::test(start_paused = true)]
async fn bad_arguments_get_one_clear_error() {
    let mut pipe = legacy(&server(&Runs::default())).await;
    for id in ["", "x", "5f1d6bb5a8a94a0f5f1d6bb5a8a94a0f", &"0".repeat(100_000)] {
        for tool in ["task_result", "task_cancel"] {
            let unknown = pipe.call(tool, json!({"task": id})).await;
            assert_eq!((text(&unknown), &unknown["isError"]), (UNKNOWN, &json!(true)));
        }
    }
    for (tool, arguments) in [
        ("task_result", json!({"task": 7})),
        ("task_result", json!({"wait_seconds": -1})),
        ("task_result", json!({"wait": 1})),
        ("task_cancel", json!({})),
    ] {
        let refused = pipe.call(tool, arguments.clone()).await;
        assert_eq!(refused["isError"], true, "{tool} {arguments}");
        assert!(text(&refused).starts_with("invalid arguments: "), "{refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn foreign_task_gets_the_text_of_an_unknown_one() {
    use outlive::server::Principal;
    let server = server(&Runs::default());
    let user = |name: &str| Principal::named(name);
    let mut alice = Pipe::speaking_as(&server, "2025-11-25", user("alice")).await;
    let mut bob = Pipe::speaking_as(&server, "2025-11-25", user("bob")).await;
    let id = task_of(&alice.call("nap", json!({"ms": 60_000})).await);
    for tool in ["task_result", "task_cancel"] {
        assert_eq!(text(&bob.call(tool, json!({"task": id})).await), UNKNOWN, "{tool}");
    }
    assert_eq!(
        text(&bob.call("task_result", json!({})).await),
        "no task is running; call the tool to start one"
    );
    let own = alice.call("task_result", json!({"task": id, "wait_seconds": 0})).await;
    assert_eq!(own["structuredContent"]["task"]["status"], "working");
}
