//! /healthz, /readyz and /metrics, for monitoring.
//!
//! The first two are public, so a response of /readyz is cached for a second. /metrics shows the
//! load of the server. It requires a separate listener, a token, or a server that only its own
//! machine can reach.

use std::{
    fs, io,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use outlive::server::{
    Server,
    http::{HttpConfig, ResponseFuture, RouteBody, Routes},
};
use outlive_workers::WorkerMetrics;
use tokio::{sync::Mutex, time::timeout};

use super::{
    config::{ServerConfig, is_loopback},
    upstreams::Upstreams,
    workers::Workers,
};
use crate::error::{CliError, Result};

/// Maximum time for the store to respond before the server counts as not ready.
const PATIENCE: Duration = Duration::from_secs(2);
/// Cache TTL of /readyz.
const READY_TTL: Duration = Duration::from_secs(1);
/// Cache TTL of /metrics.
const METRICS_TTL: Duration = Duration::from_secs(5);
/// Minimum length of a token. Shorter tokens can be guessed.
const SHORTEST_TOKEN: usize = 16;

/// A cached response. Concurrent requests share one computation.
pub(super) struct Remembered {
    ttl: Duration,
    last: Mutex<Option<(Instant, StatusCode, String)>>,
}

impl Remembered {
    fn new(ttl: Duration) -> Self {
        Self { ttl, last: Mutex::new(None) }
    }

    /// Returns the cached response, or computes a new one. Concurrent requests wait for it.
    async fn get<F: Future<Output = (StatusCode, String)>>(
        &self,
        make: impl FnOnce() -> F,
    ) -> (StatusCode, String) {
        let mut last = self.last.lock().await;
        if let Some((made, status, text)) = &*last
            && made.elapsed() < self.ttl
        {
            return (*status, text.clone());
        }
        let (status, text) = make().await;
        *last = Some((Instant::now(), status, text.clone()));
        (status, text)
    }
}

/// Metrics of a server.
#[derive(Clone)]
pub(super) struct Numbers {
    server: Server,
    upstreams: Upstreams,
    workers: Workers,
    remembered: Arc<Remembered>,
}

impl Numbers {
    pub(super) fn new(server: &Server, upstreams: &Upstreams, workers: &Workers) -> Self {
        let remembered = Arc::new(Remembered::new(METRICS_TTL));
        Self {
            server: server.clone(),
            upstreams: upstreams.clone(),
            workers: workers.clone(),
            remembered,
        }
    }

    /// Returns the metrics in the text format of Prometheus.
    pub(super) async fn text(&self) -> String {
        let make = || async {
            // If the store does not respond, its metrics are missing and the others are still
            // there.
            let mut text = self.server.metrics().await.to_string();
            text.push_str(&self.upstreams.metrics());
            // Writing to a string does not fail.
            let _ = WorkerMetrics::write_all(&self.workers.metrics(), &mut text);
            (StatusCode::OK, text)
        };
        self.remembered.get(make).await.1
    }
}

/// Adds the pages to the HTTP configuration.
pub(super) fn add(
    http: HttpConfig,
    config: &ServerConfig,
    server: &Server,
    numbers: &Numbers,
) -> Result<HttpConfig> {
    let (ready, remembered) = (server.clone(), Arc::new(Remembered::new(READY_TTL)));
    let http = http
        .text_page("/healthz", || async { (StatusCode::OK, "alive\n".to_owned()) })
        .text_page("/readyz", move || {
            let (server, remembered) = (ready.clone(), Arc::clone(&remembered));
            async move { remembered.get(|| readiness(server)).await }
        });
    let numbers = numbers.clone();
    if let Some(file) = &config.metrics_token_file {
        let token = read_token(file)?;
        return Ok(http.routes(Guarded { token, numbers }));
    }
    if config.metrics_listen.is_some() || !is_private(config) {
        return Ok(http);
    }
    Ok(http.text_page("/metrics", move || {
        let numbers = numbers.clone();
        async move { (StatusCode::OK, numbers.text().await) }
    }))
}

/// Returns whether only this machine can reach the server: no reverse proxy and no other host name
/// is configured.
fn is_private(config: &ServerConfig) -> bool {
    is_loopback(&config.listen)
        && config.allow_hosts.is_empty()
        && config.trusted_proxies.is_empty()
}

async fn readiness(server: Server) -> (StatusCode, String) {
    match timeout(PATIENCE, server.ready()).await {
        Ok(Ok(())) => (StatusCode::OK, "ready\n".to_owned()),
        _ => (StatusCode::SERVICE_UNAVAILABLE, "the store does not respond\n".to_owned()),
    }
}

fn read_token(file: &Path) -> Result<String> {
    let wrong = |what: &dyn std::fmt::Display| {
        CliError::usage(format_args!("`metrics_token_file` {}: {what}", file.display()))
            .remedy("write one token of 16 or more characters into the file, and run chmod 600")
    };
    let read: io::Result<String> = fs::read_to_string(file);
    let token = read.map_err(|error| wrong(&error))?.trim().to_owned();
    match token.len() >= SHORTEST_TOKEN && !token.contains(char::is_whitespace) {
        true => Ok(token),
        false => Err(wrong(&"the file has no token of 16 or more characters")),
    }
}

/// /metrics for requests with the token.
struct Guarded {
    token: String,
    numbers: Numbers,
}

impl Routes for Guarded {
    fn matches(&self, path: &str) -> Option<usize> {
        (path == "/metrics").then_some(0)
    }

    fn respond(&self, request: Request<Bytes>) -> ResponseFuture<'_> {
        let sent = request.headers().get(header::AUTHORIZATION);
        let sent = sent.and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
        let allowed = sent.is_some_and(|sent| same(sent, self.token.as_bytes()));
        Box::pin(async move {
            let builder = Response::builder().header(header::CACHE_CONTROL, "no-store");
            let response = match allowed {
                true => builder
                    .header(header::CONTENT_TYPE, "text/plain; charset=utf-8")
                    .body(Bytes::from(self.numbers.text().await)),
                false => builder
                    .status(StatusCode::UNAUTHORIZED)
                    .header(header::WWW_AUTHENTICATE, "Bearer")
                    .body(Bytes::from_static(
                        b"send the token in `metrics_token_file` as a bearer token\n",
                    )),
            };
            response.expect("the headers are valid constants").map(RouteBody::from)
        })
    }
}

/// Compares two byte strings in constant time for equal lengths.
fn same(left: &[u8], right: &[u8]) -> bool {
    let differ = left.iter().zip(right).fold(0, |differ, (left, right)| differ | (left ^ right));
    left.len() == right.len() && std::hint::black_box(differ) == 0
}

#[cfg(test)]
mod tests;
