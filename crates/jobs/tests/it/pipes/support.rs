//! Helpers: a folder with one process, and a connection to it.

use std::{
    fs,
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use outlive_jobs::{Attached, Pipe, PipeEvent, PipeHello, PipeSender, PipeSpec, Pipes, Retention};
use serde_json::{Value, json};

use crate::support::{ID, ps, until};

/// Timeout of a wait.
pub(crate) const GUARD: Duration = Duration::from_secs(30);

/// A data folder.
pub(crate) struct Place {
    pub(crate) data: PathBuf,
    pub(crate) pipes: Pipes,
    /// Whether the folder is removed.
    is_own: bool,
}

impl Place {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("outlive-pipe-{}-{number}", std::process::id());
        let mut place = Self::at(std::env::temp_dir().join(name));
        place.is_own = true;
        place
    }

    /// Opens the folder of another process.
    pub(crate) fn at(data: PathBuf) -> Self {
        let pipes = Pipes::open(&data.join("pipes")).unwrap();
        let pipes = pipes.supervisor_program(env!("CARGO_BIN_EXE_outlive-test-supervisor"));
        Self { data, pipes, is_own: false }
    }

    pub(crate) fn spec(&self) -> PipeSpec {
        let program = env!("CARGO_BIN_EXE_outlive-test-speaker");
        let mut spec = PipeSpec::new([program.as_ref(), self.data.as_os_str()]);
        spec.cancel = (r#"{"method":"cancelled","params":{"requestId":"#.into(), "}}".into());
        spec.kill_grace = Duration::from_secs(2);
        spec
    }

    pub(crate) async fn start(&self) -> Connection {
        self.start_as(&self.spec()).await
    }

    pub(crate) async fn start_as(&self, spec: &PipeSpec) -> Connection {
        let variables = [("PATH".into(), "/bin".into()), ("SECRET".into(), "hunter2".into())];
        Connection::new(self.pipes.start(ID, spec, &variables).await.unwrap())
    }

    pub(crate) async fn find(&self) -> Connection {
        Connection::new(self.pipes.find(ID).await.unwrap().expect("the process runs"))
    }

    /// Returns a file of the process.
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.data.join(name)).unwrap_or_default()
    }

    pub(crate) fn write(&self, name: &str) {
        fs::write(self.data.join(name), "").unwrap();
    }

    /// Returns a file of the supervisor.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.data.join("pipes").join(ID).join(name)
    }

    /// Returns the process ID of the process.
    pub(crate) fn process(&self) -> i32 {
        let child: Value =
            serde_json::from_str(&fs::read_to_string(self.file("child")).unwrap()).unwrap();
        child["pid"].as_i64().unwrap().try_into().unwrap()
    }

    /// Returns the process ID of the supervisor.
    pub(crate) fn supervisor(&self) -> i32 {
        ps("ppid", self.process()).parse().unwrap()
    }

    /// Observes the supervisor until its state fits. Returns that state.
    pub(crate) async fn hello_with(&self, fits: impl Fn(&PipeHello) -> bool) -> PipeHello {
        let waiting = async {
            loop {
                let pipe = self.pipes.observe(ID).await.unwrap().expect("the supervisor runs");
                if fits(pipe.hello()) {
                    return pipe.hello().clone();
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(GUARD, waiting).await.expect("the state fits")
    }

    /// Waits until a file of the process has a text.
    pub(crate) async fn wait_for(&self, name: &str, text: &str) {
        let waiting = until(|| self.read(name).contains(text));
        tokio::time::timeout(GUARD, waiting).await.unwrap_or_else(|_| {
            panic!("`{name}` has no `{text}`: {}", self.read(name));
        });
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.is_own {
            self.write("go");
            let _ = fs::remove_dir_all(&self.data);
        }
    }
}

/// A connection of a gateway.
pub(crate) struct Connection {
    pub(crate) pipe: Pipe,
    pub(crate) sender: PipeSender,
}

impl Connection {
    pub(crate) fn new(pipe: Pipe) -> Self {
        let sender = pipe.sender();
        Self { pipe, sender }
    }

    pub(crate) async fn request(&self, id: u64, method: &str, params: Value) {
        self.send(id, method, params, None).await;
    }

    /// Sends a request of a task, which survives the gateway for a minute.
    pub(crate) async fn request_retained(&self, id: u64, method: &str, params: Value) {
        let label = Some("task".to_owned());
        let retention = Retention { time: Duration::from_secs(60), label };
        self.send(id, method, params, Some(retention)).await;
    }

    async fn send(&self, id: u64, method: &str, params: Value, retention: Option<Retention>) {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.sender.request(id, message.to_string().into(), retention.as_ref()).await;
    }

    pub(crate) async fn event(&mut self) -> Option<PipeEvent> {
        tokio::time::timeout(GUARD, self.pipe.next()).await.expect("an event arrives")
    }

    /// Returns the next message.
    pub(crate) async fn message(&mut self) -> Value {
        loop {
            match self.event().await.expect("the connection is open") {
                PipeEvent::Message(message) => return serde_json::from_slice(&message).unwrap(),
                PipeEvent::Exit(how) => panic!("the process has ended: {how:?}"),
                _ => {}
            }
        }
    }

    /// Returns the response to a request. Skips other messages.
    pub(crate) async fn response(&mut self, id: u64) -> Value {
        loop {
            let message = self.message().await;
            if message["id"] == id && message.get("method").is_none() {
                return message["result"].clone();
            }
        }
    }

    pub(crate) async fn attach(&mut self, id: u64) -> Attached {
        self.sender.attach(id);
        loop {
            match self.event().await.expect("the connection is open") {
                PipeEvent::Attached { id: attached_id, attached } if attached_id == id => {
                    return attached;
                }
                _ => {}
            }
        }
    }
}
