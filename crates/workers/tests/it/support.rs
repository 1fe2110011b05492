//! A server with a tool worker, and a raw client of 2026-07-28.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use outlive::{
    server::{
        Server,
        tasks::{EngineConfig, TaskConfig},
    },
    store::{MemoryStore, PeopleStore},
};
use outlive_workers::{ToolNames, ToolWorker, WorkerSettings};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf},
    time::{Instant, sleep, timeout},
};

/// Upper limit of every wait. Only a failing test waits this long.
const GUARD: Duration = Duration::from_secs(30);

/// A folder of one test, with the file that records executions.
pub(crate) struct Place {
    pub(crate) folder: PathBuf,
}

impl Place {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("outlive-workers-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        Self { folder }
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.folder.join("executions")
    }

    /// Returns the executions so far.
    pub(crate) fn executions(&self) -> Vec<String> {
        let text = fs::read_to_string(self.log()).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    pub(crate) fn count(&self, execution: &str) -> usize {
        self.executions().iter().filter(|line| *line == execution).count()
    }

    /// Returns the settings of the test worker.
    pub(crate) fn settings(&self) -> WorkerSettings {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/worker.py");
        self.settings_of(&script)
    }

    /// Returns the settings of a script.
    pub(crate) fn settings_of(&self, script: &Path) -> WorkerSettings {
        WorkerSettings::new("shop", [Path::new("python3"), script])
            .env("TEST_LOG", self.log())
            .working_dir(&self.folder)
            .data_dir(&self.folder)
            .kill_grace(Duration::from_secs(2))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A server with a tool worker.
pub(crate) struct Served {
    pub(crate) worker: ToolWorker,
    pub(crate) server: Server,
}

impl Served {
    pub(crate) async fn start(settings: WorkerSettings) -> Self {
        Self::over(ToolWorker::start(settings, ToolNames::new()).await.unwrap())
    }

    /// Starts a server with a tool worker that runs.
    pub(crate) fn over(worker: ToolWorker) -> Self {
        Self::with(worker, |engine| {
            engine.park_after = Duration::from_millis(300);
            engine.cancel_grace = Duration::from_secs(2);
        })
    }

    /// Starts a server with a tool worker that runs, and changes the settings of its engine.
    pub(crate) fn with(worker: ToolWorker, change: impl FnOnce(&mut EngineConfig)) -> Self {
        let store = Arc::new(MemoryStore::new());
        let tasks = TaskConfig::people(store as Arc<dyn PeopleStore>);
        let tasks = tasks.partial_results(true).engine(|engine| {
            engine.poll_interval = Duration::from_millis(50);
            change(engine);
        });
        let server = worker.attach(Server::builder("tests", "1").tasks(tasks)).build().unwrap();
        worker.serve(&server);
        Self { worker, server }
    }

    pub(crate) fn client(&self) -> RawClient {
        RawClient::new(&self.server)
    }
}

/// A client that writes and reads JSON.
pub(crate) struct RawClient {
    input: BufReader<ReadHalf<DuplexStream>>,
    output: WriteHalf<DuplexStream>,
    next: u64,
    /// Responses that arrived before they were awaited.
    early: HashMap<u64, Value>,
}

impl RawClient {
    pub(crate) fn new(server: &Server) -> Self {
        let (input, output) = tokio::io::split(server.connect_in_memory().stream);
        Self { input: BufReader::new(input), output, next: 1, early: HashMap::new() }
    }

    /// Sends a request, and returns its ID.
    pub(crate) async fn send(&mut self, method: &str, mut params: Value) -> u64 {
        let id = self.next;
        self.next += 1;
        let meta = &mut params["_meta"];
        meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
        meta["io.modelcontextprotocol/clientCapabilities"] = json!({
            "elicitation": {"form": {}, "url": {}}, "sampling": {},
            "extensions": {"io.modelcontextprotocol/tasks": {}},
        });
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.output.write_all(format!("{request}\n").as_bytes()).await.unwrap();
        id
    }

    /// Sends a notification.
    pub(crate) async fn notify(&mut self, message: &Value) {
        self.output.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    /// Returns the response to a request.
    pub(crate) async fn answer(&mut self, id: u64) -> Value {
        loop {
            if let Some(early) = self.early.remove(&id) {
                return early;
            }
            let mut line = String::new();
            let read = timeout(GUARD, self.input.read_line(&mut line)).await;
            assert!(read.expect("a message arrives in time").unwrap() > 0, "the server is gone");
            let message: Value = serde_json::from_str(&line).unwrap();
            if let Some(id) = message["id"].as_u64() {
                self.early.insert(id, message);
            }
        }
    }

    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        self.answer(id).await
    }

    /// Calls a tool, and returns its result.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.ask("tools/call", json!({"name": tool, "arguments": arguments})).await;
        assert!(answer.get("result").is_some(), "{answer}");
        answer["result"].clone()
    }

    /// Starts a task, and returns its ID.
    pub(crate) async fn start(&mut self, tool: &str, arguments: Value) -> String {
        let task = self.call(tool, arguments).await;
        task["taskId"].as_str().unwrap_or_else(|| panic!("a task was expected: {task}")).to_owned()
    }

    pub(crate) async fn get(&mut self, task: &str) -> Value {
        let answer = self.ask("tasks/get", json!({"taskId": task})).await;
        assert!(answer.get("result").is_some(), "{answer}");
        answer["result"].clone()
    }

    /// Polls until a task has a status.
    pub(crate) async fn until(&mut self, task: &str, status: &str) -> Value {
        let reached = async {
            loop {
                let state = self.get(task).await;
                if state["status"] == status {
                    return state;
                }
                let is_over = ["completed", "failed", "cancelled"]
                    .contains(&state["status"].as_str().unwrap_or_default());
                assert!(!is_over, "the task must become {status}: {state}");
                sleep(Duration::from_millis(10)).await;
            }
        };
        let reached = timeout(GUARD, reached).await;
        reached.unwrap_or_else(|_| panic!("{task} did not become {status} in time"))
    }

    /// Polls until a task has ended, and returns it.
    pub(crate) async fn ended(&mut self, task: &str) -> Value {
        let deadline = Instant::now() + GUARD;
        loop {
            let state = self.get(task).await;
            if ["completed", "failed", "cancelled"].iter().any(|it| state["status"] == *it) {
                return state;
            }
            assert!(Instant::now() < deadline, "the task did not end in time: {state}");
            sleep(Duration::from_millis(10)).await;
        }
    }

    /// Polls until a task has this open input request.
    pub(crate) async fn until_requested(&mut self, task: &str, key: &str) {
        let reached = async {
            while self.get(task).await["inputRequests"].get(key).is_none() {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(GUARD, reached).await.unwrap_or_else(|_| panic!("{task} did not request {key}"));
    }

    /// Polls until a status message of a task contains a text.
    pub(crate) async fn until_says(&mut self, task: &str, text: &str) -> String {
        let reached = async {
            loop {
                let state = self.get(task).await;
                let message = state["statusMessage"].as_str().unwrap_or_default();
                if message.contains(text) {
                    return message.to_owned();
                }
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(GUARD, reached).await.unwrap_or_else(|_| panic!("{task} did not say {text}"))
    }

    /// Returns the text of a completed task.
    pub(crate) async fn completed(&mut self, task: &str) -> String {
        let done = self.until(task, "completed").await;
        text_of(&done["result"])
    }

    /// Accepts an input request of a task.
    pub(crate) async fn accept(&mut self, task: &str, key: &str, content: Value) {
        let responses = json!({key: {"action": "accept", "content": content}});
        let params = json!({"taskId": task, "inputResponses": responses});
        let answer = self.ask("tasks/update", params).await;
        assert!(answer.get("result").is_some(), "{answer}");
    }
}

/// Returns the text of the last block of a result.
#[track_caller]
pub(crate) fn text_of(result: &Value) -> String {
    let texts = texts_of(result);
    texts.last().unwrap_or_else(|| panic!("a text was expected: {result}")).clone()
}

/// Returns all texts of a result.
#[track_caller]
pub(crate) fn texts_of(result: &Value) -> Vec<String> {
    let content = result["content"].as_array();
    let content = content.unwrap_or_else(|| panic!("content was expected: {result}"));
    content.iter().filter_map(|block| Some(block["text"].as_str()?.to_owned())).collect()
}

/// Polls until a condition is true.
pub(crate) async fn eventually(what: &str, mut is_true: impl FnMut() -> bool) {
    let reached = async {
        while !is_true() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(timeout(GUARD, reached).await.is_ok(), "{what} did not become true in time");
}

/// Returns whether a process exists and is not a zombie.
pub(crate) fn lives(pid: u64) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Sends a signal to a process.
pub(crate) fn signal(pid: u64, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

/// Returns the process that runs calls of `whoami`.
pub(crate) async fn pid(client: &mut RawClient) -> u64 {
    let result = client.call("whoami", json!({})).await;
    result["structuredContent"]["pid"].as_u64().unwrap()
}
