//! A proxy between a client and a real server that injects faults.
//!
//! The proxy forwards HTTP event by event. A rule names a request by its JSON-RPC method or its
//! verb, and a fault. Faults name events by a text that they contain. A rule applies once or
//! always, never randomly.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::Notify,
    time::timeout,
};

use super::gate::Gate;

/// Upper limit of every wait. Only a failing test waits this long.
const GUARD: Duration = Duration::from_secs(20);

/// A fault in a request or its response.
#[derive(Clone)]
pub(crate) enum Fault {
    /// Responds with this status without a body; the server does not get the request.
    Refuse(u16, Option<u64>),
    /// Forwards the request and closes the connection before the response.
    LoseAnswer,
    /// Closes the connection after this event.
    CutAfter(&'static str),
    /// Closes the connection in the middle of this event.
    CutInside(&'static str),
    /// Drops these events.
    Drop(&'static [&'static str]),
    /// Sends another event, made from this one, after it.
    Append(&'static str, fn(&str) -> String),
    /// Holds this event and all later ones at a gate.
    Hold(&'static str, Gate),
    /// Sends this event after the next one.
    Swap(&'static str),
}

struct Rule {
    on: &'static str,
    fault: Fault,
    is_kept: bool,
}

/// A proxy that runs until its runtime is dropped.
pub(crate) struct Proxy {
    pub(crate) url: String,
    shared: Arc<Shared>,
}

struct Shared {
    // Std mutexes: nothing awaits while they are held.
    server: Mutex<SocketAddr>,
    rules: Mutex<Vec<Rule>>,
    requests: Mutex<Vec<Value>>,
    events: Mutex<Vec<String>>,
    something: Notify,
}

impl Proxy {
    pub(crate) async fn before(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let shared = Arc::new(Shared {
            server: Mutex::new(server),
            rules: Mutex::default(),
            requests: Mutex::default(),
            events: Mutex::default(),
            something: Notify::new(),
        });
        let passing = Arc::clone(&shared);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let shared = Arc::clone(&passing);
                // Errors are ignored: broken connections are the purpose of the proxy.
                tokio::spawn(async move { shared.serve(BufReader::new(client)).await });
            }
        });
        Self { url, shared }
    }

    /// Applies a fault to the next request with this method, or with this verb if it has no body.
    pub(crate) fn once(&self, on: &'static str, fault: Fault) {
        lock(&self.shared.rules).push(Rule { on, fault, is_kept: false });
    }

    /// Applies a fault to every such request.
    pub(crate) fn always(&self, on: &'static str, fault: Fault) {
        lock(&self.shared.rules).push(Rule { on, fault, is_kept: true });
    }

    /// Forwards to another server from now on.
    #[allow(dead_code, reason = "only tests of several processes have another server")]
    pub(crate) fn redirect(&self, server: SocketAddr) {
        *lock(&self.shared.server) = server;
    }

    /// Returns the bodies of all requests with this method.
    pub(crate) fn requests(&self, method: &str) -> Vec<Value> {
        let requests = lock(&self.shared.requests);
        requests.iter().filter(|request| request["method"] == method).cloned().collect()
    }

    /// Returns the messages of all events from the server.
    pub(crate) fn events(&self) -> Vec<Value> {
        let events = lock(&self.shared.events);
        events.iter().map(|event| serde_json::from_str(&data(event)).unwrap()).collect()
    }

    /// Waits until the server has sent an event that contains `text`.
    pub(crate) async fn came(&self, text: &str) {
        let came = async {
            loop {
                let next = self.shared.something.notified();
                if lock(&self.shared.events).iter().any(|event| event.contains(text)) {
                    return;
                }
                next.await;
            }
        };
        timeout(GUARD, came).await.unwrap_or_else(|_| panic!("no event with {text} arrived"));
    }

    /// Whether every one-time rule has been applied.
    pub(crate) fn has_done_it_all(&self) -> bool {
        lock(&self.shared.rules).iter().all(|rule| rule.is_kept)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the data of an event.
fn data(event: &str) -> String {
    let lines = event.lines().filter_map(|line| line.strip_prefix("data:"));
    lines.map(str::trim_start).collect::<Vec<_>>().join("\n")
}

/// The head of a message, and its body if it has a length.
struct Head {
    start: String,
    headers: Vec<(String, String)>,
}

impl Head {
    async fn read(stream: &mut BufReader<TcpStream>) -> Option<Self> {
        let start = line(stream).await?;
        let mut headers = Vec::new();
        loop {
            let line = line(stream).await?;
            let Some((name, value)) = line.split_once(':') else {
                return line.is_empty().then_some(Self { start, headers });
            };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn length(&self) -> Option<usize> {
        self.get("content-length").and_then(|length| length.parse().ok())
    }

    /// Writes the head with these headers instead of the connection headers.
    fn written(&self, instead: &[(&str, &str)]) -> String {
        let connection = ["connection", "transfer-encoding", "content-length", "host"];
        let mut head = format!("{}\r\n", self.start);
        let kept = self.headers.iter().filter(|(name, _)| !connection.contains(&name.as_str()));
        let kept = kept.map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in kept.chain(instead.iter().copied()) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head + "\r\n"
    }
}

async fn line(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok().filter(|read| *read > 0)?;
    line.truncate(line.trim_end().len());
    Some(line)
}

/// Returns the next part of a body. `None` is its end, clean or not.
async fn chunk(server: &mut BufReader<TcpStream>, is_chunked: bool) -> Option<Vec<u8>> {
    if !is_chunked {
        let some = server.fill_buf().await.ok().filter(|some| !some.is_empty())?.to_vec();
        server.consume(some.len());
        return Some(some);
    }
    let size = usize::from_str_radix(&line(server).await?, 16).ok().filter(|size| *size > 0)?;
    let mut bytes = vec![0; size];
    server.read_exact(&mut bytes).await.ok()?;
    line(server).await?;
    Some(bytes)
}

/// Waits until a client disconnects during the response.
async fn gone(client: &mut BufReader<TcpStream>) {
    match client.fill_buf().await {
        Ok(more) if !more.is_empty() => std::future::pending().await,
        _ => {}
    }
}

impl Shared {
    /// Serves one connection. `None` closes it.
    async fn serve(&self, mut client: BufReader<TcpStream>) -> Option<()> {
        loop {
            let head = Head::read(&mut client).await?;
            let mut body = vec![0; head.length().unwrap_or(0)];
            client.read_exact(&mut body).await.ok()?;
            let verb = head.start.split(' ').next().unwrap_or_default();
            let plain = || json!({"method": verb});
            let message: Value = serde_json::from_slice(&body).unwrap_or_else(|_| plain());
            let faults = self.faults(message["method"].as_str().unwrap_or_default());
            lock(&self.requests).push(message);
            let refusal = faults.iter().find_map(|fault| match fault {
                Fault::Refuse(status, after) => Some((status, after)),
                _ => None,
            });
            if let Some((status, after)) = refusal {
                let after =
                    after.map_or(String::new(), |after| format!("Retry-After: {after}\r\n"));
                let answer = format!("HTTP/1.1 {status} No\r\n{after}Content-Length: 0\r\n\r\n");
                client.write_all(answer.as_bytes()).await.ok()?;
                continue;
            }
            self.pass(&mut client, &head, &body, faults).await?;
        }
    }

    /// Returns the faults for a request.
    fn faults(&self, name: &str) -> Vec<Fault> {
        let mut found = Vec::new();
        // Only one `Refuse` per request; the next one applies to the next request.
        let mut is_refused = false;
        lock(&self.rules).retain(|rule| {
            let refuses = matches!(rule.fault, Fault::Refuse(..));
            if rule.on != name || is_refused {
                return true;
            }
            is_refused = refuses;
            found.push(rule.fault.clone());
            rule.is_kept
        });
        found
    }

    /// Forwards a request and its response.
    async fn pass(
        &self,
        client: &mut BufReader<TcpStream>,
        head: &Head,
        body: &[u8],
        faults: Vec<Fault>,
    ) -> Option<()> {
        let address = *lock(&self.server);
        let mut server = BufReader::new(TcpStream::connect(address).await.ok()?);
        let (host, length) = (address.to_string(), body.len().to_string());
        let own = [("host", &*host), ("content-length", &*length), ("connection", "close")];
        server.write_all(head.written(&own).as_bytes()).await.ok()?;
        server.write_all(body).await.ok()?;
        let answer = tokio::select! {
            answer = Head::read(&mut server) => answer?,
            () = gone(client) => return None,
        };
        if faults.iter().any(|fault| matches!(fault, Fault::LoseAnswer)) {
            return None;
        }
        let is_chunked = answer.get("transfer-encoding") == Some("chunked");
        if answer.get("content-type").is_some_and(|kind| kind.starts_with("text/event-stream")) {
            let own = [("transfer-encoding", "chunked")];
            client.write_all(answer.written(&own).as_bytes()).await.ok()?;
            self.pass_events(client, server, is_chunked, faults).await?;
            return client.write_all(b"0\r\n\r\n").await.ok();
        }
        let mut whole = Vec::new();
        while answer.length() != Some(whole.len())
            && let Some(some) = chunk(&mut server, is_chunked).await
        {
            whole.extend(some);
        }
        let length = whole.len().to_string();
        let head = answer.written(&[("content-length", &length)]);
        client.write_all(head.as_bytes()).await.ok()?;
        client.write_all(&whole).await.ok()
    }

    async fn pass_events(
        &self,
        client: &mut BufReader<TcpStream>,
        mut server: BufReader<TcpStream>,
        is_chunked: bool,
        faults: Vec<Fault>,
    ) -> Option<()> {
        let mut came = Vec::new();
        let mut behind = String::new();
        loop {
            let some = tokio::select! {
                some = chunk(&mut server, is_chunked) => some,
                () = gone(client) => return None,
            };
            let Some(some) = some else { return Some(()) };
            came.extend(some);
            while let Some(end) = came.windows(2).position(|two| two == b"\n\n") {
                let rest = came.split_off(end + 2);
                let event = String::from_utf8(std::mem::replace(&mut came, rest)).ok()?;
                if !data(&event).is_empty() {
                    lock(&self.events).push(event.clone());
                    self.something.notify_waiters();
                }
                let is_cut = broken(&event, &faults, &mut behind, client).await?;
                if is_cut {
                    return None;
                }
            }
        }
    }
}

/// Forwards an event with its faults. Returns whether the connection is closed after it.
async fn broken(
    event: &str,
    faults: &[Fault],
    behind: &mut String,
    client: &mut BufReader<TcpStream>,
) -> Option<bool> {
    let mut out = event.to_owned();
    let mut is_cut = false;
    let mut is_held_back = false;
    for fault in faults {
        match fault {
            Fault::CutAfter(text) if event.contains(text) => is_cut = true,
            Fault::CutInside(text) if event.contains(text) => {
                out.truncate(event.len() / 2);
                is_cut = true;
            }
            Fault::Drop(texts) if texts.iter().any(|text| event.contains(text)) => out.clear(),
            Fault::Append(text, other) if event.contains(text) => {
                out.push_str(&format!("data: {}\n\n", other(&data(event))));
            }
            Fault::Hold(text, gate) if event.contains(text) => gate.pass().await,
            Fault::Swap(text) if event.contains(text) => is_held_back = true,
            _ => {}
        }
    }
    if is_held_back {
        behind.push_str(&out);
        return Some(is_cut);
    }
    // A swapped event follows the next message, not a keep-alive.
    if !data(event).is_empty() {
        out.push_str(&std::mem::take(behind));
    }
    if !out.is_empty() {
        let chunk = format!("{:x}\r\n{out}\r\n", out.len());
        client.write_all(chunk.as_bytes()).await.ok()?;
        client.flush().await.ok()?;
    }
    Some(is_cut)
}
