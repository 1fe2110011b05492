//! Contents of messages: headers, signature, state, summary without secrets.

use std::{sync::Arc, time::Duration};

use outlive::{
    deliveries::{Contents, Format, NetworkPolicy, Target, TaskEvent, Webhook},
    server::{
        Principal, Server, Tool,
        approve::Approve,
        tasks::{TaskConfig, TaskPolicy},
    },
    store::{
        Audience, CreateOutcome, DeliveryQueue, MemoryStore, NewInputRequest, NewTask,
        OperatorStore, Subscription, TaskId, TaskStore,
    },
    wire::InputRequest,
};
use ring::hmac;
use serde_json::{Value, json, value::to_raw_value};

use super::receiver::{Received, Receiver, Reply, SECRET, builder, call, serve};
use crate::support::pipe::Pipe;

/// Checks the signature of a message as a receiver does.
fn check_signature(message: &Received, secret: &str, signature: &str) {
    use base64::{Engine as _, engine::general_purpose::STANDARD};

    let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
    let (id, timestamp) = (message.header("webhook-id"), message.header("webhook-timestamp"));
    let signed = format!("{id}.{timestamp}.{}", message.body);
    let tag = STANDARD.decode(signature.strip_prefix("v1,").unwrap()).unwrap();
    hmac::verify(&hmac::Key::new(hmac::HMAC_SHA256, &key), signed.as_bytes(), &tag).unwrap();
}

#[tokio::test]
async fn webhook_gets_signed_message_of_ended_task() {
    let store = Arc::new(MemoryStore::new());
    let receiver = Receiver::start([]).await;
    let second = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
    let webhook = receiver.webhook().secret(second);
    let console = TaskConfig::people(Arc::clone(&store) as _).index_tasks(true);
    let server = builder(&store).tasks(console).notify(webhook).build().unwrap();
    let mut pipe = Pipe::open(&server);
    let task = call(&mut pipe, "deploy").await;
    let message = receiver.wait_for(1).await.remove(0);
    assert_eq!(
        (message.path.as_str(), message.header("content-type")),
        ("/hook", "application/json")
    );
    assert!(message.header("user-agent").starts_with("outlive/"));
    let signatures: Vec<&str> = message.header("webhook-signature").split(' ').collect();
    check_signature(&message, SECRET, signatures[0]);
    check_signature(&message, second, signatures[1]);
    let body = message.json();
    assert_eq!(body["type"], "task.ended");
    assert!(body["timestamp"].as_str().unwrap().ends_with('Z'), "{body}");
    let url = format!("https://shop.example/tools/console/tasks/{task}");
    let data = json!({"task": task, "tool": "deploy", "state": "completed", "url": url});
    assert_eq!(body["data"], data);
}

#[tokio::test]
async fn target_gets_only_its_events_of_its_tools() {
    let store = Arc::new(MemoryStore::new());
    let receiver = Receiver::start([]).await;
    let render = Tool::new("render", async || "rendered").task(TaskPolicy::Always);
    let all = receiver.target("all");
    let of_render = receiver.target("render").tools(["render"]).events([TaskEvent::TaskEnded]);
    let quarantined = receiver.target("quarantined").events([TaskEvent::TaskQuarantined]);
    let server = builder(&store).tool(render).notify(all).notify(of_render).notify(quarantined);
    let mut pipe = Pipe::open(&server.build().unwrap());
    call(&mut pipe, "deploy").await;
    let render = call(&mut pipe, "render").await;
    let received = receiver.wait_for(3).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(receiver.received().len(), 3);
    let of_render = received.iter().filter(|it| it.json()["data"]["task"] == render.as_str());
    assert_eq!(of_render.count(), 2);
}

#[tokio::test]
async fn deleted_task_is_reported_by_its_id() {
    let store = Arc::new(MemoryStore::new());
    let receiver = Receiver::start([Reply::Status(500)]).await;
    let (_server, mut pipe) = serve(&store, receiver.target("hook").events([TaskEvent::TaskEnded]));
    let task = call(&mut pipe, "deploy").await;
    receiver.wait_for(1).await;
    while store.failing(1).await.unwrap().iter().all(|delivery| delivery.error.is_none()) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    store.purge(&TaskId::new(&*task), false).await.unwrap();
    let delivery = store.failing(1).await.unwrap().pop().expect("deliveries survive their task");
    store.send_again(&delivery.id).await.unwrap();
    let body = receiver.wait_for(2).await.remove(1).json();
    assert_eq!(body["data"], json!({"task": task, "state": "deleted"}));
}

/// Stores a task with an open approval request of `ada` and `ben`.
async fn gated_task(store: &Arc<MemoryStore>, arguments: Value) -> TaskId {
    let raw = |value: &Value| to_raw_value(value).unwrap();
    let request: InputRequest = serde_json::from_value(json!({
        "method": "elicitation/create",
        "params": {"mode": "form", "message": "Approve deploy?",
            "requestedSchema": {"type": "object", "properties": {}}},
    }))
    .unwrap();
    let names = vec!["ada".to_owned(), "ben".to_owned()];
    let input = NewInputRequest::new("#approval", "#approval", Some(request))
        .audience(Audience::Names(names))
        .due(Some(4_000_000_000_000));
    let call = json!({"version": "2026-07-28", "message": {"jsonrpc": "2.0", "id": 1,
        "method": "tools/call", "params": {"name": "deploy", "arguments": arguments}}});
    let id = TaskId::new("gated");
    let events = [TaskEvent::InputRequestOpened, TaskEvent::InputRequestSettled];
    let task = NewTask::new(id.clone(), Principal::LOCAL.key(), "deploy", "modern", raw(&call))
        .input_requests(vec![input])
        .notify(events.map(|event| Subscription::new(event, "hook")).into());
    assert!(matches!(store.create(task).await.unwrap(), CreateOutcome::Created { .. }));
    id
}

/// Returns the first message about an approval request, for a target.
async fn opened(change: impl FnOnce(Target) -> Target) -> Value {
    let store = Arc::new(MemoryStore::new());
    let receiver = Receiver::start([]).await;
    let schema = json!({"type": "object", "properties": {"version": {"type": "string"},
        "token": {"type": "string", "writeOnly": true}, "pin": {"type": "string", "format": "password"}}});
    let tool =
        Tool::new("deploy", async || "deployed").input_schema(to_raw_value(&schema).unwrap());
    let server = Server::builder("shop", "1")
        .public_url("https://shop.example")
        .console_path("/ops/")
        .tasks(TaskConfig::people(Arc::clone(&store) as _).index_tasks(true))
        .tool(tool.task(TaskPolicy::Always))
        .notify(change(receiver.target("hook")))
        .build()
        .unwrap();
    let _pipe = Pipe::open(&server);
    gated_task(&store, json!({"version": "1.4.2", "token": "hunter2", "pin": "1234"})).await;
    let message = receiver.wait_for(1).await.remove(0);
    assert!(
        !message.body.contains("hunter2") && !message.body.contains("1234\""),
        "{}",
        message.body
    );
    message.json()
}

#[tokio::test]
async fn message_without_contents_has_no_text_of_the_caller() {
    let body = opened(|target| target).await;
    assert_eq!(body["type"], "input_request.opened");
    assert_eq!(
        body["data"],
        json!({"task": "gated", "tool": "deploy", "state": "open", "input_request": "#approval",
            "until": "2096-10-02T07:06:40.000Z",
            "url": "https://shop.example/ops/inputs/gated/%23approval"})
    );
}

#[tokio::test]
async fn summary_has_message_and_arguments_without_secrets() {
    let body = opened(|target| target.contents(Contents::Summary)).await;
    assert_eq!(body["data"]["message"], "Approve deploy?");
    assert_eq!(body["data"]["arguments"], json!({"version": "1.4.2"}));
}

#[tokio::test]
async fn text_format_is_one_line_for_a_chat() {
    let body = opened(|target| target.contents(Contents::Summary).format(Format::Text)).await;
    let text = body["text"].as_str().unwrap();
    assert!(text.contains("`version \"1.4.2\", Approve deploy?`"), "{text}");
    assert!(text.ends_with("https://shop.example/ops/inputs/gated/%23approval"), "{text}");
    assert_eq!(body.as_object().unwrap().len(), 1);
}

#[tokio::test]
async fn withdrawn_request_is_reported_as_settled() {
    let store = Arc::new(MemoryStore::new());
    let receiver = Receiver::start([]).await;
    let (_server, _pipe) = serve(&store, receiver.target("hook"));
    let task = gated_task(&store, json!({})).await;
    receiver.wait_for(1).await;
    store.cancel(Principal::LOCAL.key(), &task, true, Duration::from_secs(60)).await.unwrap();
    let body = receiver.wait_for(2).await.remove(1).json();
    assert_eq!(
        (&body["type"], &body["data"]["state"]),
        (&json!("input_request.settled"), &json!("withdrawn"))
    );
}

#[tokio::test]
async fn unsigned_webhook_sends_no_signature() {
    let store = Arc::new(MemoryStore::new());
    let receiver = Receiver::start([]).await;
    let webhook = Webhook::new(&receiver.url).unsigned().network(NetworkPolicy::Local);
    let (_server, mut pipe) = serve(&store, webhook);
    call(&mut pipe, "deploy").await;
    let message = receiver.wait_for(1).await.remove(0);
    assert_eq!(message.header("webhook-signature"), "");
    assert!(!message.header("webhook-id").is_empty());
}

/// Returns the message about an approval request of a tool, for a target.
async fn approval(tool_links: bool, target_links: bool) -> Value {
    let store = Arc::new(MemoryStore::new());
    let receiver = Receiver::start([]).await;
    let approve = Approve::by(["ada", "ben"]).links(tool_links);
    let refund = Tool::new("refund", async || "refunded").task(TaskPolicy::Always).approve(approve);
    let target = receiver.target("chat").links(target_links);
    let server = builder(&store).tool(refund).notify(target).build().unwrap();
    call(&mut Pipe::open(&server), "refund").await;
    receiver.wait_for(1).await.remove(0).json()
}

#[tokio::test]
async fn message_has_one_link_per_approver_if_tool_and_target_allow_links() {
    let body = approval(true, true).await;
    let links = body["data"]["links"].as_array().unwrap();
    let people: Vec<&str> = links.iter().map(|link| link["to"].as_str().unwrap()).collect();
    assert_eq!(people, ["ada", "ben"]);
    for link in links {
        let url = link["url"].as_str().unwrap();
        assert!(url.starts_with("https://shop.example/tools/answer/"), "{url}");
    }
    assert_ne!(links[0]["url"], links[1]["url"]);
    for (tool, target) in [(true, false), (false, true)] {
        let body = approval(tool, target).await;
        assert_eq!(body["type"], "input_request.opened");
        assert_eq!(body["data"].get("links"), None, "{body}");
    }
}
