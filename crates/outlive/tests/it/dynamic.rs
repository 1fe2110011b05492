//! Entries added, replaced and removed while a server runs, and the change notifications.

use std::time::Duration;

use outlive::server::{Prompt, Resource, ResourceTemplate, Server, ServerBuilder, State, Tool};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::support::{
    gate::Gate,
    pipe::{LEGACY, MODERN, Pipe, REVISIONS, raw, text, with_meta},
};

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

fn builder() -> ServerBuilder {
    Server::builder("test", "1").advertise_tools().advertise_resources().advertise_prompts()
}

fn server() -> Server {
    builder().build().unwrap()
}

fn tool(name: &str) -> Tool {
    Tool::new(name, async || "t")
}

async fn names(pipe: &mut Pipe) -> Vec<String> {
    let result = pipe.result("tools/list", json!({})).await;
    result["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Opens a subscription and returns its ID.
async fn listen(pipe: &mut Pipe, wish: Value) -> u64 {
    let id =
        pipe.send_as_is("subscriptions/listen", with_meta(json!({"notifications": wish}))).await;
    assert_eq!(pipe.read().await["method"], "notifications/subscriptions/acknowledged");
    id
}

/// A list, and a function that changes it.
type Change = (&'static str, fn(&Server));

const CHANGES: [Change; 8] = [
    ("tools", |server| server.add_tool(tool("new")).unwrap()),
    ("tools", |server| assert!(server.remove_tool("new"))),
    ("resources", |server| {
        server.add_resource(Resource::new("mem://new", "new", async || "r")).unwrap()
    }),
    ("resources", |server| assert!(server.remove_resource("mem://new"))),
    ("resources", |server| {
        server
            .add_resource_template(ResourceTemplate::new("new://{x}", "new", async || "r"))
            .unwrap();
    }),
    ("resources", |server| assert!(server.remove_resource_template("new://{x}"))),
    ("prompts", |server| server.add_prompt(Prompt::new("new", async || "p")).unwrap()),
    ("prompts", |server| assert!(server.remove_prompt("new"))),
];

// TOOL-02
#[tokio::test(start_paused = true)]
async fn added_replaced_and_removed_tools_change_list_immediately() {
    for version in REVISIONS {
        let server = server();
        let mut pipe = Pipe::speaking(&server, version).await;
        assert_eq!(names(&mut pipe).await, Vec::<String>::new(), "{version}");
        for name in ["a", "b", "c"] {
            server.add_tool(tool(name)).unwrap();
        }
        assert_eq!(names(&mut pipe).await, ["a", "b", "c"], "{version}");
        server.add_tool(Tool::new("b", async || "another")).unwrap();
        assert_eq!(
            names(&mut pipe).await,
            ["a", "b", "c"],
            "{version}: a replaced tool keeps its position"
        );
        assert_eq!(text(&pipe.call("b", json!({})).await), "another", "{version}");
        assert!(server.remove_tool("b"));
        assert!(!server.remove_tool("b"), "the tool is already removed");
        assert_eq!(names(&mut pipe).await, ["a", "c"], "{version}");
        assert_eq!(
            pipe.error("tools/call", json!({"name": "b"})).await["code"],
            -32602,
            "{version}"
        );
        server.add_tool(tool("b")).unwrap();
        assert_eq!(names(&mut pipe).await, ["a", "c", "b"], "{version}: a re-added tool is last");
    }
}

#[tokio::test(start_paused = true)]
async fn client_connecting_after_change_gets_no_notification() {
    for version in REVISIONS {
        let server = server();
        let mut before = Pipe::speaking(&server, LEGACY[0]).await;
        CHANGES.iter().for_each(|(_, change)| change(&server));
        server.add_tool(tool("early")).unwrap();
        let mut pipe = Pipe::speaking(&server, version).await;
        if version == MODERN {
            listen(&mut pipe, json!({"toolsListChanged": true})).await;
        }
        assert_eq!(names(&mut pipe).await, ["early"]);
        pipe.quiet().await;
        assert_eq!(before.read().await["method"], "notifications/tools/list_changed");
        // A change after the connection is notified.
        server.add_tool(tool("late")).unwrap();
        assert_eq!(pipe.read().await["method"], "notifications/tools/list_changed");
    }
}

#[tokio::test(start_paused = true)]
async fn added_and_removed_resources_and_prompts_change_lists() {
    let server = server();
    let mut pipe = Pipe::open(&server);
    server.add_resource(Resource::new("mem://a", "a", async || "a")).unwrap();
    server.add_resource_template(ResourceTemplate::new("t://{x}", "t", async || "t")).unwrap();
    server.add_prompt(Prompt::new("p", async || "p")).unwrap();
    for uri in ["mem://a", "t://1"] {
        pipe.result("resources/read", json!({"uri": uri})).await;
    }
    pipe.result("prompts/get", json!({"name": "p"})).await;
    assert!(
        server.remove_resource("mem://a")
            && server.remove_resource_template("t://{x}")
            && server.remove_prompt("p")
    );
    assert!(
        !server.remove_resource("mem://a")
            && !server.remove_resource_template("t://{x}")
            && !server.remove_prompt("p")
    );
    for uri in ["mem://a", "t://1"] {
        assert_eq!(pipe.error("resources/read", json!({"uri": uri})).await["code"], -32602);
    }
    assert_eq!(pipe.error("prompts/get", json!({"name": "p"})).await["code"], -32602);
}

// VER-13, TOOL-01
#[tokio::test(start_paused = true)]
async fn first_entry_of_a_feature_declares_its_capability() {
    let server = Server::builder("test", "1").build().unwrap();
    let mut pipe = Pipe::open(&server);
    assert_eq!(pipe.error("tools/list", json!({})).await["code"], -32601);
    assert_eq!(pipe.result("server/discover", json!({})).await["capabilities"], json!({}));
    server.add_tool(tool("a")).unwrap();
    assert_eq!(names(&mut pipe).await, ["a"]);
    let discovered = pipe.result("server/discover", json!({})).await;
    assert_eq!(discovered["capabilities"], json!({"tools": {"listChanged": true}}));
}

#[tokio::test(start_paused = true)]
async fn running_call_of_removed_tool_completes() {
    let gate = Gate::default();
    let wait = async |gate: State<Gate>| {
        gate.pass().await;
        "done"
    };
    let server = builder().tool(Tool::new("wait", wait)).state(gate.clone()).build().unwrap();
    let mut pipe = Pipe::open(&server);
    let id = pipe.send("tools/call", json!({"name": "wait"})).await;
    gate.arrived().await;
    assert!(server.remove_tool("wait"));
    gate.open(1);
    assert_eq!(text(&pipe.answer(id).await["result"]), "done");
}

// TOOL-23, RES-11, PROMPT-07
#[tokio::test(start_paused = true)]
async fn session_is_notified_of_every_list_change() {
    for version in LEGACY {
        let server = server();
        let mut pipe = Pipe::speaking(&server, version).await;
        for (list, change) in CHANGES {
            change(&server);
            let told = pipe.read().await;
            let method = format!("notifications/{list}/list_changed");
            assert_eq!(
                told,
                json!({"jsonrpc": "2.0", "method": method, "params": {}}),
                "{version}"
            );
            pipe.quiet().await;
        }
    }
}

// TOOL-23, RES-11, PROMPT-07, SUB-02, SUB-06
#[tokio::test(start_paused = true)]
async fn subscription_is_notified_of_requested_lists_only() {
    let server = server();
    let mut everything = Pipe::open(&server);
    let all =
        json!({"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true});
    let id = listen(&mut everything, all).await;
    let mut tools = Pipe::open(&server);
    let only =
        listen(&mut tools, json!({"toolsListChanged": true, "promptsListChanged": false})).await;
    let mut nobody = Pipe::open(&server);
    nobody.result("tools/list", json!({})).await;
    for (list, change) in CHANGES {
        change(&server);
        let method = format!("notifications/{list}/list_changed");
        let params = |id: u64| json!({"_meta": {SUBSCRIPTION: id}});
        assert_eq!(
            everything.read().await,
            json!({"jsonrpc": "2.0", "method": method, "params": params(id)})
        );
        if list == "tools" {
            assert_eq!(
                tools.read().await,
                json!({"jsonrpc": "2.0", "method": method, "params": params(only)})
            );
        }
        tools.quiet().await;
    }
    everything.quiet().await;
    nobody.quiet().await;
}

// C-16
#[tokio::test(start_paused = true)]
async fn changes_within_debounce_are_notified_once() {
    for version in [MODERN, "2025-11-25"] {
        let server = builder().list_changed_debounce(Duration::from_millis(300)).build().unwrap();
        let mut pipe = Pipe::speaking(&server, version).await;
        if version == MODERN {
            listen(&mut pipe, json!({"toolsListChanged": true})).await;
        }
        let start = Instant::now();
        for n in 0..50 {
            server.add_tool(tool(&format!("t{n}"))).unwrap();
            sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(pipe.read().await["method"], "notifications/tools/list_changed", "{version}");
        assert_eq!(start.elapsed(), Duration::from_millis(300), "{version}");
        pipe.quiet().await;
        // A later change is notified again.
        server.remove_tool("t0");
        assert_eq!(pipe.read().await["method"], "notifications/tools/list_changed", "{version}");
        pipe.quiet().await;
    }
}

#[tokio::test(start_paused = true)]
async fn initial_entries_are_not_notified() {
    let server = builder().tool(tool("a")).prompt(Prompt::new("p", async || "p")).build().unwrap();
    for version in LEGACY {
        Pipe::speaking(&server, version).await.quiet().await;
    }
}

#[tokio::test(start_paused = true)]
async fn change_before_session_start_is_not_notified() {
    for version in LEGACY {
        let server = builder().list_changed_debounce(Duration::from_millis(300)).build().unwrap();
        server.add_tool(tool("early")).unwrap();
        let mut pipe = Pipe::speaking(&server, version).await;
        assert_eq!(names(&mut pipe).await, ["early"]);
        pipe.quiet().await;
        // A change during the session is notified, even if another client connected in between.
        server.add_tool(tool("late")).unwrap();
        assert_eq!(pipe.read().await["method"], "notifications/tools/list_changed", "{version}");
    }
}

#[tokio::test(start_paused = true)]
async fn rejected_entry_or_unknown_removal_changes_nothing() {
    let server = builder().tool(tool("a")).build().unwrap();
    let mut pipe = Pipe::speaking(&server, "2025-11-25").await;
    let broken = Tool::new("a", async || "new").input_schema(raw(&json!({"type": "array"})));
    assert!(server.add_tool(broken).is_err());
    assert!(server.add_tool(Tool::new("needs", async |_: State<Gate>| "x")).is_err());
    assert!(server.add_resource(Resource::new("no scheme", "r", async || "r")).is_err());
    assert!(
        server.add_resource_template(ResourceTemplate::new("t://{", "t", async || "t")).is_err()
    );
    assert!(server.add_prompt(Prompt::new("", async || "p")).is_err());
    assert!(!server.remove_tool("none"));
    pipe.quiet().await;
    assert_eq!(text(&pipe.call("a", json!({})).await), "t");
}

#[tokio::test(start_paused = true)]
async fn change_from_thread_outside_runtime_is_notified() {
    let server = server();
    let mut pipe = Pipe::speaking(&server, "2025-11-25").await;
    let elsewhere = server.clone();
    std::thread::spawn(move || elsewhere.add_tool(tool("a")).unwrap()).join().unwrap();
    assert_eq!(pipe.read().await["method"], "notifications/tools/list_changed");
    assert_eq!(names(&mut pipe).await, ["a"]);
    pipe.quiet().await;
}

// TOOL-03, VER-14
#[tokio::test(start_paused = true)]
async fn list_is_the_same_on_every_connection() {
    let server = server();
    let mut pipes = Vec::new();
    for version in REVISIONS {
        pipes.push(Pipe::speaking(&server, version).await);
    }
    server.add_tool(tool("a")).unwrap();
    for pipe in &mut pipes {
        assert_eq!(names(pipe).await, ["a"]);
    }
}
