//! Tests of readiness and metrics.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use http::StatusCode;
use outlive::{
    server::{Server, http::HttpConfig, tasks::TaskConfig},
    store::{MemoryStore, StoreError, StoreFuture, StoreMonitor, StoreStats},
};
use outlive_tasks::delegate_store;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{METRICS_TTL, Numbers, READY_TTL, Remembered, add};
use crate::serve::{Workers, config::demo};

/// Sends `requests` at once. Returns how often the page was computed.
async fn made(ttl: Duration, requests: usize) -> usize {
    let (page, made) = (Arc::new(Remembered::new(ttl)), Arc::new(AtomicUsize::new(0)));
    let request = || {
        let (page, made) = (Arc::clone(&page), Arc::clone(&made));
        let make = move || async move {
            made.fetch_add(1, Ordering::Relaxed);
            // Yield as a slow store would, so that all requests arrive during the computation.
            tokio::task::yield_now().await;
            (StatusCode::OK, "ready\n".to_owned())
        };
        tokio::spawn(async move { page.get(make).await })
    };
    for request in (0..requests).map(|_| request()).collect::<Vec<_>>() {
        assert_eq!(request.await.unwrap(), (StatusCode::OK, "ready\n".to_owned()));
    }
    made.load(Ordering::Relaxed)
}

#[tokio::test]
async fn concurrent_readiness_requests_share_one_store_read_per_ttl() {
    assert_eq!(READY_TTL, Duration::from_secs(1));
    assert_eq!(made(Duration::MAX, 1_000).await, 1);
    assert_eq!(made(Duration::ZERO, 100).await, 100);
}

/// A store that counts its status queries.
#[derive(Default)]
struct CountedStore {
    store: MemoryStore,
    calls: Mutex<HashMap<&'static str, usize>>,
    /// Whether counting tasks fails.
    counts_fail: AtomicBool,
}

impl CountedStore {
    fn count(&self, operation: &'static str) {
        *self.calls.lock().unwrap().entry(operation).or_default() += 1;
    }

    fn calls(&self, operation: &str) -> usize {
        self.calls.lock().unwrap().get(operation).copied().unwrap_or_default()
    }
}

delegate_store!(
    impl TaskStore, WorkQueue, BridgeStore, InputStore, KeyValueStore, ResultStore, AuditLog
        for CountedStore: |store| &store.store
);

impl StoreMonitor for CountedStore {
    delegate_store!(stored_bytes: |store| &store.store);

    fn stats(&self) -> StoreFuture<'_, StoreStats> {
        self.count("stats");
        match self.counts_fail.load(Ordering::Relaxed) {
            true => Box::pin(async { Err(StoreError::Unavailable("no counts".to_owned())) }),
            false => self.store.stats(),
        }
    }

    fn ready(&self) -> StoreFuture<'_, ()> {
        self.count("ready");
        self.store.ready()
    }
}

/// Sends a GET and returns the first line of the response.
async fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text.lines().next().unwrap_or_default().to_owned()
}

/// Requests a page 200 times. Returns the number of store reads and the elapsed time.
async fn reads(
    store: &CountedStore,
    operation: &str,
    url: (SocketAddr, &str),
) -> (usize, Duration) {
    let (before, begun) = (store.calls(operation), Instant::now());
    for _ in 0..200 {
        assert_eq!(get(url.0, url.1).await, "HTTP/1.1 200 OK", "{}", url.1);
    }
    (store.calls(operation) - before, begun.elapsed())
}

#[tokio::test]
async fn readiness_and_metrics_read_store_once_per_ttl() {
    let store = Arc::new(CountedStore::default());
    let server = Server::builder("s", "1").tasks(TaskConfig::new(Arc::clone(&store) as _));
    let server = server.build().unwrap();
    let numbers =
        Numbers::new(&server, &crate::serve::upstreams::Upstreams::none(), &Workers::default());
    let http = add(HttpConfig::new(), &demo().server, &server, &numbers).unwrap();
    let serving = server.serve_http("127.0.0.1:0", http).await.unwrap();
    // One at the start, and one after each TTL.
    let times = |elapsed: Duration, ttl: Duration| elapsed.div_duration_f64(ttl) as usize + 1;

    // Readiness must not count tasks: the server is ready although counting fails.
    store.counts_fail.store(true, Ordering::Relaxed);
    let (ready, elapsed) = reads(&store, "ready", (serving.address(), "/readyz")).await;
    assert!((1..=times(elapsed, READY_TTL)).contains(&ready), "/readyz: {ready} reads");

    store.counts_fail.store(false, Ordering::Relaxed);
    let (counts, elapsed) = reads(&store, "stats", (serving.address(), "/metrics")).await;
    // The server itself also checks the size of its store at the same rate.
    assert!((1..=2 * times(elapsed, METRICS_TTL)).contains(&counts), "/metrics: {counts} reads");
}
