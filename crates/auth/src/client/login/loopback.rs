//! A browser on this machine, and a port on which it comes back.
//!
//! The port is open for one login. Requests that are not that login's (a wrong `state`, another
//! path) are turned away and waited past, so that no other page on this machine can end it.
//! Spec: RFC 8252, section 7.3.

use std::{fmt, net::Ipv4Addr, process::Stdio, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    process::Command,
    task::JoinSet,
};

use super::{Login, PendingLogin, RedirectParams};
use crate::client::{OAuthError, url::Place};

const PATH: &str = "/callback";
/// How long the head of a request may be.
const HEAD: usize = 16 << 10;
/// How long a browser may take to send one.
const READING: Duration = Duration::from_secs(10);

type Show = Arc<dyn Fn(&str) + Send + Sync>;

/// Opens the browser, and waits for it on a port of this machine.
#[derive(Clone)]
pub struct LoopbackLogin {
    port: u16,
    patience: Duration,
    opens: bool,
    show: Option<Show>,
}

impl fmt::Debug for LoopbackLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoopbackLogin").field("port", &self.port).finish_non_exhaustive()
    }
}

impl Default for LoopbackLogin {
    fn default() -> Self {
        Self::new()
    }
}

impl LoopbackLogin {
    /// Any free port; five minutes.
    pub fn new() -> Self {
        Self { port: 0, patience: Duration::from_secs(300), opens: true, show: None }
    }

    /// Always this port: for authorization servers that know one.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// How long somebody may take to log in.
    #[must_use]
    pub fn timeout(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Also gives the page's address to a function, for where the browser does not open.
    #[must_use]
    pub fn on_url(mut self, show: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.show = Some(Arc::new(show));
        self
    }

    /// Leaves opening the browser to whoever is given the address.
    #[must_use]
    pub fn without_browser(mut self) -> Self {
        self.opens = false;
        self
    }

    async fn bind(&self, registered: Option<&str>) -> Result<TcpListener, OAuthError> {
        let known = registered.and_then(Place::parse).filter(|it| it.host() == "127.0.0.1");
        let known = known.map(|place| place.port());
        for port in [known.filter(|_| self.port == 0), Some(self.port)].into_iter().flatten() {
            if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await {
                return Ok(listener);
            }
        }
        Err(OAuthError::Login(format!(
            "port {} of this machine is taken; end what uses it, or name another",
            self.port
        )))
    }
}

impl Login for LoopbackLogin {
    async fn prepare(&self, registered: Option<&str>) -> Result<PendingLogin, OAuthError> {
        let listener = self.bind(registered).await?;
        let address =
            listener.local_addr().map_err(|error| OAuthError::Login(error.to_string()))?;
        let redirect_uri = format!("http://{address}{PATH}");
        let this = self.clone();
        Ok(PendingLogin::new(redirect_uri, move |url| async move {
            let state = RedirectParams::from_url(&url).get("state").map(str::to_owned);
            if let Some(show) = &this.show {
                show(&url);
            }
            if this.opens {
                open(&url);
            }
            let waiting = wait(&listener, state.as_deref());
            match tokio::time::timeout(this.patience, waiting).await {
                Ok(redirected) => redirected,
                Err(_) => Err(OAuthError::Login(format!(
                    "nobody came back within {} s; try again",
                    this.patience.as_secs()
                ))),
            }
        }))
    }
}

/// Waits for the redirect that belongs to this login. Connections are looked at side by side: a
/// browser opens some that it does not use.
async fn wait(listener: &TcpListener, state: Option<&str>) -> Result<RedirectParams, OAuthError> {
    /// More than a browser opens; others wait until one of these is through.
    const MOST: usize = 16;
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if open.len() < MOST => {
                let (stream, _) = accepted.map_err(|error| OAuthError::Login(error.to_string()))?;
                let state = state.map(str::to_owned);
                open.spawn(async move {
                    let serving = serve(stream, state.as_deref());
                    tokio::time::timeout(READING, serving).await.ok().flatten()
                });
            }
            Some(served) = open.join_next() => {
                if let Ok(Some(redirected)) = served {
                    return Ok(redirected);
                }
            }
        }
    }
}

/// Answers one request; what it brings, if it is the one that is waited for.
async fn serve(mut stream: TcpStream, state: Option<&str>) -> Option<RedirectParams> {
    let target = head(&mut stream).await?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let redirected = RedirectParams::from_query(query);
    if path != PATH {
        answer(&mut stream, "404 Not Found", "There is nothing here.").await;
        return None;
    }
    if redirected.is_empty() || redirected.get("state") != state {
        answer(&mut stream, "400 Bad Request", "This is not the login that was begun.").await;
        return None;
    }
    let text = match redirected.get("error") {
        None => "You are logged in. You may close this page.",
        Some(_) => "You are not logged in. You may close this page.",
    };
    answer(&mut stream, "200 OK", text).await;
    Some(redirected)
}

/// What a GET asks for; `None` if it is none.
async fn head(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    while !bytes.windows(4).any(|it| it == b"\r\n\r\n") {
        if bytes.len() > HEAD || stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    let line = bytes.split(|byte| *byte == b'\r').next()?;
    let mut words = str::from_utf8(line).ok()?.split(' ');
    (words.next()? == "GET").then(|| words.next().map(str::to_owned))?
}

async fn answer(stream: &mut TcpStream, status: &str, text: &str) {
    // Nothing of the request is in the page, and nothing of the page leaves it.
    let page = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>{text}</title>\
         <body style=\"font:1.2em sans-serif;margin:4em\"><p>{text}</p></html>"
    );
    let reply = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\n\
         cache-control: no-store\r\nreferrer-policy: no-referrer\r\n\
         content-security-policy: default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'\r\n\
         connection: close\r\n\r\n{page}",
        page.len()
    );
    let _ = stream.write_all(reply.as_bytes()).await;
    let _ = stream.shutdown().await;
}

/// Opens a page with the system's own program for that; never through a shell.
fn open(url: &str) {
    // What is opened was checked to be http: or https:, and cannot be taken for an option.
    let (program, arguments): (&str, &[&str]) = if cfg!(target_os = "macos") {
        ("open", &[])
    } else if cfg!(windows) {
        ("rundll32", &["url.dll,FileProtocolHandler"])
    } else {
        ("xdg-open", &[])
    };
    let started = Command::new(program)
        .args(arguments)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if let Err(error) = started {
        tracing::debug!(%error, program, "the browser could not be opened");
    }
}
