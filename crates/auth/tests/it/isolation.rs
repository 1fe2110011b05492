//! Isolation tests: two users of three tenants each, on two replicas, try every request on
//! resources of others.
//!
//! The resources are tasks, sessions, cursors, event IDs and request states. Each attempt gets the
//! same response as a resource that does not exist, and does not affect its owner.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
    time::Duration,
};

use outlive::{
    server::{
        Cx, Durable, RateLimit, Result, SealKeys, Server, Tool,
        http::{HttpConfig, HttpServer},
        tasks::{TaskConfig, TaskPolicy},
    },
    store::{Store, open},
    wire::{BooleanSchema, RequestedSchema},
};
use outlive_auth::server::ResourceServer;
use serde_json::{Value, json};

use crate::server::support::{Got, RESOURCE, Sent, Signer, StandingClock, exchange, first_event};

/// Number of attempts.
const TRIES: usize = 10_000;

/// Waits for input of its user, and returns a text that only this user may see.
async fn ask(cx: Durable) -> Result<String> {
    let schema = RequestedSchema::default().with_required("yes", BooleanSchema::default());
    let answer: Value = cx.elicit_with("sure", "Sure?", schema).await?;
    Ok(format!("secret of {}: {answer}", cx.principal()))
}

async fn tell(cx: Cx) -> String {
    format!("secret of {}", cx.principal())
}

async fn replica(store: Arc<dyn Store>, signer: &Signer) -> HttpServer {
    let auth = ResourceServer::builder(RESOURCE)
        .issuer(signer.issuer().tenant_claim("tid"))
        .clock(Arc::new(signer.clock.clone()))
        .build()
        .unwrap();
    Server::builder("isolated", "1")
        .tasks(TaskConfig::new(store))
        .seal_keys(SealKeys::new([7; 32]))
        .limits(|limits| limits.page_size = 1)
        // The default rate limit would hide the responses under test.
        .rate_limit_invalid_rounds(RateLimit::per_second(100_000.0))
        .tool(Tool::new("ask", ask))
        .tool(Tool::new("ask-later", ask).task(TaskPolicy::Always))
        .tool(Tool::new("tell-later", tell).task(TaskPolicy::Always))
        .build()
        .unwrap()
        .serve_http("127.0.0.1:0", HttpConfig::new().authenticator(auth))
        .await
        .unwrap()
}

/// A principal and its resources.
struct Caller {
    token: String,
    name: String,
    waiting: String,
    done: String,
    session: String,
    event: String,
    cursor: String,
    state: String,
}

struct World {
    replicas: [HttpServer; 2],
    random: u64,
}

impl World {
    fn random(&mut self, below: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random % below as u64) as usize
    }

    async fn send(&self, replica: usize, request: &Sent) -> Got {
        exchange(self.replicas[replica].address(), request).await
    }

    /// Returns a principal with one resource of each kind.
    async fn caller(&self, signer: &Signer, user: &str, tenant: &str) -> Caller {
        let claims = json!({"sub": user, "tid": tenant, "exp": signer.clock.seconds() + 36_000});
        let token = signer.token(claims);
        let name = format!("https://id.example|{user}|app|{tenant}");
        let start = |tool| {
            let request = modern("tools/call", json!({"name": tool})).bearer(&token);
            async move { self.send(0, &request).await.result()["taskId"].as_str().unwrap().to_owned() }
        };
        let (waiting, done) = (start("ask-later").await, start("tell-later").await);
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "old", "version": "1"}});
        let opened = self.send(0, &legacy("initialize", hello, None).bearer(&token)).await;
        let session = opened.header("mcp-session-id").unwrap().to_owned();
        let listen = listen(&session).bearer(&token);
        let event = first_event(self.replicas[0].address(), &listen).await;
        let page = self.send(0, &modern("tools/list", json!({})).bearer(&token)).await.result();
        let cursor = page["nextCursor"].as_str().unwrap().to_owned();
        let asked = modern("tools/call", json!({"name": "ask"})).bearer(&token);
        let asked = self.send(0, &asked).await.result();
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        let state = asked["requestState"].as_str().unwrap().to_owned();
        Caller { token, name, waiting, done, session, event, cursor, state }
    }
}

/// Returns a request of a client that supports tasks and elicitation.
fn modern(method: &str, params: Value) -> Sent {
    let capabilities =
        json!({"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}});
    Sent::modern_with(method, params, capabilities)
}

fn legacy(method: &str, params: Value, session: Option<&str>) -> Sent {
    let request = Sent::new("POST", "/mcp")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .body(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}));
    match session {
        Some(session) => in_session(request, session),
        None => request,
    }
}

fn in_session(request: Sent, session: &str) -> Sent {
    request.header("mcp-session-id", session).header("mcp-protocol-version", "2025-11-25")
}

fn listen(session: &str) -> Sent {
    in_session(Sent::new("GET", "/mcp").header("accept", "text/event-stream"), session)
}

fn answers() -> Value {
    json!({"sure": {"action": "accept", "content": {"yes": true}}})
}

/// Creates a request that uses a handle.
type Attempt = Box<dyn Fn(&str) -> Sent>;

/// Returns every request that can be tried on the resources of `owner`, with their handles.
fn attempts(owner: &Caller, own_session: &str) -> Vec<(String, Attempt)> {
    let mut attempts: Vec<(String, Attempt)> = Vec::new();
    for id in [&owner.waiting, &owner.done] {
        for method in ["tasks/get", "tasks/cancel", "tasks/update"] {
            let request = move |id: &str| {
                let mut params = json!({"taskId": id});
                if method == "tasks/update" {
                    params["inputResponses"] = answers();
                }
                modern(method, params)
            };
            attempts.push((id.clone(), Box::new(request)));
        }
        for method in ["tasks/get", "tasks/cancel", "tasks/result"] {
            let session = own_session.to_owned();
            let request =
                move |id: &str| legacy(method, json!({"taskId": id}), Some(session.as_str()));
            attempts.push((id.clone(), Box::new(request)));
        }
    }
    let session = &owner.session;
    attempts.push((session.clone(), Box::new(|id| legacy("ping", json!({}), Some(id)))));
    attempts.push((session.clone(), Box::new(|id| legacy("tasks/list", json!({}), Some(id)))));
    attempts.push((session.clone(), Box::new(listen)));
    attempts.push((session.clone(), Box::new(|id| in_session(Sent::new("DELETE", "/mcp"), id))));
    let own = own_session.to_owned();
    attempts
        .push((owner.event.clone(), Box::new(move |id| listen(&own).header("last-event-id", id))));
    let own = own_session.to_owned();
    let cursor = |cursor: &str| json!({"cursor": cursor});
    attempts.push((owner.cursor.clone(), Box::new(move |id| modern("tools/list", cursor(id)))));
    attempts.push((
        owner.cursor.clone(),
        Box::new(move |id| legacy("tools/list", cursor(id), Some(&own))),
    ));
    let resumed = |state: &str| {
        let params = json!({"name": "ask", "requestState": state, "inputResponses": answers()});
        modern("tools/call", params)
    };
    attempts.push((owner.state.clone(), Box::new(resumed)));
    attempts
}

/// Returns a random handle of the same form that does not exist.
fn unknown(world: &mut World, handle: &str) -> String {
    let mut bytes = handle.as_bytes().to_vec();
    let places: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at].is_ascii_hexdigit()).collect();
    for _ in 0..8 {
        let at = places[world.random(places.len())];
        let digits = b"0123456789abcdef";
        bytes[at] = digits[world.random(digits.len())];
    }
    let other = String::from_utf8(bytes).unwrap();
    if other == handle { unknown(world, handle) } else { other }
}

/// Returns the visible parts of a response, without the handle.
fn seen(got: &Got, handle: &str) -> String {
    // Some messages quote the start of the handle.
    let short: String = handle.chars().take(40).collect();
    let body = got.body.replace(handle, "HANDLE").replace(&short, "HANDLE");
    format!(
        "{} {:?} {:?} {body}",
        got.status,
        got.header("content-type"),
        got.header("retry-after")
    )
}

async fn check_isolation(stores: [Arc<dyn Store>; 2]) {
    let signer = Signer::new(&StandingClock::new());
    let [first, second] = stores;
    let replicas = [replica(first, &signer).await, replica(second, &signer).await];
    let mut world = World { replicas, random: 0x9e37_79b9_7f4a_7c15 };
    let mut callers = Vec::new();
    for user in ["ann", "bob"] {
        for tenant in ["t1", "t2", "t3"] {
            callers.push(world.caller(&signer, user, tenant).await);
        }
    }
    // The response to a handle that does not exist, per principal, request and replica.
    let mut missing: HashMap<(usize, usize, usize), String> = HashMap::new();
    for _ in 0..TRIES {
        let (stranger, other) = (world.random(callers.len()), world.random(callers.len() - 1));
        let owner = &callers[if other < stranger { other } else { other + 1 }];
        let attempts = attempts(owner, &callers[stranger].session);
        let (which, replica) = (world.random(attempts.len()), world.random(2));
        let (handle, request) = &attempts[which];
        let token = &callers[stranger].token;
        if let Entry::Vacant(first) = missing.entry((stranger, which, replica)) {
            let missing_handle = unknown(&mut world, handle);
            let got = world.send(replica, &request(&missing_handle).bearer(token)).await;
            first.insert(seen(&got, &missing_handle));
        }
        let got = world.send(replica, &request(handle).bearer(token)).await;
        assert_eq!(
            seen(&got, handle),
            missing[&(stranger, which, replica)],
            "{} tries {handle} of {} at replica {replica} with request {which}",
            callers[stranger].name,
            owner.name
        );
        assert!(!got.body.contains("secret of"), "{got:?}");
        assert!(!got.body.contains(&owner.name), "{got:?}");
    }
    let ways = attempts(&callers[0], "x").len();
    assert_eq!(missing.len(), callers.len() * ways * 2, "every principal has tried every request");
    for caller in &callers {
        check_resources(&world, caller).await;
    }
}

/// Checks that all resources of a principal are unchanged, on the other replica too.
async fn check_resources(world: &World, caller: &Caller) {
    let send = |request: Sent| {
        let request = request.bearer(&caller.token);
        async move { world.send(1, &request).await }
    };
    let secret = format!("secret of {}", caller.name);
    let done = send(modern("tasks/get", json!({"taskId": caller.done}))).await.result();
    assert_eq!(done["status"], "completed", "{done}");
    assert!(done.to_string().contains(&secret), "{done}");
    let waiting = send(modern("tasks/get", json!({"taskId": caller.waiting}))).await.result();
    assert_eq!(waiting["status"], "input_required", "{waiting}");
    let params = json!({"taskId": caller.waiting, "inputResponses": answers()});
    send(modern("tasks/update", params)).await.result();
    let mut looks = 0;
    loop {
        let task = send(modern("tasks/get", json!({"taskId": caller.waiting}))).await.result();
        if task["status"] == "completed" {
            assert!(task.to_string().contains(&secret), "{task}");
            break;
        }
        looks += 1;
        assert!(looks < 500, "{task}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(send(legacy("ping", json!({}), Some(&caller.session))).await.status, 200);
    let listed = send(legacy("tasks/list", json!({}), Some(&caller.session))).await.result();
    let mut ids: Vec<&str> = Vec::new();
    ids.extend(
        listed["tasks"].as_array().unwrap().iter().filter_map(|task| task["taskId"].as_str()),
    );
    assert!(
        ids.iter().all(|id| [&caller.waiting, &caller.done].iter().any(|own| own == id)),
        "{listed}"
    );
    let (mut ids, mut params) = (Vec::new(), json!({}));
    loop {
        let mut page = send(modern("dev.outlive/tasks/list", params)).await.result();
        let tasks = page["tasks"].as_array().unwrap().iter();
        ids.extend(tasks.map(|task| task["taskId"].as_str().unwrap().to_owned()));
        match page["nextCursor"].take() {
            Value::Null => break,
            cursor => params = json!({"cursor": cursor}),
        }
    }
    ids.sort();
    let mut own = [&caller.waiting, &caller.done];
    own.sort();
    assert_eq!(ids.iter().collect::<Vec<_>>(), own, "all tasks of {}, and no others", caller.name);
    let page = send(modern("tools/list", json!({"cursor": caller.cursor}))).await.result();
    assert_eq!(page["tools"].as_array().unwrap().len(), 1);
    let params = json!({"name": "ask", "requestState": caller.state, "inputResponses": answers()});
    assert!(send(modern("tools/call", params)).await.text().starts_with(&secret));
    let ended = send(in_session(Sent::new("DELETE", "/mcp"), &caller.session)).await;
    assert!(ended.status < 300, "{ended:?}");
}

#[tokio::test]
async fn resources_of_other_principals_are_unreachable_on_sqlite() {
    let folder = std::env::temp_dir().join(format!("outlive-isolation-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let url = format!("sqlite:{}", folder.join("tasks.db").display());
    let stores = [open(&url).await.unwrap(), open(&url).await.unwrap()];
    check_isolation(stores).await;
    let _ = std::fs::remove_dir_all(&folder);
}

/// Runs if a database is configured; `cargo xtask test` starts one.
#[tokio::test]
async fn resources_of_other_principals_are_unreachable_on_postgres() {
    let Ok(url) = std::env::var("OUTLIVE_TEST_POSTGRES") else {
        eprintln!("SKIPPED on PostgreSQL: OUTLIVE_TEST_POSTGRES is not set");
        return;
    };
    let url = format!("{url}?schema=isolation_{}", std::process::id());
    let stores = [open(&url).await.unwrap(), open(&url).await.unwrap()];
    check_isolation(stores).await;
}
