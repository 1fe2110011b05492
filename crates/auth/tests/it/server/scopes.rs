//! Tests of authorization by the scopes of a token.

use serde_json::{Value, json};

use super::support::{METADATA, Protected, Sent, Signer, StandingClock, builder};

fn challenge(scopes: &str) -> String {
    format!(
        "Bearer error=\"insufficient_scope\", error_description=\"the token lacks a required scope; request all of these scopes\", scope=\"{scopes}\", resource_metadata=\"{METADATA}\""
    )
}

async fn names(server: &Protected, method: &str, member: &str, token: &str) -> Vec<Value> {
    let got = server.send(&Sent::modern(method, None).bearer(token)).await;
    let list = got.result()[member].as_array().unwrap().clone();
    list.iter().map(|entry| entry["name"].clone()).collect()
}

#[tokio::test]
async fn lists_contain_only_items_that_the_scopes_allow() {
    let clock = StandingClock::new();
    let signer = Signer::new(&clock);
    let server = Protected::start(&signer).await;
    let little = signer.token(json!({}));
    let much = signer.token(json!({"scope": "mcp write read"}));
    for (method, member, few, many) in [
        ("tools/list", "tools", json!(["whoami", "shown"]), json!(["whoami", "write", "shown"])),
        ("resources/list", "resources", json!(["open"]), json!(["open", "secret"])),
        ("resources/templates/list", "resourceTemplates", json!([]), json!(["deep"])),
        ("prompts/list", "prompts", json!(["plain"]), json!(["plain", "wise"])),
    ] {
        assert_eq!(json!(names(&server, method, member, &little).await), few, "{method}");
        assert_eq!(json!(names(&server, method, member, &much).await), many, "{method}");
    }
}

// ARS-05, ARS-07
#[tokio::test]
async fn missing_scope_returns_all_required_scopes() {
    let clock = StandingClock::new();
    let signer = Signer::new(&clock);
    let server = Protected::start(&signer).await;
    let token = signer.token(json!({}));
    let rows = [
        (Sent::call("write"), "mcp write"),
        (Sent::call("shown"), "admin mcp write"),
        (Sent::read("mem://secret"), "mcp read"),
        (Sent::read("deep://x"), "mcp read"),
        (Sent::prompt("wise"), "mcp read"),
    ];
    for (request, scopes) in &rows {
        for accept in ["application/json, text/event-stream", "text/event-stream"] {
            let got = server.send(&request.clone().replaced("accept", accept).bearer(&token)).await;
            assert_eq!((got.status, got.challenge()), (403, challenge(scopes).as_str()));
            let error = &got.json()["error"];
            assert_eq!(error["code"], json!(-32600));
            assert_eq!(error["data"]["reason"], json!("insufficient_scope"));
            assert_eq!(got.json()["id"], json!(1));
        }
    }
    assert_eq!(server.calls(), 0);
    let token = signer.token(json!({"scope": "mcp write read admin"}));
    for (request, _) in &rows {
        assert_eq!(server.send(&request.clone().bearer(&token)).await.status, 200);
    }
    assert_eq!(server.calls(), rows.len());
    // An unknown tool stays unknown, whatever the scopes.
    let got = server.call("nothing", &token).await;
    assert_eq!(got.json()["error"]["code"], json!(-32602));
}

// ARS-07: the same in the legacy era.
#[tokio::test]
async fn missing_scope_in_a_session_returns_all_required_scopes() {
    let clock = StandingClock::new();
    let signer = Signer::new(&clock);
    let server = Protected::start(&signer).await;
    let token = signer.token(json!({}));
    let post = |message: Value| {
        Sent::new("POST", "/mcp")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .bearer(&token)
            .body(&message)
    };
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "old", "version": "1"},
        }});
        let opened = server.send(&post(hello)).await;
        let session = opened.header("mcp-session-id").unwrap().to_owned();
        let call =
            json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "write"}});
        let request =
            post(call).header("mcp-session-id", session).header("mcp-protocol-version", version);
        let got = server.send(&request).await;
        assert_eq!(
            (got.status, got.challenge()),
            (403, challenge("mcp write").as_str()),
            "{version}"
        );
        // The same session continues with a better token.
        let better = format!("Bearer {}", signer.token(json!({"scope": "mcp write"})));
        assert_eq!(server.send(&request.replaced("authorization", &better)).await.status, 200);
    }
}

// ARS-08
#[tokio::test]
async fn broad_scope_grants_implied_scopes() {
    let clock = StandingClock::new();
    let signer = Signer::new(&clock);
    let builder = builder(&signer).implies("admin", ["write", "mcp"]).implies("write", ["read"]);
    let server = Protected::with(builder).await;
    let admin = signer.token(json!({"scope": "admin"}));
    for request in [Sent::call("shown"), Sent::call("write"), Sent::read("mem://secret")] {
        assert_eq!(server.send(&request.bearer(&admin)).await.status, 200);
    }
    let writer = signer.token(json!({"scope": "mcp write"}));
    assert_eq!(server.send(&Sent::read("mem://secret").bearer(&writer)).await.status, 200);
    assert_eq!(server.call("shown", &writer).await.challenge(), challenge("admin mcp write"));
    // A narrow scope does not include the broad one.
    let reader = signer.token(json!({"scope": "mcp read"}));
    assert_eq!(server.call("write", &reader).await.status, 403);
}

#[tokio::test]
async fn scopes_are_accepted_as_a_string_or_a_list() {
    let clock = StandingClock::new();
    let signer = Signer::new(&clock);
    let server = Protected::start(&signer).await;
    for changes in [
        json!({"scope": "mcp write"}),
        json!({"scope": ["mcp", "write"]}),
        json!({"scope": null, "scp": ["mcp", "write"]}),
        json!({"scope": null, "scp": "write mcp"}),
    ] {
        assert_eq!(server.call("write", &signer.token(changes)).await.status, 200);
    }
}
