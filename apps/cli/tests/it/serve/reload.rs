//! A file that changes while the server runs.

use std::fs;

use outlive::client::{
    notifications::{ListenFilter, ServerNotification},
    request::result_text,
};
use serde_json::json;

use super::{Place, until};

const FIRST: &str = r#"
[tools.slow]
description = "Waits."
command = ["sh", "-c", "touch begun; while [ ! -e go ]; do sleep 0.05; done; echo as it was"]
task = "always"

[tools.old]
description = "Goes."
command = ["echo", "old"]
"#;

#[tokio::test]
async fn reload_changes_tools_and_keeps_running_calls() {
    let place = Place::new(FIRST);
    let client = place.client().await;
    let mut slow = client.start_tool("slow", json!({})).await.unwrap();
    until("the command runs", || fs::exists(place.folder.join("begun")).unwrap().then_some(()))
        .await;
    let mut subscription = client.listen(ListenFilter::default().tools()).await.unwrap();

    place.write(&FIRST.replace("as it was", "as it is now").replace("tools.old", "tools.new"));
    let notice = subscription.next().await.unwrap();
    assert!(matches!(notice, ServerNotification::ToolsChanged), "{notice:?}");
    until("the reload is logged", || place.log().contains("reloaded ").then_some(())).await;
    let names: Vec<String> =
        client.list_tools().collect().await.unwrap().iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(names, ["slow", "new", "task_result", "task_cancel"]);

    fs::write(place.folder.join("go"), "").unwrap();
    assert_eq!(result_text(&slow.wait().await.unwrap()), "as it was");
    let again = client.call_tool("slow", json!({})).await.unwrap();
    assert_eq!(result_text(&again), "as it is now");
}

#[tokio::test]
async fn reload_with_mistake_reports_it_and_keeps_tools() {
    let place = Place::new(FIRST);
    let client = place.client().await;
    place.write("[tools.old]\ndescription = \"d\"\ncomand = [\"echo\"]\n");
    until("the mistake is logged", || {
        place.log().contains("outlive.toml:3: unknown key `comand` in [tools.old]").then_some(())
    })
    .await;
    assert_eq!(result_text(&client.call_tool("old", json!({})).await.unwrap()), "old");
}
