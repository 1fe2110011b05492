//! The API: credentials, permissions, errors, and responses as `openapi.json` describes them.

use std::time::Duration;

use http::HeaderName;
use serde_json::{Value, json};

use crate::desk::{ADA, ANN, ANN_MCP, Ask, BEN, Desk, Reply, elicitation};

const API: &str = "/console/api/v1";

fn openapi() -> Value {
    serde_json::from_str(include_str!("../../openapi.json")).expect("is JSON")
}

/// Checks that a response has exactly the members of its schema.
#[track_caller]
fn has_schema(value: &Value, schema: &str) {
    let openapi = openapi();
    check(value, &openapi["components"]["schemas"][schema], &openapi, schema);
}

#[track_caller]
fn check(value: &Value, schema: &Value, openapi: &Value, path: &str) {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.rsplit('/').next().expect("a name");
        return check(value, &openapi["components"]["schemas"][name], openapi, path);
    }
    if let Some(properties) = schema["properties"].as_object() {
        let object = value.as_object().unwrap_or_else(|| panic!("{path} is no object: {value}"));
        for name in object.keys() {
            assert!(properties.contains_key(name), "{path}.{name} is not described");
        }
        for name in schema["required"].as_array().into_iter().flatten() {
            let name = name.as_str().expect("a name");
            assert!(object.contains_key(name), "{path}.{name} is missing");
        }
        for (name, value) in object {
            check(value, &properties[name], openapi, &format!("{path}.{name}"));
        }
    } else if let (Some(items), Some(values)) = (schema.get("items"), value.as_array()) {
        values.iter().for_each(|value| check(value, items, openapi, path));
    }
}

async fn get(desk: &Desk, path: &str, token: &str) -> Reply {
    desk.send(Ask::get(&format!("{API}/{path}")).bearer(token)).await
}

async fn post(desk: &Desk, path: &str, token: &str, body: &Value) -> Reply {
    desk.send(Ask::post(&format!("{API}/{path}"), &body.to_string()).bearer(token).json()).await
}

#[tokio::test]
async fn responses_match_their_description() {
    let desk = Desk::new();
    desk.approval("t1", "ann", &["ben"], 2).await;
    desk.create("t2", "ann", None).await;
    for (path, schema) in [
        ("me", "Me"),
        ("inbox", "Inbox"),
        ("inputs/t1/%23approval", "InputRequest"),
        ("tasks?limit=1", "TaskPage"),
        ("tasks/t1", "TaskDetail"),
        ("tasks/t1/journal", "JournalPage"),
        ("tasks/t1/output", "Output"),
        ("tasks/t1/audit", "TaskAudit"),
        ("metrics", "Metrics"),
        ("audit", "AuditPage"),
        ("workers", "Workers"),
        ("deliveries", "Deliveries"),
    ] {
        let reply = get(&desk, path, ADA).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        has_schema(&reply.json(), schema);
    }
    let answer = json!({"digest": "digest-t1", "action": "accept"});
    let reply = post(&desk, "inputs/t1/%23approval/answer", BEN, &answer).await;
    has_schema(&reply.json(), "Receipt");
    assert_eq!(reply.json(), json!({"state": "counted", "approvals": 1, "needed": 2}));
    let again = post(&desk, "inputs/t1/%23approval/answer", BEN, &answer).await;
    assert_eq!(again.status, 409);
    has_schema(&again.json(), "Error");
    let reply = post(&desk, "tasks/t2/cancel", ADA, &json!({})).await;
    assert_eq!((reply.status, reply.json()), (200, json!({"state": "cancelled"})));
}

#[tokio::test]
async fn request_without_a_credential_is_rejected() {
    let desk = Desk::new();
    for path in ["me", "tasks", "tasks/t1", "nothing", "stream"] {
        let reply = desk.get(&format!("{API}/{path}")).await;
        assert_eq!(
            (reply.status, reply.header("www-authenticate")),
            (401, Some("Bearer")),
            "{path}"
        );
        has_schema(&reply.json(), "Error");
    }
    assert_eq!(get(&desk, "me", "wrong-token-0123456789").await.status, 401);
}

#[tokio::test]
async fn own_credential_of_a_request_overrides_its_session() {
    let desk = Desk::new();
    let ada = desk.signed_in(ADA).await;
    let reply = ada.send(Ask::get(&format!("{API}/me")).bearer(ANN_MCP)).await;
    assert_eq!(reply.json()["person"], "ann");
    let reply = ada.send(Ask::get(&format!("{API}/me")).bearer("wrong-token-0123456789")).await;
    assert_eq!(reply.status, 401);
}

#[tokio::test]
async fn foreign_and_unknown_objects_get_the_same_bytes() {
    let desk = Desk::new();
    desk.approval("t1", "ann", &["ada"], 1).await;
    let paths = [
        "tasks/ID",
        "tasks/ID/journal",
        "tasks/ID/output",
        "tasks/ID/audit",
        "inputs/ID/%23approval",
    ];
    for path in paths {
        let foreign = get(&desk, &path.replace("ID", "t1"), BEN).await;
        let unknown = get(&desk, &path.replace("ID", "t9"), BEN).await;
        assert_eq!((foreign.status, unknown.status), (404, 404), "{path}");
        assert_eq!((foreign.body, foreign.headers), (unknown.body, unknown.headers), "{path}");
    }
    for path in
        ["tasks/ID/cancel", "tasks/ID/retry", "tasks/ID/purge", "inputs/ID/%23approval/answer"]
    {
        let body = match path.ends_with("answer") {
            true => json!({"digest": "digest-t1", "action": "accept"}),
            false => json!({}),
        };
        let foreign = post(&desk, &path.replace("ID", "t1"), BEN, &body).await;
        let unknown = post(&desk, &path.replace("ID", "t9"), BEN, &body).await;
        assert_eq!((foreign.status, unknown.status), (404, 404), "{path}");
        assert_eq!((foreign.body, foreign.headers), (unknown.body, unknown.headers), "{path}");
    }
    let ben = desk.signed_in(BEN).await;
    for path in ["tasks/ID", "tasks/ID/cancel", "inputs/ID/%23approval"] {
        let foreign = ben.get(&format!("/console/{}", path.replace("ID", "t1"))).await;
        let unknown = ben.get(&format!("/console/{}", path.replace("ID", "t9"))).await;
        assert_eq!((foreign.status, unknown.status), (404, 404), "{path}");
        assert_eq!((foreign.body, foreign.headers), (unknown.body, unknown.headers), "{path}");
    }
}

#[tokio::test]
async fn mcp_token_decides_nothing_and_learns_no_names() {
    let desk = Desk::new();
    desk.approval("t1", "ann", &["ann", "ben"], 1).await;
    desk.approval("t2", "ben", &["ann"], 1).await;
    let answer = json!({"digest": "digest-t1", "action": "accept"});
    let own = post(&desk, "inputs/t1/%23approval/answer", ANN_MCP, &answer).await;
    assert_eq!(own.status, 403, "{}", own.text());
    let answer = json!({"digest": "digest-t2", "action": "accept"});
    let addressed = post(&desk, "inputs/t2/%23approval/answer", ANN_MCP, &answer).await;
    assert_eq!(addressed.status, 404, "an MCP token is no addressee");
    let shown = get(&desk, "inputs/t1/%23approval", ANN_MCP).await;
    assert_eq!(shown.status, 200);
    assert!(!shown.text().contains("ben"), "{}", shown.text());
    for path in ["tasks/t1/journal", "tasks/t1/audit", "audit"] {
        assert_eq!(get(&desk, path, ANN_MCP).await.status, 403, "{path}");
    }
    let votes = get(&desk, "inputs/t1/%23approval", ADA).await.json()["votes"].clone();
    assert_eq!(votes, json!([]));
}

#[tokio::test]
async fn caller_and_operator_outside_the_audience_do_not_approve() {
    let desk = Desk::new();
    desk.approval("t1", "ann", &["ann", "ben"], 1).await;
    let answer = json!({"digest": "digest-t1", "action": "accept"});
    for token in [ANN, ADA] {
        let reply = post(&desk, "inputs/t1/%23approval/answer", token, &answer).await;
        assert_eq!(reply.status, 403, "{}", reply.text());
        has_schema(&reply.json(), "Error");
    }
    let reply = post(&desk, "tasks/t1/cancel", ADA, &json!({})).await;
    assert_eq!(reply.status, 200, "an operator may cancel");
    let late = post(&desk, "inputs/t1/%23approval/answer", BEN, &answer).await;
    assert_eq!(late.status, 410, "{}", late.text());
}

#[tokio::test]
async fn operations_are_for_operators() {
    let desk = Desk::new();
    desk.create("t1", "ann", None).await;
    for path in ["metrics", "workers", "deliveries", "bulk/x"] {
        assert_eq!(get(&desk, path, ANN).await.status, 403, "{path}");
    }
    for path in ["tasks/t1/retry", "tasks/t1/purge", "deliveries/x/send", "bulk/x/continue"] {
        assert_eq!(post(&desk, path, ANN, &json!({})).await.status, 403, "{path}");
    }
    let reply = post(&desk, "deliveries/x/send", ADA, &json!({})).await;
    assert_eq!(reply.status, 404);
}

#[tokio::test]
async fn cursor_continues_the_list_of_its_visitor_only() {
    let desk = Desk::new();
    for id in ["t1", "t2", "t3"] {
        desk.create(id, "ann", None).await;
    }
    let first = get(&desk, "tasks?limit=2", ANN).await.json();
    let next = first["next"].as_str().expect("a cursor");
    let second = get(&desk, &format!("tasks?limit=2&after={next}"), ANN).await.json();
    let ids = |page: &Value| -> Vec<String> {
        let tasks = page["tasks"].as_array().expect("tasks");
        tasks.iter().map(|task| task["id"].as_str().expect("an ID").to_owned()).collect()
    };
    assert_eq!([ids(&first), ids(&second)].concat(), ["t3", "t2", "t1"]);
    assert_eq!(second["next"], Value::Null);
    let foreign = get(&desk, &format!("tasks?after={next}"), BEN).await;
    assert_eq!(foreign.status, 422);
    let other_list = get(&desk, &format!("inbox?after={next}"), ANN).await;
    assert_eq!(other_list.status, 422);
}

#[tokio::test]
async fn request_that_is_not_valid_names_the_remedy() {
    let desk = Desk::new();
    desk.approval("t1", "ann", &["ben"], 1).await;
    for path in [
        "tasks?limit=0",
        "tasks?limit=201",
        "tasks?state=done",
        "tasks?x=1",
        "tasks?since=soon",
        "tasks/t1/output?after=x",
        "metrics?since=x",
    ] {
        let reply = get(&desk, path, ADA).await;
        assert_eq!(reply.status, 400, "{path}: {}", reply.text());
        has_schema(&reply.json(), "Error");
    }
    let path = "inputs/t1/%23approval/answer";
    for body in [
        json!({}),
        json!({"digest": 1, "action": "accept"}),
        json!([]),
        json!({"digest": "d", "action": "approve"}),
        json!({"digest": "d", "action": "accept", "x": 1}),
    ] {
        let reply = post(&desk, path, BEN, &body).await;
        assert_eq!(reply.status, 400, "{body}: {}", reply.text());
    }
    let ask = Ask::post(&format!("{API}/{path}"), "{}").bearer(BEN);
    assert_eq!(desk.send(ask).await.status, 400, "a body without a content type");
    let reply = post(&desk, path, BEN, &json!({"digest": "digest-t1", "action": "decline"})).await;
    assert_eq!((reply.status, reply.json()["fields"]["reason"].is_string()), (422, true));
    let reply = desk.send(Ask::new("DELETE", &format!("{API}/tasks/t1"), "").bearer(ADA)).await;
    assert_eq!((reply.status, reply.header("allow")), (405, Some("GET")));
}

#[tokio::test]
async fn cursor_opens_for_a_day() {
    let (desk, hour) = (Desk::new(), Duration::from_secs(3_600));
    for id in ["t1", "t2"] {
        desk.approval(id, "ann", &["ben"], 1).await;
    }
    let mut cursors = Vec::new();
    for list in ["tasks", "inbox", "audit"] {
        // The audit log has the events of these actions.
        post(&desk, "tasks/t1/cancel", ADA, &json!({})).await;
        post(&desk, "tasks/t2/cancel", ADA, &json!({})).await;
        desk.approval(&format!("{list}-1"), "ann", &["ben"], 1).await;
        desk.approval(&format!("{list}-2"), "ann", &["ben"], 1).await;
        let page = get(&desk, &format!("{list}?limit=1"), ADA).await.json();
        let next = page["next"].as_str().unwrap_or_else(|| panic!("no cursor: {page}")).to_owned();
        cursors.push(format!("{list}?limit=1&after={next}"));
    }
    desk.advance(23 * hour);
    for path in &cursors {
        assert_eq!(get(&desk, path, ADA).await.status, 200, "{path}");
    }
    desk.advance(hour);
    for path in &cursors {
        let reply = get(&desk, path, ADA).await;
        assert_eq!(reply.status, 422, "{path}");
        assert!(reply.text().contains("has expired"), "{}", reply.text());
    }
}

#[tokio::test]
async fn change_of_a_session_needs_its_form_token() {
    let desk = Desk::new();
    desk.create("t1", "ann", None).await;
    let ann = desk.signed_in(ANN).await;
    let path = format!("{API}/tasks/t1/cancel");
    let token = ann.get(&format!("{API}/me")).await.json()["form_token"]
        .as_str()
        .expect("a token")
        .to_owned();
    let page_token = ann.get("/console/tasks/t1/cancel").await.form_token();
    for ask in [
        Ask::post(&path, "{}").json().same_origin(),
        Ask::post(&path, "{}").json().same_origin().header("x-form-token", &page_token),
        Ask::post(&path, "{}").json().header("x-form-token", &token),
        Ask::post(&path, "{}")
            .json()
            .header("sec-fetch-site", "cross-site")
            .header("x-form-token", &token),
    ] {
        assert_eq!(ann.send(ask).await.status, 403);
    }
    let ask = Ask::post(&path, "{}").json().same_origin().header("x-form-token", &token);
    assert_eq!(ann.send(ask).await.status, 200);
}

#[tokio::test]
async fn client_request_is_answered_with_values_of_its_form() {
    let desk = Desk::new();
    let request = outlive::store::NewInputRequest::new("q", "q", Some(elicitation("Which?")));
    desk.create("t1", "ann", Some(request)).await;
    let shown = get(&desk, "inputs/t1/q", ANN_MCP).await.json();
    assert_eq!((&shown["kind"], &shown["can_answer"]), (&json!("form"), &json!(true)));
    let answer = |quarter: Value| json!({"digest": shown["digest"], "action": "accept", "content": {"quarter": quarter}});
    let wrong = post(&desk, "inputs/t1/q/answer", ANN_MCP, &answer(json!("x"))).await;
    assert_eq!((wrong.status, wrong.json()["fields"]["quarter"].is_string()), (422, true));
    let reply = post(&desk, "inputs/t1/q/answer", ANN_MCP, &answer(json!(3))).await;
    assert_eq!((reply.status, reply.json()), (200, json!({"state": "settled"})));
}

#[tokio::test]
async fn every_response_has_the_security_headers() {
    let desk = Desk::new();
    desk.create("t1", "ann", None).await;
    let ann = desk.signed_in(ANN).await;
    let replies = [
        ann.get("/console/").await,
        ann.get("/console/tasks/t1").await,
        ann.get("/console/tasks/t9").await,
        desk.get("/console/in").await,
        desk.get("/console/tasks").await,
        get(&desk, "me", ANN).await,
        get(&desk, "nothing", ANN).await,
    ];
    for reply in &replies {
        for (name, value) in [
            ("cache-control", "no-store"),
            ("referrer-policy", "no-referrer"),
            ("x-content-type-options", "nosniff"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            let name = HeaderName::from_static(name);
            assert_eq!(reply.headers.get(&name).map(|it| it.as_bytes()), Some(value.as_bytes()));
        }
        let policy = reply.header("content-security-policy").expect("a policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self'"), "{policy}");
        assert!(
            policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"),
            "{policy}"
        );
    }
}

#[tokio::test]
async fn assets_are_immutable_and_public() {
    let desk = Desk::new();
    let page = desk.get("/console/in").await;
    let (_, rest) = page.text().split_once("<link rel=\"stylesheet\" href=\"./").expect("a style");
    let path = rest.split('"').next().expect("an address");
    let reply = desk.get(&format!("/console/{path}")).await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("cache-control"), Some("public, max-age=31536000, immutable"));
    assert_eq!(desk.get("/console/assets/0/console.css").await.status, 404);
}

#[tokio::test]
async fn console_without_a_slash_leads_to_its_root_below_any_prefix() {
    let desk = Desk::new();
    let reply = desk.get("/console").await;
    assert_eq!((reply.status, reply.header("location")), (303, Some("./console/")));
}
