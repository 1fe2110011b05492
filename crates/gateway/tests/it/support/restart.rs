//! A gateway that is killed or stopped, and starts again on the same SQLite store and address.

use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use outlive::{
    client::{Client, ClientBuilder, Version},
    server::{Server, http::HttpConfig, tasks::TaskConfig},
    store::{PeopleStore, TaskId, open_operator, open_people},
};
use outlive_gateway::{Gateway, Supervision, Upstream};
use tokio::{
    runtime::{Builder, Runtime},
    sync::oneshot,
};

use super::{child, eventually};

/// A gateway in a runtime of its own. Dropping the runtime ends all of its code at once.
pub(crate) struct Restartable {
    folder: PathBuf,
    upstreams: Vec<Upstream>,
    /// Whether processes of upstreams survive the gateway.
    is_supervised: bool,
    address: Option<SocketAddr>,
    running: Option<Running>,
}

struct Running {
    runtime: Runtime,
    stop: oneshot::Sender<oneshot::Sender<()>>,
}

impl Restartable {
    pub(crate) async fn start(upstreams: impl IntoIterator<Item = Upstream>) -> Self {
        Self::start_as(upstreams, false).await
    }

    /// Starts a gateway whose processes survive it.
    pub(crate) async fn supervised(upstreams: impl IntoIterator<Item = Upstream>) -> Self {
        Self::start_as(upstreams, true).await
    }

    async fn start_as(upstreams: impl IntoIterator<Item = Upstream>, is_supervised: bool) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::SeqCst);
        let name = format!("outlive-gateway-restart-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let upstreams = upstreams.into_iter().collect();
        let mut gateway = Self { folder, upstreams, is_supervised, address: None, running: None };
        gateway.restart().await;
        gateway
    }

    /// Ends the gateway without any of its code. Its connections are closed when this returns, as
    /// those of a killed process are.
    pub(crate) fn kill(&mut self) {
        let Running { runtime, .. } = self.running.take().expect("the gateway runs");
        // In a thread that may block.
        let killing = std::thread::spawn(|| runtime.shutdown_timeout(Duration::from_secs(10)));
        killing.join().expect("the runtime ends");
    }

    /// Stops the gateway as the program does.
    pub(crate) async fn stop(&mut self) {
        let Running { runtime, stop } = self.running.take().expect("the gateway runs");
        let (sender, stopped) = oneshot::channel();
        stop.send(sender).unwrap();
        stopped.await.unwrap();
        runtime.shutdown_background();
    }

    /// Starts the gateway, on its previous address if it ran before.
    pub(crate) async fn restart(&mut self) {
        // One thread: while it drops the tasks of a killed gateway, none of them runs. With two, a
        // dropped call could still write its cancellation.
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (address, url, upstreams) = (self.address, self.store_url(), self.upstreams.clone());
        let (ready, started) = oneshot::channel();
        let (stop, stopping) = oneshot::channel();
        let pipes = self.is_supervised.then(|| self.pipes());
        runtime.spawn(run(address, url, (upstreams, pipes), ready, stopping));
        self.address = Some(started.await.expect("the gateway starts"));
        self.running = Some(Running { runtime, stop });
    }

    /// Returns the folder of processes that survive the gateway.
    pub(crate) fn pipes(&self) -> PathBuf {
        self.folder.join("pipes")
    }

    fn store_url(&self) -> String {
        format!("sqlite:{}", self.folder.join("store.db").display())
    }

    pub(crate) async fn client(&self, version: Version) -> Client {
        self.client_with(Client::builder("test", "1.0.0").protocol_version(version)).await
    }

    pub(crate) async fn client_with(&self, builder: ClientBuilder) -> Client {
        let address = self.address.expect("the gateway has started");
        builder.connect(format!("http://{address}/mcp")).await.unwrap()
    }

    /// Waits until the journal of a task has an entry.
    pub(crate) async fn recorded(&self, task: &str, key: &str) {
        let store = open_operator(&self.store_url()).await.unwrap();
        let task = TaskId::new(task);
        eventually(&format!("the entry `{key}`"), async || {
            let detail = store.inspect(&task).await.unwrap();
            detail.is_some_and(|detail| detail.entries.contains_key(key))
        })
        .await;
    }
}

impl Drop for Restartable {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.runtime.shutdown_background();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Serves until the runtime ends, or until `stopping` gets the sender of the end.
async fn run(
    address: Option<SocketAddr>,
    url: String,
    (upstreams, pipes): (Vec<Upstream>, Option<PathBuf>),
    ready: oneshot::Sender<SocketAddr>,
    stopping: oneshot::Receiver<oneshot::Sender<()>>,
) {
    let store: Arc<dyn PeopleStore> = open_people(&url).await.unwrap();
    let tasks = TaskConfig::people(Arc::clone(&store))
        .poll_interval(Duration::from_millis(50))
        .partial_results(true)
        .engine(|engine| {
            engine.lease_duration = Duration::from_secs(1);
            engine.poll_interval = Duration::from_millis(100);
        });
    let mut builder = Gateway::builder();
    if let Some(pipes) = pipes {
        let supervision = Supervision::new(pipes, Arc::clone(&store) as _);
        builder = builder.supervision(supervision.program(child()));
    }
    builder = builder.store(store as _);
    for upstream in upstreams {
        builder = builder.upstream(upstream);
    }
    let gateway = builder.build().unwrap();
    let server = gateway.attach(Server::builder("gateway", "1.0.0").tasks(tasks)).build().unwrap();
    gateway.start(&server);
    let wanted = address.map_or_else(|| "127.0.0.1:0".to_owned(), |address| address.to_string());
    let serving = loop {
        match server.serve_http(wanted.as_str(), HttpConfig::new()).await {
            Ok(serving) => break serving,
            // The killed gateway may not have closed its socket yet.
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    };
    ready.send(serving.address()).unwrap();
    if let Ok(stopped) = stopping.await {
        server.drain(Duration::from_secs(5)).await;
        serving.shutdown().await;
        gateway.shutdown().await;
        let _ = stopped.send(());
    }
}
