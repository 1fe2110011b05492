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
use crate::serve::config::demo;

/// How often a page is made for many requests that come at once.
async fn made(ttl: Duration, requests: usize) -> usize {
    let (page, made) = (Arc::new(Remembered::new(ttl)), Arc::new(AtomicUsize::new(0)));
    let request = || {
        let (page, made) = (Arc::clone(&page), Arc::clone(&made));
        let make = move || async move {
            made.fetch_add(1, Ordering::Relaxed);
            // A store takes its time, and all of them come meanwhile.
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
async fn many_requests_for_readiness_read_the_store_once_until_that_is_old() {
    assert_eq!(READY_TTL, Duration::from_secs(1));
    assert_eq!(made(Duration::MAX, 1_000).await, 1);
    assert_eq!(made(Duration::ZERO, 100).await, 100);
}

/// A store that counts how often its state is read.
#[derive(Default)]
struct CountedStore {
    store: MemoryStore,
    calls: Mutex<HashMap<&'static str, usize>>,
    /// Whether it cannot count its tasks.
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
    impl TaskStore, WorkQueue, KeyValueStore, AuditLog for CountedStore: |store| &store.store
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

/// Requests a page 200 times. Returns how often the store was read for it, and how long that took.
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
async fn requests_for_readiness_and_metrics_read_the_store_once_in_their_time() {
    let store = Arc::new(CountedStore::default());
    let server = Server::builder("s", "1").tasks(TaskConfig::new(Arc::clone(&store) as _));
    let server = server.build().unwrap();
    let http = add(HttpConfig::new(), &demo().server, &server, &Numbers::new(&server)).unwrap();
    let serving = server.serve_http("127.0.0.1:0", http).await.unwrap();
    // One at the start, and one each time that the last is too old.
    let times = |elapsed: Duration, ttl: Duration| elapsed.div_duration_f64(ttl) as usize + 1;

    // A server is ready although its store cannot count tasks: readiness does not count them.
    store.counts_fail.store(true, Ordering::Relaxed);
    let (ready, elapsed) = reads(&store, "ready", (serving.address(), "/readyz")).await;
    assert!((1..=times(elapsed, READY_TTL)).contains(&ready), "/readyz: {ready} reads");

    store.counts_fail.store(false, Ordering::Relaxed);
    let (counts, elapsed) = reads(&store, "stats", (serving.address(), "/metrics")).await;
    // The server itself looks how full its store is, as often.
    assert!((1..=2 * times(elapsed, METRICS_TTL)).contains(&counts), "/metrics: {counts} reads");
}
