//! [`Console`]: the paths of the pages and of the API.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use outlive::{
    people::{AnswerLinks, People},
    server::{
        Server,
        http::{ResponseFuture, RouteBody, Routes},
    },
};

use crate::{
    api, handlers,
    http::{Reply, page, redirect},
    pages::answer::AnswerPages,
    request::ConsoleRequest,
    sign_in::link,
    state::ConsoleState,
};

/// Maximum bytes of a form that the answer page submits.
const MAX_FORM_BYTES: usize = 256 << 10;

/// Maximum bytes of a request to the console.
const MAX_REQUEST_BYTES: usize = 64 << 10;

/// Maximum bytes of the token in an answer link.
const MAX_TOKEN: usize = 4_096;

/// The pages of a server and their API. Clones serve the same pages.
///
/// Pass it to [`HttpConfig::routes`](outlive::server::http::HttpConfig::routes). The console is at
/// `/console`, the answer page at `/answer/TOKEN`. All links are relative, so a proxy may serve them
/// below any path.
///
/// The console checks every request with the authenticator of the MCP endpoint. Without one, a
/// browser on the same machine signs in with a [one-time link](Console::sign_in_path).
#[derive(Clone)]
pub struct Console(Arc<Parts>);

struct Parts {
    answers: Option<AnswerPages>,
    console: Option<Arc<ConsoleState>>,
}

/// A path of the pages.
enum Path<'a> {
    /// Answer page, with the token if it is one segment of limited length.
    Answer(&'a AnswerPages, Option<&'a str>),
    /// Console without a slash at its end, which relative links need.
    Root(&'a str),
    /// Path below the console.
    Below(&'a Arc<ConsoleState>, &'a str),
}

impl Console {
    /// Creates only the answer page of a server, without a console.
    pub fn answer_page(server: &Server) -> Self {
        // Without decisions in the store, no tool has links for people.
        let people = People::new(server).ok();
        Self::from_parts(Some(AnswerPages::new(AnswerLinks::new(server), people)), None)
    }

    pub(crate) fn from_parts(answers: Option<AnswerPages>, console: Option<ConsoleState>) -> Self {
        Self(Arc::new(Parts { answers, console: console.map(Arc::new) }))
    }

    /// Returns the path of a new link that signs one browser on this machine in, once and within ten
    /// minutes. Such links work only on a server without an authenticator.
    ///
    /// Returns `None` without a console, or if the operating system provides no random bytes.
    pub fn sign_in_path(&self) -> Option<String> {
        let console = self.0.console.as_ref()?;
        let key = link::create(&console.sign_in.vault)?;
        Some(format!("{}/in/{key}", console.path))
    }

    fn path<'a>(&'a self, path: &'a str) -> Option<Path<'a>> {
        if let (Some(answers), Some(token)) = (&self.0.answers, path.strip_prefix("/answer/")) {
            let is_token = !token.is_empty() && token.len() <= MAX_TOKEN && !token.contains('/');
            return Some(Path::Answer(answers, is_token.then_some(token)));
        }
        let console = self.0.console.as_ref()?;
        match console.below(path) {
            Some(below) => Some(Path::Below(console, below)),
            None if path == console.path => Some(Path::Root(&console.path)),
            None => None,
        }
    }

    async fn show(&self, request: Request<Bytes>) -> Reply {
        let (uri, method) = (request.uri().clone(), request.method().clone());
        let reply = match self.path(uri.path()) {
            Some(Path::Answer(answers, token)) => {
                let reply = answer(answers, token, &request).await;
                reply.map(RouteBody::from)
            }
            Some(Path::Root(path)) => {
                let name = path.rsplit('/').next().unwrap_or_default();
                redirect(&format!("./{name}/"))
            }
            Some(Path::Below(console, below)) => {
                let request = ConsoleRequest::new(request, below.to_owned());
                match below.strip_prefix("api/v1/") {
                    Some(path) => api::respond(console, &request, path).await,
                    None => handlers::respond(console, &request).await,
                }
            }
            None => page(StatusCode::NOT_FOUND, Bytes::new()),
        };
        match method {
            Method::HEAD => reply.map(|_| RouteBody::from(Bytes::new())),
            _ => reply,
        }
    }
}

async fn answer(
    answers: &AnswerPages,
    token: Option<&str>,
    request: &Request<Bytes>,
) -> Response<Bytes> {
    let Some(token) = token else { return answers.unknown() };
    match *request.method() {
        Method::GET | Method::HEAD => answers.show(token).await,
        Method::POST => answers.submit(token, request.body()).await,
        _ => answers.method_not_allowed(),
    }
}

impl Routes for Console {
    fn matches(&self, path: &str) -> Option<usize> {
        self.path(path).map(|path| match path {
            Path::Answer(..) => MAX_FORM_BYTES,
            Path::Root(_) | Path::Below(..) => MAX_REQUEST_BYTES,
        })
    }

    fn respond(&self, request: Request<Bytes>) -> ResponseFuture<'_> {
        Box::pin(self.show(request))
    }
}

impl fmt::Debug for Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Console")
    }
}
