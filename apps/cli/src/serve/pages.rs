//! /healthz, /readyz and /metrics: for those who watch the server.

use std::time::Duration;

use http::StatusCode;
use outlive::{http::HttpConfig, server::Server};
use tokio::time::timeout;

/// How long the store may take to answer before this server is not ready.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) fn add(http: HttpConfig, server: &Server) -> HttpConfig {
    let (ready, metrics) = (server.clone(), server.clone());
    http.page("/healthz", || async { (StatusCode::OK, "alive\n".to_owned()) })
        .page("/readyz", move || {
            let server = ready.clone();
            async move {
                match timeout(PATIENCE, server.metrics()).await {
                    Ok(metrics) if metrics.tasks.is_some() => {
                        (StatusCode::OK, "ready\n".to_owned())
                    }
                    _ => {
                        (StatusCode::SERVICE_UNAVAILABLE, "the store does not answer\n".to_owned())
                    }
                }
            }
        })
        .page("/metrics", move || {
            let server = metrics.clone();
            async move { (StatusCode::OK, server.metrics().await.to_string()) }
        })
}
