//! The requests of a connection, in the mix that the report states.

use anyhow::{Context, Result, bail, ensure};
use memchr::memmem;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{
    load::http::Head,
    messages::{
        COUNT_HEADERS, CREATE_TASK_HEADERS, INITIALIZE, INITIALIZED, MODERN_CALL_HEADERS, TEXT,
        count_call, create_task_of, get_task, http_request, legacy_call, modern_call,
    },
};

/// A kind of request.
pub(super) struct Kind {
    pub(super) about: &'static str,
    /// Number of its turns out of twenty. A task has two turns: its creation and its poll.
    turns: usize,
}

const ECHO: usize = 0;
const LEGACY: usize = 1;
const PROGRESS: usize = 2;
const LIST: usize = 3;
const TASK: usize = 4;
const POLL: usize = 5;

/// All kinds. One in four connections has a session of 2025-11-25 and calls in it.
pub(super) const KINDS: [Kind; 6] = [
    Kind { about: "`tools/call`, 2026-07-28", turns: 11 },
    Kind { about: "`tools/call` in a session, 2025-11-25", turns: 0 },
    Kind { about: "`tools/call` with 5 progress notifications, by a stream", turns: 3 },
    Kind { about: "`tools/list`", turns: 2 },
    Kind { about: "`tools/call` that becomes a task, committed to SQLite", turns: 2 },
    Kind { about: "`tasks/get` until it is completed", turns: 2 },
];

const TURNS: usize = 20;
const STEPS: u32 = 5;
const IN_SESSIONS: usize = 4;

/// The mix as a list.
pub(super) fn shown() -> String {
    let mut text = String::new();
    for kind in KINDS.iter().filter(|kind| kind.turns > 0) {
        text.push_str(&format!("- {} %: {}\n", kind.turns * 100 / TURNS, kind.about));
    }
    text.push_str(&format!(
        "- one connection in {IN_SESSIONS} has a session of 2025-11-25 and calls in it instead\n"
    ));
    text
}

/// A connection and its state.
pub(super) struct Caller {
    number: usize,
    stream: TcpStream,
    turn: usize,
    session: Option<String>,
    task: Option<String>,
    got: Vec<u8>,
}

impl Caller {
    pub(super) fn new(number: usize, stream: TcpStream) -> Result<Self> {
        stream.set_nodelay(true)?;
        // Connections start at different turns.
        let turn = number / IN_SESSIONS;
        Ok(Self { number, stream, turn, session: None, task: None, got: Vec::new() })
    }

    /// Opens a session if this connection has one, and makes one call.
    pub(super) async fn greet(&mut self) -> Result<()> {
        if self.number.is_multiple_of(IN_SESSIONS) {
            self.exchange(http_request("POST", "/mcp", &[], INITIALIZE), 200).await?;
            let head = String::from_utf8_lossy(&self.got);
            let session = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
            let session = session.context("the handshake response has no session")?.to_owned();
            let headers = [("mcp-protocol-version", "2025-11-25"), ("mcp-session-id", &session)];
            let noted = http_request("POST", "/mcp", &headers, INITIALIZED);
            self.session = Some(session);
            self.exchange(noted, 202).await?;
        }
        self.echo().await.map(drop)
    }

    /// Sends the next request of the mix, checks its response, and returns its kind.
    pub(super) async fn call(&mut self) -> Result<usize> {
        self.turn += 1;
        // The next request polls the created task.
        if let Some(task) = self.task.take() {
            return self.look(task).await;
        }
        // The other kinds are spread between the plain calls.
        match self.turn % TURNS {
            0 | 10 => self.make().await,
            4 | 14 | 18 => self.count().await,
            6 | 16 => self.list().await,
            _ => self.echo().await,
        }
    }

    async fn echo(&mut self) -> Result<usize> {
        let (request, kind) = match &self.session {
            Some(session) => {
                let headers = [("mcp-protocol-version", "2025-11-25"), ("mcp-session-id", session)];
                (http_request("POST", "/mcp", &headers, &legacy_call()), LEGACY)
            }
            None => (http_request("POST", "/mcp", MODERN_CALL_HEADERS, &modern_call()), ECHO),
        };
        let body = self.exchange(request, 200).await?;
        has(&body, TEXT)?;
        Ok(kind)
    }

    async fn count(&mut self) -> Result<usize> {
        let request = http_request("POST", "/mcp", COUNT_HEADERS, &count_call(STEPS));
        let body = self.exchange(request, 200).await?;
        has(&body, "counted to 5")?;
        let told = memmem::find_iter(&body, b"notifications/progress").count();
        ensure!(told == STEPS as usize, "{told} notifications instead of {STEPS}");
        Ok(PROGRESS)
    }

    async fn list(&mut self) -> Result<usize> {
        let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/list")];
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
        let body = self.exchange(http_request("POST", "/mcp", &headers, body), 200).await?;
        has(&body, r#""inputSchema""#)?;
        Ok(LIST)
    }

    async fn make(&mut self) -> Result<usize> {
        let headers: Vec<_> = CREATE_TASK_HEADERS
            .iter()
            .map(|(name, value)| (*name, if *name == "mcp-name" { "later" } else { *value }))
            .collect();
        let request = http_request("POST", "/mcp", &headers, &create_task_of("later"));
        let body = self.exchange(request, 200).await?;
        let at = memmem::find(&body, br#""taskId":""#).context("not a task")? + 10;
        let id = body[at..].split(|byte| *byte == b'"').next().unwrap_or_default();
        self.task = Some(str::from_utf8(id)?.to_owned());
        Ok(TASK)
    }

    async fn look(&mut self, task: String) -> Result<usize> {
        let body = self.exchange(get_task(&task), 200).await?;
        match memmem::find(&body, br#""status":"completed""#) {
            Some(_) => has(&body, TEXT)?,
            // Polled again in the next turn.
            None => {
                has(&body, r#""status":"working""#)?;
                self.task = Some(task);
            }
        }
        Ok(POLL)
    }

    /// Sends a request and reads its response, which must have this status; leaves all bytes in
    /// `got`.
    async fn exchange(&mut self, request: Vec<u8>, status: u16) -> Result<Vec<u8>> {
        self.stream.write_all(&request).await.context("could not send")?;
        self.got.clear();
        loop {
            if self.stream.read_buf(&mut self.got).await.context("could not read")? == 0 {
                bail!("the server closed the connection");
            }
            let Some(head) = Head::read(&self.got)? else { continue };
            let Some(body) = head.body(&self.got) else { continue };
            ensure!(
                head.status == status,
                "response {}: {}",
                head.status,
                String::from_utf8_lossy(&body)
            );
            return Ok(body.into_owned());
        }
    }
}

fn has(body: &[u8], part: &str) -> Result<()> {
    let is_there = memmem::find(body, part.as_bytes()).is_some();
    ensure!(is_there, "no `{part}` in {}", String::from_utf8_lossy(body));
    Ok(())
}
