//! Reload: changed code, changed tools, broken code.

use std::{fs, path::PathBuf, time::Duration};

use serde_json::json;

use crate::support::{Place, RawClient, Served, eventually, text_of};

/// A copy of the test worker that a test changes.
struct Code(PathBuf);

impl Code {
    fn new(place: &Place) -> Self {
        let copy = place.folder.join("tools.py");
        fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/worker.py"), &copy).unwrap();
        Self(copy)
    }

    fn change(&self, from: &str, to: &str) {
        let text = fs::read_to_string(&self.0).unwrap();
        assert!(text.contains(from), "the code contains {from}");
        fs::write(&self.0, text.replace(from, to)).unwrap();
    }
}

async fn greeting(client: &mut RawClient) -> String {
    text_of(&client.call("greet", json!({})).await)
}

#[tokio::test]
async fn saved_file_is_served_and_calls_do_not_fail() {
    let place = Place::new();
    let code = Code::new(&place);
    let served = Served::start(place.settings_of(&code.0).watch(["*.py"])).await;
    let mut client = served.client();
    assert_eq!(greeting(&mut client).await, "hello you");
    code.change("f\"hello {name}\"", "f\"good day, {name}\"");
    let mut greetings = Vec::new();
    while greetings.last().is_none_or(|last| last != "good day, you") {
        greetings.push(greeting(&mut client).await);
        assert!(greetings.len() < 100_000, "the new code is served");
    }
    greetings.dedup();
    assert_eq!(greetings, ["hello you", "good day, you"]);
}

#[tokio::test]
async fn broken_code_changes_nothing() {
    let place = Place::new();
    let code = Code::new(&place);
    let served = Served::start(place.settings_of(&code.0)).await;
    let mut client = served.client();
    code.change("def main():", "def main(:");
    let error = served.worker.reload(&served.server).await.unwrap_err();
    assert!(error.stderr().contains("SyntaxError"), "{}", error.stderr());
    assert_eq!(greeting(&mut client).await, "hello you");
    code.change("def main(:", "def main():");
    served.worker.reload(&served.server).await.unwrap();
    assert_eq!(greeting(&mut client).await, "hello you");
}

#[tokio::test]
async fn changed_tools_are_added_replaced_and_removed() {
    let place = Place::new();
    let code = Code::new(&place);
    let served = Served::start(place.settings_of(&code.0)).await;
    let mut client = served.client();
    code.change("def greet(", "def salute(");
    code.change("def naps(ctx):", "def naps(ctx, much=1):");
    code.change(
        "@tool(task=\"always\")\ndef naps",
        "@tool(task=\"always\", description=\"Naps.\")\ndef naps",
    );
    let changes = served.worker.reload(&served.server).await.unwrap();
    assert_eq!(changes.added, ["salute"]);
    assert_eq!(changes.replaced, ["naps"]);
    assert_eq!(changes.removed, ["greet"]);
    assert_eq!(text_of(&client.call("salute", json!({})).await), "hello you");
    let unknown = client.ask("tools/call", json!({"name": "greet", "arguments": {}})).await;
    assert!(unknown["error"]["message"].as_str().unwrap().contains("greet"), "{unknown}");
}

#[tokio::test]
async fn durable_call_moves_to_new_code_between_steps() {
    let place = Place::new();
    let code = Code::new(&place);
    let served = Served::start(place.settings_of(&code.0)).await;
    let mut client = served.client();
    let task = client.start("deploy", json!({})).await;
    client.until(&task, "input_required").await;
    let call =
        client.send("tools/call", json!({"name": "works", "arguments": {"seconds": 1}})).await;
    eventually("the other call runs", || place.count("works") == 1).await;
    code.change("is out", "is out there");
    served.worker.reload(&served.server).await.unwrap();
    client.accept(&task, "approve", json!({"yes": true})).await;
    assert_eq!(client.completed(&task).await, "shop:1 is out there");
    assert_eq!(place.count("build"), 1);
    // A call that is not durable ends in the old process.
    assert_eq!(text_of(&client.answer(call).await["result"]), "worked");
    let worker = &served.worker;
    eventually("the old process is gone", || worker.metrics().processes == 1).await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(worker.metrics().losses, 0);
}
