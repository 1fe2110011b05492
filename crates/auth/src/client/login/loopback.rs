//! Login with a browser on this machine and a redirect to a loopback port.
//!
//! The port is open for one login. Requests with another `state` or path are rejected without
//! ending the login, so that other local pages cannot interfere. Spec: RFC 8252, section 7.3.

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
/// Maximum bytes of a request head.
const HEAD: usize = 16 << 10;
/// Time in which the browser must send a request.
const READING: Duration = Duration::from_secs(10);

type Show = Arc<dyn Fn(&str) + Send + Sync>;

/// Login that opens the browser and waits for the redirect on a loopback port.
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
    /// Creates a login on any free port, with a timeout of five minutes.
    pub fn new() -> Self {
        Self { port: 0, patience: Duration::from_secs(300), opens: true, show: None }
    }

    /// Sets a fixed port, for authorization servers that require an exact redirect URI.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Sets how long the user may take to log in.
    #[must_use]
    pub fn timeout(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Also passes the URL of the login page to a function, in case the browser does not open.
    #[must_use]
    pub fn on_url(mut self, show: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.show = Some(Arc::new(show));
        self
    }

    /// Does not open a browser. The function of [`on_url`](Self::on_url) shows the URL.
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
            "port {} of this machine is in use; stop the other program, or choose another port",
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
                    "the login was not completed within {} s; retry",
                    this.patience.as_secs()
                ))),
            }
        }))
    }
}

/// Waits for the redirect of this login. Handles connections concurrently, because browsers open
/// some that they do not use.
async fn wait(listener: &TcpListener, state: Option<&str>) -> Result<RedirectParams, OAuthError> {
    /// Maximum number of concurrent connections. A browser opens fewer.
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

/// Responds to one request. Returns its parameters if it is the redirect of this login.
async fn serve(mut stream: TcpStream, state: Option<&str>) -> Option<RedirectParams> {
    let target = head(&mut stream).await?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let redirected = RedirectParams::from_query(query);
    if path != PATH {
        answer(&mut stream, "404 Not Found", "Not found.").await;
        return None;
    }
    if redirected.is_empty() || redirected.get("state") != state {
        answer(
            &mut stream,
            "400 Bad Request",
            "This request does not belong to the current login.",
        )
        .await;
        return None;
    }
    let text = match redirected.get("error") {
        None => "You are logged in. You may close this page.",
        Some(_) => "You are not logged in. You may close this page.",
    };
    answer(&mut stream, "200 OK", text).await;
    Some(redirected)
}

/// Returns the target of a GET request, or `None` for any other request.
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
    // The page contains no data of the request and loads no other resources.
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

/// Opens a URL with the default program of the system, never through a shell.
fn open(url: &str) {
    // The URL was checked to be http: or https:, so it cannot be parsed as an option.
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
        tracing::debug!(%error, program, "opening the browser failed");
    }
}
