//! Text pages beside the endpoint, such as health checks and metrics. Pages are public and contain
//! no data of calls.

use std::{future::Future, pin::Pin, sync::Arc};

use bytes::Bytes;
use http::{HeaderValue, Method, Response, StatusCode, header};

use super::{Body, reply};

/// Pages by path.
#[derive(Clone, Default)]
pub(super) struct Pages(Vec<(String, Page)>);

type Page =
    Arc<dyn Fn() -> Pin<Box<dyn Future<Output = (StatusCode, String)> + Send>> + Send + Sync>;

impl Pages {
    pub(super) fn add<F, Fut>(&mut self, path: String, page: F)
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = (StatusCode, String)> + Send + 'static,
    {
        self.0.push((path, Arc::new(move || Box::pin(page()))));
    }

    pub(super) fn find(&self, path: &str) -> Option<&Page> {
        self.0.iter().find(|(known, _)| known == path).map(|(_, page)| page)
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(path, _)| path.as_str())
    }
}

/// Responds with a page.
pub(super) async fn show(page: &Page, method: &Method) -> Response<Body> {
    if !matches!(*method, Method::GET | Method::HEAD) {
        return reply::method_not_allowed("GET, HEAD");
    }
    let (status, text) = page().await;
    let body = if *method == Method::HEAD { Body::empty() } else { Body::full(Bytes::from(text)) };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
