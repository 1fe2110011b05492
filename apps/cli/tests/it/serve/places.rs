//! Concurrency limits of commands.

use std::{fs, time::Duration};

use outlive::client::{
    Client,
    input::{InputCallbacks, InputResponse},
    request::result_text,
    tasks::TaskHandle,
};
use serde_json::json;

use super::{Place, builder, until};

const FILE: &str = r#"
[server]
max_waiting_jobs_per_caller = 3

[tools.ask]
description = "Asks, and waits."
shell = true
interactive = true
max_concurrent = 5
task = "TASK"
env = { MARK = "1" }
command = '''
echo '{"input": "go", "message": "Go on?"}' >&3
read -r response <&4
echo done
'''

[tools.hello]
description = "Says hello."
command = ["echo", "hello"]
"#;

/// Returns a client that never sends an input response.
async fn leaver(place: &Place) -> Client {
    let answers = InputCallbacks::new().form(|_| std::future::pending::<InputResponse>());
    place.client_with(builder().input_handler(answers)).await
}

/// Calls the tool, and disconnects while it waits for input. Returns the result, if the call does
/// not wait.
async fn leave(place: &Place) -> Option<String> {
    let client = leaver(place).await;
    let call = client.call_tool("ask", json!({}));
    match tokio::time::timeout(Duration::from_secs(3), async { call.await }).await {
        Ok(Ok(result)) => Some(result_text(&result)),
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => None,
    }
}

fn listed(place: &Place) -> Vec<serde_json::Value> {
    let listed = place.jobs(&["list", "--json"]).output().unwrap().stdout;
    String::from_utf8(listed)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[tokio::test]
async fn abandoned_jobs_are_limited_and_listed_after_restart() {
    let mut place = Place::new(&FILE.replace("TASK", "never"));
    for _ in 0..3 {
        assert_eq!(leave(&place).await, None);
    }
    let refused = leave(&place).await.expect("the fourth call is rejected");
    assert!(refused.contains("max_waiting_jobs_per_caller"), "{refused}");
    until("the fourth ends", || (place.running_jobs().len() == 3).then_some(())).await;
    place.kill();
    place.start();
    // Abandoned jobs count against the limit after a restart, too.
    let refused = leave(&place).await.expect("the fourth call is rejected");
    assert!(refused.contains("max_waiting_jobs_per_caller"), "{refused}");
    let found = listed(&place);
    assert_eq!(found.len(), 3, "{found:?}");
    for job in &found {
        assert_eq!((&job["tool"], &job["waitsFor"]), (&json!("ask"), &json!("Go on?")));
        assert_eq!(job["caller"], "127.0.0.1");
        // After the request state expires, a client cannot return.
        let spec = place.folder.join("data/jobs").join(job["id"].as_str().unwrap());
        let spec = fs::read(spec.join("spec.json")).unwrap();
        let spec: serde_json::Value = serde_json::from_slice(&spec).unwrap();
        assert_eq!(spec["abandon_timeout"]["secs"], 15 * 60, "{spec}");
        let ended = place.jobs(&["end", job["id"].as_str().unwrap()]).output().unwrap();
        assert!(ended.status.success(), "{ended:?}");
    }
    assert!(listed(&place).is_empty() && place.left_over().is_empty());
    assert_eq!(leave(&place).await, None);
    assert!(!place.jobs(&["end", "00"]).output().unwrap().status.success());
}

#[tokio::test]
async fn job_waiting_for_input_keeps_its_slot() {
    let file = FILE.replace("TASK", "never").replace("max_concurrent = 5", "max_concurrent = 2");
    let place = Place::new(&file);
    for _ in 0..2 {
        assert_eq!(leave(&place).await, None);
    }
    let refused = leave(&place).await.expect("no slot is free");
    assert!(refused.contains("tools.ask.max_concurrent"), "{refused}");
    assert_eq!(place.running_jobs().len(), 2);
    let client = place.client().await;
    assert_eq!(result_text(&client.call_tool("hello", json!({})).await.unwrap()), "hello");
}

#[tokio::test]
async fn task_waiting_for_slot_reports_status_and_starts() {
    let place = Place::new(
        r#"
[tools.slow]
description = "Runs until it may end."
shell = true
max_concurrent = 1
task = "always"
command = 'while [ ! -e "$arg_until" ]; do sleep 0.02; done; echo ended'
[tools.slow.arguments]
until = { type = "string" }
"#,
    );
    let client = place.client().await;
    let mut first = client.start_tool("slow", json!({"until": "one"})).await.unwrap();
    let mut second = client.start_tool("slow", json!({"until": "two"})).await.unwrap();
    says(&second, "waiting for a free slot (max_concurrent = 1)").await;
    fs::write(place.folder.join("one"), "").unwrap();
    assert_eq!(result_text(&first.wait().await.unwrap()), "ended");
    says(&second, "started").await;
    fs::write(place.folder.join("two"), "").unwrap();
    assert_eq!(result_text(&second.wait().await.unwrap()), "ended");
}

/// Waits until a task has a status message.
async fn says(task: &TaskHandle, message: &str) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    loop {
        let seen = task.get().await.unwrap().expect("the call is a task");
        if seen.message.as_deref() == Some(message) {
            return;
        }
        assert!(tokio::time::Instant::now() < deadline, "{seen:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
