//! A way between a client and a real server that breaks where a test says so, and nowhere else.
//!
//! It listens on a socket of its own, reads HTTP from both sides, and passes everything on, event by
//! event. Rules name a request, by its JSON-RPC method or its verb, and what is done to it; events are
//! named by a text that stands in them. There is no chance in it: a rule is used once, or always.

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

/// How long a test waits for something to pass. Only one that fails waits so long.
const GUARD: Duration = Duration::from_secs(20);

/// What is done to a request, or to what comes back for it.
#[derive(Clone)]
pub(crate) enum Fault {
    /// It is answered with this status and no body, and the server never sees it.
    Refuse(u16, Option<u64>),
    /// The server has it, and its answer is lost with the connection.
    LoseAnswer,
    /// The connection is cut behind this event.
    CutAfter(&'static str),
    /// The connection is cut in the middle of this event.
    CutInside(&'static str),
    /// These events do not arrive.
    Drop(&'static [&'static str]),
    /// Behind this event comes another one, made of it.
    Append(&'static str, fn(&str) -> String),
    /// This event, and all behind it, waits at a gate.
    Hold(&'static str, Gate),
    /// This event comes behind the next one.
    Swap(&'static str),
}

struct Rule {
    on: &'static str,
    fault: Fault,
    is_kept: bool,
}

/// Listens, and passes on, for as long as its runtime lives.
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
                // A connection that breaks is what this is for.
                tokio::spawn(async move { shared.serve(BufReader::new(client)).await });
            }
        });
        Self { url, shared }
    }

    /// Does this to the next request of a method, or of a verb that has no body.
    pub(crate) fn once(&self, on: &'static str, fault: Fault) {
        lock(&self.shared.rules).push(Rule { on, fault, is_kept: false });
    }

    /// Does this to all of them.
    pub(crate) fn always(&self, on: &'static str, fault: Fault) {
        lock(&self.shared.rules).push(Rule { on, fault, is_kept: true });
    }

    /// Passes on to another server from now on.
    #[allow(dead_code, reason = "only tests of several processes have another server")]
    pub(crate) fn redirect(&self, server: SocketAddr) {
        *lock(&self.shared.server) = server;
    }

    /// The bodies of all requests of a method.
    pub(crate) fn requests(&self, method: &str) -> Vec<Value> {
        let requests = lock(&self.shared.requests);
        requests.iter().filter(|request| request["method"] == method).cloned().collect()
    }

    /// The messages of all events that have come from the server.
    pub(crate) fn events(&self) -> Vec<Value> {
        let events = lock(&self.shared.events);
        events.iter().map(|event| serde_json::from_str(&data(event)).unwrap()).collect()
    }

    /// Waits until the server has sent an event in which this stands.
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
        timeout(GUARD, came).await.unwrap_or_else(|_| panic!("no event with {text} came"));
    }

    /// Every rule for one request has found it.
    pub(crate) fn has_done_it_all(&self) -> bool {
        lock(&self.shared.rules).iter().all(|rule| rule.is_kept)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What an event says, without its other fields.
fn data(event: &str) -> String {
    let lines = event.lines().filter_map(|line| line.strip_prefix("data:"));
    lines.map(str::trim_start).collect::<Vec<_>>().join("\n")
}

/// The head of a message, and its body if it says how long that is.
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

    /// With these headers in place of those that are about the connection.
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

/// What a body has next; `None` at its end, whether that was meant or not.
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

/// Waits until a client that is being answered has left.
async fn gone(client: &mut BufReader<TcpStream>) {
    match client.fill_buf().await {
        Ok(more) if !more.is_empty() => std::future::pending().await,
        _ => {}
    }
}

impl Shared {
    /// One connection. `None` closes it.
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

    /// What is to be done to a request.
    fn faults(&self, name: &str) -> Vec<Fault> {
        let mut found = Vec::new();
        // One refusal at a time: the next one is for the next request.
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

    /// Passes a request on, and what comes back for it.
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

/// Passes an event on as the faults have it; whether the connection is cut behind it.
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
    // What was held back comes behind the next message, not behind a sign of life.
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
