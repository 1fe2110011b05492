//! Visibility: a hidden entry responds exactly like an unknown one.

use outlive::{
    server::{
        Principal, Prompt, Resource, ResourceTemplate, Scopes, Server, Tool,
        response::CompletionInput,
    },
    wire::PromptArgument,
};
use serde_json::{Value, json};

use crate::support::pipe::{MODERN, Pipe, REVISIONS, error, with_meta};

fn is_ann(principal: &Principal) -> bool {
    principal.name() == Some("ann")
}

fn ann() -> Principal {
    Principal::named("ann")
}

fn bob() -> Principal {
    Principal::named("bob")
}

fn server() -> Server {
    let suggest = async |_: CompletionInput| vec!["secret"];
    Server::builder("test", "1")
        .tool(Tool::new("open", async || "open"))
        .tool(Tool::new("secret", async || "secret").visible_to(is_ann))
        .resource(Resource::new("mem://open", "open", async || "open"))
        .resource(Resource::new("mem://secret", "secret", async || "secret").visible_to(is_ann))
        .resource_template(ResourceTemplate::new("open://{x}", "open", async || "open"))
        .resource_template(
            ResourceTemplate::new("secret://{x}", "secret", async || "secret")
                .complete("x", suggest)
                .visible_to(is_ann),
        )
        .prompt(Prompt::new("open", async || "open"))
        .prompt(
            Prompt::new("secret", async || "secret")
                .argument(PromptArgument::new("x"))
                .complete("x", suggest)
                .visible_to(is_ann),
        )
        .build()
        .unwrap()
}

const LISTS: [(&str, &str); 4] = [
    ("tools/list", "tools"),
    ("resources/list", "resources"),
    ("resources/templates/list", "resourceTemplates"),
    ("prompts/list", "prompts"),
];

async fn names(pipe: &mut Pipe, (method, member): (&str, &str)) -> Vec<Value> {
    let result = pipe.result(method, json!({})).await;
    result[member].as_array().unwrap().iter().map(|entry| entry["name"].clone()).collect()
}

// TOOL-02, TOOL-03, RES-15
#[tokio::test(start_paused = true)]
async fn lists_contain_visible_entries_only() {
    let server = server();
    let everyone = [Principal::LOCAL, Principal::ANONYMOUS, bob(), ann()];
    for version in REVISIONS {
        for caller in &everyone {
            let mut pipe = Pipe::speaking_as(&server, version, caller.clone()).await;
            for list in LISTS {
                let expected: &[&str] =
                    if is_ann(caller) { &["open", "secret"] } else { &["open"] };
                assert_eq!(
                    names(&mut pipe, list).await,
                    expected,
                    "{version}: {caller:?}: {list:?}"
                );
            }
        }
    }
}

/// One request per way to reach an entry by name.
fn requests(name: &str) -> Vec<(&'static str, Value)> {
    let argument = json!({"name": "x", "value": ""});
    vec![
        ("tools/call", json!({"name": name})),
        ("resources/read", json!({"uri": format!("mem://{name}")})),
        ("resources/read", json!({"uri": format!("{name}://1")})),
        ("prompts/get", json!({"name": name})),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": name}, "argument": argument}),
        ),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/resource", "uri": format!("{name}://{{x}}")}, "argument": argument}),
        ),
    ]
}

// TOOL-24, RES-13, PROMPT-08, COMPL-05
#[tokio::test(start_paused = true)]
async fn hidden_entry_responds_like_unknown_entry() {
    let server = server();
    for version in REVISIONS {
        let mut owner = Pipe::speaking_as(&server, version, ann()).await;
        let mut stranger = Pipe::speaking_as(&server, version, bob()).await;
        for ((method, hidden), (_, missing)) in
            requests("secret").into_iter().zip(requests("nowhere"))
        {
            owner.result(method, hidden.clone()).await;
            let refusal = stranger.error(method, hidden).await.to_string();
            let unknown = stranger.error(method, missing).await.to_string();
            assert_eq!(refusal.replace("secret", "nowhere"), unknown, "{version}: {method}");
        }
        // The suggestion for a misspelled name does not reveal a hidden entry.
        let slip = json!({"name": "secrte"});
        for method in ["tools/call", "prompts/get"] {
            let refusal = stranger.error(method, slip.clone()).await;
            assert!(!refusal["message"].as_str().unwrap().contains("mean"), "{version}: {refusal}");
            let refusal = owner.error(method, slip.clone()).await;
            assert!(
                refusal["message"].as_str().unwrap().contains("did you mean `secret`?"),
                "{version}: {refusal}"
            );
        }
    }
}

// RES-10, RES-13
#[tokio::test(start_paused = true)]
async fn hidden_resource_cannot_be_subscribed_to() {
    let server = server();
    let uris = ["mem://secret", "secret://1"];
    for version in REVISIONS {
        let mut owner = Pipe::speaking_as(&server, version, ann()).await;
        let mut stranger = Pipe::speaking_as(&server, version, bob()).await;
        for uri in uris {
            if version == MODERN {
                let params =
                    || with_meta(json!({"notifications": {"resourceSubscriptions": [uri]}}));
                owner.send_as_is("subscriptions/listen", params()).await;
                assert_eq!(
                    owner.read().await["params"]["notifications"],
                    json!({"resourceSubscriptions": [uri]})
                );
                stranger.send_as_is("subscriptions/listen", params()).await;
                assert_eq!(
                    stranger.read().await["params"]["notifications"],
                    json!({"resourceSubscriptions": []})
                );
            } else {
                owner.result("resources/subscribe", json!({"uri": uri})).await;
                let refusal =
                    error(&stranger.ask("resources/subscribe", json!({"uri": uri})).await);
                assert_eq!(refusal["code"], -32002, "{version}");
            }
        }
        for uri in uris {
            server.resource_updated(uri);
            assert_eq!(owner.read().await["params"]["uri"], uri, "{version}");
        }
        stranger.quiet().await;
    }
}

// PAGE-04
#[tokio::test(start_paused = true)]
async fn list_pages_are_filled_with_visible_entries() {
    let builder = Server::builder("test", "1").limits(|limits| limits.page_size = 2);
    let server = (0..10)
        .fold(builder, |builder, n| {
            let tool = Tool::new(format!("t{n}"), async || "t");
            builder.tool(if n % 3 == 0 { tool } else { tool.visible_to(is_ann) })
        })
        .build()
        .unwrap();
    let mut pipe = Pipe::open_as(&server, bob());
    let first = pipe.result("tools/list", json!({})).await;
    let names = |page: &Value| {
        page["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&first), ["t0", "t3"]);
    let second = pipe.result("tools/list", json!({"cursor": first["nextCursor"]})).await;
    assert_eq!(names(&second), ["t6", "t9"]);
    assert_eq!(second.get("nextCursor"), None);
}

// SEC-09
#[tokio::test(start_paused = true)]
async fn client_info_does_not_grant_visibility() {
    let server = server();
    let mut pipe = Pipe::open_as(&server, bob());
    let info = json!({"io.modelcontextprotocol/clientInfo": {"name": "ann", "version": "1"}});
    let refusal = pipe.error("tools/call", json!({"name": "secret", "_meta": info})).await;
    assert_eq!(refusal["code"], -32602);
}

#[tokio::test(start_paused = true)]
async fn capability_is_declared_though_every_entry_is_hidden() {
    let server = Server::builder("test", "1")
        .tool(Tool::new("secret", async || "s").visible_to(is_ann))
        .build()
        .unwrap();
    let mut pipe = Pipe::open_as(&server, bob());
    assert_eq!(names(&mut pipe, LISTS[0]).await, Vec::<Value>::new());
    let discovered = pipe.result("server/discover", json!({})).await;
    assert_eq!(discovered["capabilities"]["tools"], json!({"listChanged": true}));
}

#[tokio::test(start_paused = true)]
async fn hidden_entry_reserves_its_name() {
    let tool = |text: &'static str| Tool::new("same", move || std::future::ready(text));
    let builder = Server::builder("test", "1").tool(tool("a").visible_to(is_ann)).tool(tool("b"));
    let refused = builder.build().unwrap_err().to_string();
    assert!(refused.starts_with("tool `same`: this name is already registered"), "{refused}");
}

/// Scopes are not secret: every error for a missing scope names it.
// ARS-07, ARS-08
#[tokio::test(start_paused = true)]
async fn missing_scope_is_named_in_error() {
    let suggest = async |_: CompletionInput| vec!["secret"];
    let server = Server::builder("test", "1")
        .tool(Tool::new("open", async || "open"))
        .tool(Tool::new("secret", async || "secret").scopes(["a", "b"]))
        .resource(Resource::new("mem://open", "open", async || "open"))
        .resource(Resource::new("mem://secret", "secret", async || "secret").scopes(["a", "b"]))
        .resource_template(ResourceTemplate::new("open://{x}", "open", async || "open"))
        .resource_template(
            ResourceTemplate::new("secret://{x}", "secret", async || "secret")
                .complete("x", suggest)
                .scopes(["a", "b"]),
        )
        .prompt(Prompt::new("open", async || "open"))
        .prompt(
            Prompt::new("secret", async || "secret")
                .argument(PromptArgument::new("x"))
                .complete("x", suggest)
                .scopes(["a", "b"]),
        )
        .build()
        .unwrap();
    let with = |scopes: &[&str]| ann().with_scopes(Scopes::of(scopes));
    for version in REVISIONS {
        for (caller, may) in [
            (with(&["a"]), false),
            (with(&["a", "b", "c"]), true),
            (bob(), false),
            (Principal::ANONYMOUS, false),
            // Over stdio the caller owns the process.
            (Principal::LOCAL, true),
        ] {
            let mut pipe = Pipe::speaking_as(&server, version, caller.clone()).await;
            for list in LISTS {
                let expected: &[&str] = if may { &["open", "secret"] } else { &["open"] };
                assert_eq!(names(&mut pipe, list).await, expected, "{version}: {caller:?}");
            }
            for (method, params) in requests("secret") {
                if may {
                    pipe.result(method, params).await;
                    continue;
                }
                let error = pipe.error(method, params).await;
                assert_eq!(
                    error,
                    json!({
                        "code": -32600,
                        "message": "the access token lacks a required scope; required scopes: a b",
                        "data": {"reason": "insufficient_scope", "scope": "a b"},
                    }),
                    "{version}: {method}"
                );
            }
            // The suggestion names only entries that the caller may use.
            let slip = pipe.error("tools/call", json!({"name": "secrte"})).await;
            let meant = slip["message"].as_str().unwrap().contains("did you mean `secret`?");
            assert_eq!(meant, may, "{version}: {slip}");
        }
    }
}
