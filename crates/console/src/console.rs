//! [`Console`]: the paths of the pages.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use http::{Method, Request, Response};
use outlive::{
    people::AnswerLinks,
    server::{
        Server,
        http::{ResponseFuture, Routes},
    },
};

use crate::{html::Style, pages::answer};

/// Maximum bytes of a submitted form.
const MAX_FORM_BYTES: usize = 256 << 10;

/// Maximum bytes of the token in an answer link.
const MAX_TOKEN: usize = 4_096;

/// The pages of a server. Clones serve the same pages.
///
/// Pass it to [`HttpConfig::routes`](outlive::server::http::HttpConfig::routes). The answer page is at
/// `/answer/TOKEN`. Its links are relative, so a proxy may serve it below any path.
#[derive(Clone)]
pub struct Console(Arc<State>);

struct State {
    links: AnswerLinks,
    style: Style,
}

impl Console {
    /// Creates the pages of a server.
    pub fn new(server: &Server) -> Self {
        Self(Arc::new(State { links: AnswerLinks::new(server), style: Style::new() }))
    }

    async fn show(&self, request: &Request<Bytes>) -> Response<Bytes> {
        let State { links, style } = &*self.0;
        let Some(token) = token(request.uri().path()) else { return answer::unknown(style) };
        match *request.method() {
            Method::GET => answer::show(links, style, token).await,
            Method::HEAD => answer::show(links, style, token).await.map(|_| Bytes::new()),
            Method::POST => answer::submit(links, style, token, request.body()).await,
            _ => answer::method_not_allowed(style),
        }
    }
}

/// Returns the token in a path of the answer page.
fn token(path: &str) -> Option<&str> {
    let token = path.strip_prefix("/answer/")?;
    (!token.is_empty() && token.len() <= MAX_TOKEN && !token.contains('/')).then_some(token)
}

impl Routes for Console {
    fn matches(&self, path: &str) -> Option<usize> {
        path.starts_with("/answer/").then_some(MAX_FORM_BYTES)
    }

    fn respond(&self, request: Request<Bytes>) -> ResponseFuture<'_> {
        Box::pin(async move { self.show(&request).await })
    }
}

impl fmt::Debug for Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Console")
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_TOKEN, token};

    #[test]
    fn token_is_one_path_segment_of_limited_length() {
        assert_eq!(token("/answer/abc-_9"), Some("abc-_9"));
        for path in ["/answer/", "/answer", "/answer/a/b", "/answers/a", "/", "/x/answer/a"] {
            assert_eq!(token(path), None, "{path}");
        }
        let longest = format!("/answer/{}", "a".repeat(MAX_TOKEN));
        assert!(token(&longest).is_some() && token(&format!("{longest}a")).is_none());
    }
}
