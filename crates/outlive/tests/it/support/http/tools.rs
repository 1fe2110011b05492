//! The standard tools, and the signals with which tests control waiting handlers.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use outlive::server::{
    Args, Cx, Error, Json, LoggingLevel, Principal, Prompt, RateLimit, Resource, Result, Server,
    ServerBuilder, State, Tool,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{json, value::to_raw_value};
use tokio::sync::Semaphore;

use super::within;

/// State that tests and handlers share.
#[derive(Default)]
pub(crate) struct World {
    signals: Mutex<HashMap<String, Arc<Semaphore>>>,
    /// Number of lines that `shout` has logged.
    pub(crate) shouted: AtomicUsize,
}

impl World {
    /// Waits until a handler with this key has started.
    pub(crate) async fn started(&self, key: &str) {
        within(self.take(key, "started")).await;
    }

    /// Waits until a handler with this key has returned.
    pub(crate) async fn finished(&self, key: &str) {
        within(self.take(key, "finished")).await;
    }

    /// Waits until a handler with this key is dropped before it returns.
    pub(crate) async fn cancelled(&self, key: &str) {
        within(self.take(key, "cancelled")).await;
    }

    /// Waits until `count` with this key has reported another step.
    pub(crate) async fn stepped(&self, key: &str) {
        within(self.take(key, "stepped")).await;
    }

    /// Sends a signal to the test.
    pub(crate) fn tell(&self, what: &str) {
        self.give("", what);
    }

    /// Waits for a signal. Each signal counts once.
    pub(crate) async fn told(&self, what: &str) {
        within(self.take("", what)).await;
    }

    /// Whether a handler with this key has started.
    pub(crate) fn has_started(&self, key: &str) -> bool {
        self.signal(key, "started").available_permits() > 0
    }

    /// Whether a handler with this key was dropped before it returned.
    pub(crate) fn is_cancelled(&self, key: &str) -> bool {
        self.signal(key, "cancelled").available_permits() > 0
    }

    /// Lets the handler with this key continue by one step.
    pub(crate) fn release(&self, key: &str) {
        self.give(key, "gate");
    }

    async fn pass(&self, key: &str) {
        self.take(key, "gate").await;
    }

    fn give(&self, key: &str, what: &str) {
        self.signal(key, what).add_permits(1);
    }

    async fn take(&self, key: &str, what: &str) {
        let signal = self.signal(key, what);
        signal.acquire().await.expect("signals are never closed").forget();
    }

    fn signal(&self, key: &str, what: &str) -> Arc<Semaphore> {
        let mut signals = self.signals.lock().unwrap();
        let signal = signals.entry(format!("{key} {what}"));
        Arc::clone(signal.or_insert_with(|| Arc::new(Semaphore::new(0))))
    }

    fn begin(self: &Arc<Self>, key: &str) -> Working {
        self.give(key, "started");
        Working { world: Arc::clone(self), key: key.into(), done: false }
    }
}

/// Signals how a handler ended, on drop.
struct Working {
    world: Arc<World>,
    key: String,
    done: bool,
}

impl Working {
    fn done(mut self) {
        self.done = true;
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.world.give(&self.key, if self.done { "finished" } else { "cancelled" });
    }
}

/// The server for the HTTP tests.
pub(crate) fn standard(world: &Arc<World>) -> ServerBuilder {
    Server::builder("standard", "1.0.0")
        .state(Arc::clone(world))
        .logging(true)
        .list_changed_debounce(Duration::from_millis(1))
        .limits(|limits| limits.progress_interval = Duration::ZERO)
        .tool(Tool::new("echo", echo))
        .tool(Tool::new("wait", wait))
        .tool(Tool::new("count", count))
        .tool(Tool::new("log", log))
        .tool(Tool::new("shout", shout))
        .tool(Tool::new("panic", panic))
        .tool(Tool::new("panic_later", panic_later))
        .tool(Tool::new("fail", fail))
        .tool(Tool::new("refuse", refuse))
        .tool(Tool::new("sum", sum))
        .tool(Tool::new("sample", sample))
        .tool(Tool::new("sample_late", sample_late))
        .tool(Tool::new("whoami", whoami))
        .tool(Tool::new("leave", leave))
        .tool(Tool::new("once", echo).rate_limit(RateLimit::per_second(0.01)))
        .tool(Tool::new("place", place).input_schema(to_raw_value(&place_schema()).unwrap()))
        .tool(Tool::new("strict", sample).input_schema(to_raw_value(&place_schema()).unwrap()))
        .resource(Resource::new("mem://a", "a", async || "A"))
        .resource(Resource::new("mem://b", "b", async || "B"))
        .prompt(Prompt::new("greet", greet))
}

#[derive(Deserialize, JsonSchema)]
struct Text {
    text: String,
}

/// Returns immediately.
async fn echo(Args(Text { text }): Args<Text>) -> String {
    text
}

#[derive(Deserialize, JsonSchema)]
struct Key {
    #[serde(default)]
    key: String,
}

/// Sends nothing until it is released.
async fn wait(Args(Key { key }): Args<Key>, world: State<Arc<World>>) -> String {
    let working = world.begin(&key);
    world.pass(&key).await;
    working.done();
    format!("waited {key}")
}

#[derive(Deserialize, JsonSchema)]
struct Count {
    #[serde(default)]
    key: String,
    to: u32,
    /// Length of the progress messages.
    #[serde(default)]
    width: usize,
}

/// Reports progress once at the start and once per release.
async fn count(Args(args): Args<Count>, cx: Cx, world: State<Arc<World>>) -> String {
    let Count { key, to, width } = args;
    let working = world.begin(&key);
    for step in 1..=to {
        cx.progress(step.into(), f64::from(to), format!("{:width$}", format!("step {step}")));
        world.give(&key, "stepped");
        world.pass(&key).await;
    }
    working.done();
    format!("counted {to}")
}

/// Logs a message of every level, then waits for its release.
async fn log(Args(Key { key }): Args<Key>, cx: Cx, world: State<Arc<World>>) -> String {
    let working = world.begin(&key);
    for level in LoggingLevel::ALL {
        cx.log_from("log", level, json!({"level": level.as_str()}));
    }
    world.pass(&key).await;
    working.done();
    "logged".into()
}

#[derive(Deserialize, JsonSchema)]
struct Shout {
    #[serde(default)]
    key: String,
    lines: usize,
    bytes: usize,
}

/// Logs long lines as fast as the client reads them.
async fn shout(Args(args): Args<Shout>, cx: Cx, world: State<Arc<World>>) -> String {
    let working = world.begin(&args.key);
    let line = "x".repeat(args.bytes);
    for _ in 0..args.lines {
        cx.log(LoggingLevel::Error, &line);
        world.shouted.fetch_add(1, Ordering::Relaxed);
        tokio::task::yield_now().await;
    }
    working.done();
    "shouted".into()
}

async fn panic() -> String {
    panic!("intended panic of the handler");
}

/// Panics after its release, long after the first poll.
async fn panic_later(Args(Key { key }): Args<Key>, world: State<Arc<World>>) -> String {
    let _working = world.begin(&key);
    world.pass(&key).await;
    panic!("intended panic of the handler");
}

async fn fail() -> Result<String> {
    Err(Error::new("the disk is full"))
}

async fn refuse() -> Result<String> {
    Err(Error::invalid_params("not like this"))
}

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    sum: i64,
}

async fn sum(Args(Add { a, b }): Args<Add>) -> Json<Sum> {
    Json(Sum { sum: a + b })
}

/// Requires a client capability.
async fn sample(cx: Cx) -> Result<String> {
    cx.require_capabilities(&json!({"sampling": {}}))?;
    Ok("sampled".into())
}

/// Requires a client capability after it has sent progress.
async fn sample_late(
    Args(Key { key }): Args<Key>,
    cx: Cx,
    world: State<Arc<World>>,
) -> Result<String> {
    cx.progress(1.0, None, "");
    world.pass(&key).await;
    cx.require_capabilities(&json!({"sampling": {}}))?;
    Ok("sampled".into())
}

async fn whoami(principal: Principal) -> String {
    principal.to_string()
}

/// Closes the stream and returns after its release.
async fn leave(Args(Key { key }): Args<Key>, cx: Cx, world: State<Arc<World>>) -> String {
    let working = world.begin(&key);
    cx.close_stream(Duration::from_millis(50));
    world.pass(&key).await;
    working.done();
    "left and came back".into()
}

/// A schema that maps arguments to headers: one of each type, and a nested one.
fn place_schema() -> serde_json::Value {
    json!({
        "type": "object",
        "properties": {
            "zone": {"type": "string", "x-mcp-header": "Zone"},
            "level": {"type": "integer", "x-mcp-header": "Level"},
            "dry": {"type": "boolean", "x-mcp-header": "Dry"},
            "deep": {"type": "object", "properties": {"tag": {"type": "string", "x-mcp-header": "Tag"}}},
            "free": {"type": "string"},
        },
    })
}

async fn place() -> String {
    "placed".into()
}

#[derive(Deserialize, JsonSchema)]
struct Greet {
    name: String,
}

async fn greet(Args(Greet { name }): Args<Greet>) -> String {
    format!("Greet {name}!")
}
