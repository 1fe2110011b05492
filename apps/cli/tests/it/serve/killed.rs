//! Servers that are killed or stopped while commands run.

use std::{fs, time::Duration};

use outlive::client::request::result_text;
use serde_json::json;

use super::Place;

const KILLS: usize = 50;

#[tokio::test]
async fn fifty_kills_lose_no_line_and_run_nothing_twice() {
    let mut place = Place::new(
        r#"
[tools.count]
description = "Counts to ten thousand."
shell = true
command = '''
echo run >> runs
n=0
while [ $n -lt 10000 ]; do
  n=$((n + 1))
  echo $n
  [ $((n % 100)) -ne 0 ] || sleep 0.05
  [ $n -ne 9900 ] || while [ ! -e go ]; do sleep 0.05; done
done
'''
task = "always"
max_output = "1 MiB"
"#,
    );
    let client = place.client().await;
    let mut task = client.start_tool("count", json!({})).await.unwrap();
    let waiting = tokio::spawn(async move { task.wait().await });
    for kill in 0..KILLS {
        // Each time a little longer, so that some kills happen before the server has found the
        // command.
        tokio::time::sleep(Duration::from_millis(10 * kill as u64)).await;
        assert!(!waiting.is_finished(), "the command ended before the last kill");
        place.kill();
        place.start();
    }
    fs::write(place.folder.join("go"), "").unwrap();
    let result = tokio::time::timeout(Duration::from_secs(60), waiting).await;
    let result = result
        .expect("the task ends")
        .unwrap()
        .unwrap_or_else(|error| panic!("{error}\n{}", place.log()));
    let expected: Vec<String> = (1..=10_000).map(|number| number.to_string()).collect();
    assert_eq!(result.is_error, None);
    assert!(result_text(&result) == expected.join("\n"), "{} blocks", result.content.len());
    assert_eq!(place.read("runs"), "run\n");
}

#[tokio::test]
async fn commands_of_tasks_survive_server_stop() {
    let mut place = Place::new(
        r#"
[tools.quiet]
description = "Says nothing until the end, after it has become a task."
command = ["sh", "-c", "echo run >> runs; while [ ! -e go ]; do sleep 0.05; done; echo 42"]
output = "json"
task_after = "100ms"
"#,
    );
    let client = place.client().await;
    let mut task = client.start_tool("quiet", json!({})).await.unwrap();
    assert!(task.task_id().is_some());
    place.stop();
    assert!(place.log().contains("1 command keeps running"), "{}", place.log());
    place.start();
    fs::write(place.folder.join("go"), "").unwrap();
    let result = tokio::time::timeout(Duration::from_secs(30), task.wait()).await;
    let result = result.expect("the task ends").unwrap();
    assert_eq!(result_text(&result), "42");
    assert_eq!(place.read("runs"), "run\n");
}
