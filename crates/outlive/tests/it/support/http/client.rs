//! Raw connections, responses and event streams.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{Event, MODERN, Piece, Request, request::Methods, sse::Parser, within};
use crate::support::schema;

/// A TCP connection to a server.
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// The connection ended in the middle of a response.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cut;

/// Status and headers of a response.
#[derive(Clone, Debug)]
struct Head {
    status: u16,
    headers: Vec<(String, String)>,
}

/// Framing of a response body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Length(usize),
    Chunked,
    Ended,
}

/// A whole response.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    head: Head,
    pub(crate) body: Vec<u8>,
    events: Vec<Event>,
}

/// An event stream that is being read.
pub(crate) struct Stream {
    connection: Connection,
    head: Head,
    framing: Framing,
    parser: Parser,
    checks: Checks,
}

/// The version and the requests that messages are validated against.
#[derive(Clone)]
struct Checks {
    version: String,
    methods: Methods,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.expect("the server listens");
        Self { stream, buffer: Vec::new() }
    }

    /// Connects from another local address.
    pub(crate) async fn open_from(address: SocketAddr, from: [u8; 4]) -> std::io::Result<Self> {
        let socket = tokio::net::TcpSocket::new_v4()?;
        socket.bind((from, 0).into())?;
        Ok(Self { stream: socket.connect(address).await?, buffer: Vec::new() })
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        within(self.stream.write_all(bytes)).await.expect("the server reads");
    }

    /// Writes to a server that may have stopped reading.
    pub(crate) async fn try_write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        within(self.stream.write_all(bytes)).await
    }

    /// Sends a request and reads its whole response.
    pub(crate) async fn send(&mut self, request: &Request) -> Response {
        self.write(&request.bytes()).await;
        self.response(request).await
    }

    /// Reads the whole response to a request that was already written.
    pub(crate) async fn response(&mut self, request: &Request) -> Response {
        self.try_response(request).await.expect("a whole response")
    }

    pub(crate) async fn try_response(&mut self, request: &Request) -> Result<Response, Cut> {
        let checks = Checks::of(request);
        let (head, mut framing) = self.head().await?;
        let mut body = Vec::new();
        while let Some(piece) = self.piece(&mut framing).await? {
            body.extend_from_slice(&piece);
        }
        let mut events = Vec::new();
        if head.is_stream() {
            let mut parser = Parser::default();
            parser.push(&body);
            while let Some(piece) = parser.next() {
                let Piece::Event(event) = piece else { continue };
                checks.check_text(&event.data);
                events.push(event);
            }
        } else if head.header("content-type") == Some("application/json") {
            checks.check_text(str::from_utf8(&body).expect("JSON is UTF-8"));
        }
        Ok(Response { head, body, events })
    }

    /// Sends a request whose response is a stream, and leaves the stream open.
    #[track_caller]
    pub(crate) fn open_stream(mut self, request: &Request) -> impl Future<Output = Stream> {
        let caller = std::panic::Location::caller();
        async move {
            self.write(&request.bytes()).await;
            let (head, framing) = self.head().await.expect("a response");
            assert!(head.status == 200 && head.is_stream(), "{caller}: not a stream: {head:?}");
            let checks = Checks::of(request);
            Stream { connection: self, head, framing, parser: Parser::default(), checks }
        }
    }

    /// Sends a request whose response is a stream or one message.
    pub(crate) async fn send_or_open(mut self, request: &Request) -> Result<Stream, Response> {
        self.write(&request.bytes()).await;
        let (head, mut framing) = self.head().await.expect("a response");
        let checks = Checks::of(request);
        if head.is_stream() {
            return Ok(Stream {
                connection: self,
                head,
                framing,
                parser: Parser::default(),
                checks,
            });
        }
        let mut body = Vec::new();
        while let Some(piece) = self.piece(&mut framing).await.expect("a whole response") {
            body.extend_from_slice(&piece);
        }
        checks.check_text(str::from_utf8(&body).expect("JSON is UTF-8"));
        Err(Response { head, body, events: Vec::new() })
    }

    /// Returns the whole response if any part of it has arrived.
    pub(crate) async fn response_if_any(&mut self, request: &Request) -> Option<Response> {
        let mut chunk = vec![0; 4 << 10];
        let read = self.stream.try_read(&mut chunk).ok()?;
        self.buffer.extend_from_slice(&chunk[..read]);
        Some(self.response(request).await)
    }

    /// Waits for the first byte of a response.
    pub(crate) async fn until_something_came(&mut self) {
        let mut byte = [0];
        within(self.stream.read_exact(&mut byte)).await.expect("a response");
        self.buffer.push(byte[0]);
    }

    /// Waits until the server closes the connection, and discards the rest.
    pub(crate) async fn closed(mut self) {
        let mut rest = vec![0; 4096];
        while matches!(within(self.stream.read(&mut rest)).await, Ok(read) if read > 0) {}
    }

    /// Closes only the write direction.
    pub(crate) async fn half_close(&mut self) {
        self.stream.shutdown().await.expect("the connection is open");
    }

    async fn head(&mut self) -> Result<(Head, Framing), Cut> {
        let end = loop {
            if let Some(end) = self.buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                break end;
            }
            self.fill().await?;
        };
        let text: Vec<u8> = self.buffer.drain(..end + 4).collect();
        let text = String::from_utf8(text).expect("our heads are ASCII");
        let mut lines = text.split("\r\n").filter(|line| !line.is_empty());
        let status =
            lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 ")).expect("a status line");
        let status = status[..3].parse().expect("a status");
        let header = |line: &str| {
            let (name, value) = line.split_once(':').expect("a header");
            (name.to_ascii_lowercase(), value.trim().to_owned())
        };
        let head = Head { status, headers: lines.map(header).collect() };
        let framing = match head.header("content-length") {
            Some(length) => Framing::Length(length.parse().expect("a length")),
            None if head.header("transfer-encoding") == Some("chunked") => Framing::Chunked,
            None => Framing::Ended,
        };
        Ok((head, framing))
    }

    /// Returns the next chunk of a body, without chunk headers. `None` is the end of the body.
    async fn piece(&mut self, framing: &mut Framing) -> Result<Option<Vec<u8>>, Cut> {
        let length = match *framing {
            Framing::Ended | Framing::Length(0) => return Ok(None),
            Framing::Length(length) => length,
            Framing::Chunked => {
                let end = loop {
                    if let Some(end) = self.buffer.windows(2).position(|two| two == b"\r\n") {
                        break end;
                    }
                    self.fill().await?;
                };
                let size: Vec<u8> = self.buffer.drain(..end + 2).collect();
                let size = str::from_utf8(&size[..end]).expect("a chunk's size is ASCII");
                usize::from_str_radix(size, 16).expect("a chunk's size")
            }
        };
        let mark = if *framing == Framing::Chunked { 2 } else { 0 };
        while self.buffer.len() < length + mark {
            self.fill().await?;
        }
        let piece: Vec<u8> = self.buffer.drain(..length).collect();
        self.buffer.drain(..mark);
        if mark == 0 || length == 0 {
            *framing = Framing::Ended;
        }
        Ok((length > 0).then_some(piece))
    }

    async fn fill(&mut self) -> Result<(), Cut> {
        let mut chunk = vec![0; 4 << 10];
        match within(self.stream.read(&mut chunk)).await {
            Ok(0) | Err(_) => Err(Cut),
            Ok(read) => {
                self.buffer.extend_from_slice(&chunk[..read]);
                Ok(())
            }
        }
    }
}

impl Head {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn is_stream(&self) -> bool {
        self.header("content-type") == Some("text/event-stream")
    }
}

impl Response {
    pub(crate) fn status(&self) -> u16 {
        self.head.status
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.header(name)
    }

    pub(crate) fn is_stream(&self) -> bool {
        self.head.is_stream()
    }

    /// Status, headers and body, without the `Date` header.
    pub(crate) fn without_date(&self) -> (u16, Vec<(String, String)>, String) {
        let headers = self.head.headers.iter().filter(|(name, _)| name != "date").cloned();
        (self.head.status, headers.collect(), String::from_utf8_lossy(&self.body).into_owned())
    }

    /// Parses the body as one JSON value.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let shown = || format!("{} {:?}", self.status(), String::from_utf8_lossy(&self.body));
        assert_eq!(self.header("content-type"), Some("application/json"), "{}", shown());
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", shown()))
    }

    /// Returns the messages of a stream, in order.
    #[track_caller]
    pub(crate) fn messages(&self) -> Vec<Value> {
        assert!(self.is_stream(), "not a stream: {:?}", self.without_date());
        let full = self.events.iter().filter(|event| !event.data.is_empty());
        full.map(|event| serde_json::from_str(&event.data).expect("events hold JSON")).collect()
    }

    pub(crate) fn events(&self) -> &[Event] {
        &self.events
    }

    /// Returns the result of a call with a JSON response.
    #[track_caller]
    pub(crate) fn result(&self) -> Value {
        let answer = self.json();
        assert!(answer.get("result").is_some(), "{} {answer}", self.status());
        answer["result"].clone()
    }

    /// Returns the text of a tool result.
    #[track_caller]
    pub(crate) fn text(&self) -> String {
        self.result()["content"][0]["text"].as_str().expect("a text").to_owned()
    }
}

impl Stream {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.header(name)
    }

    /// Returns the next event or comment. `None` is the clean end of the stream.
    pub(crate) async fn piece(&mut self) -> Result<Option<Piece>, Cut> {
        loop {
            if let Some(piece) = self.parser.next() {
                if let Piece::Event(event) = &piece {
                    self.checks.check_text(&event.data);
                }
                return Ok(Some(piece));
            }
            match self.connection.piece(&mut self.framing).await? {
                Some(bytes) => self.parser.push(&bytes),
                None => {
                    assert!(self.parser.is_empty(), "an incomplete event at the end of a stream");
                    return Ok(None);
                }
            }
        }
    }

    /// Returns the next event, with or without data. `None` is the end of the stream.
    pub(crate) async fn event(&mut self) -> Option<Event> {
        loop {
            match self.piece().await.expect("the stream continues or ends cleanly") {
                Some(Piece::Event(event)) => return Some(event),
                Some(Piece::Comment) => {}
                None => return None,
            }
        }
    }

    /// Returns the next event with a message, and the message.
    pub(crate) async fn said(&mut self) -> (Event, Value) {
        loop {
            let event = self.event().await.expect("a message, not the end of the stream");
            if !event.data.is_empty() && event.name.as_deref() != Some("endpoint") {
                let message = serde_json::from_str(&event.data).expect("events hold JSON");
                return (event, message);
            }
        }
    }

    /// Returns the next message.
    pub(crate) async fn message(&mut self) -> Value {
        self.said().await.1
    }

    /// Asserts that the server ends the stream without another message.
    #[track_caller]
    pub(crate) fn ended(mut self) -> impl Future<Output = Connection> {
        let caller = std::panic::Location::caller();
        async move {
            while let Some(event) = self.event().await {
                assert!(event.data.is_empty(), "{caller}: the stream continued: {event:?}");
            }
            self.connection
        }
    }

    /// Closes the connection in the middle of the stream.
    pub(crate) fn cut(self) {}
}

impl Checks {
    fn of(request: &Request) -> Self {
        request.note_methods();
        Self { version: request.version.clone(), methods: request.methods.clone() }
    }

    fn check_text(&self, text: &str) {
        match serde_json::from_str(text) {
            Ok(Value::Array(batch)) => batch.iter().for_each(|message| self.check(message)),
            Ok(message) => self.check(&message),
            // An empty event, or the path in the first event of HTTP+SSE.
            Err(_) => assert!(text.is_empty() || text.starts_with('/'), "not JSON: {text}"),
        }
    }

    fn check(&self, message: &Value) {
        let asked = message.get("id").map(Value::to_string);
        let method = asked.and_then(|id| self.methods.lock().unwrap().get(&id).cloned());
        // The response to a handshake follows the negotiated version.
        let agreed = message["result"]["protocolVersion"].as_str();
        let version = agreed.unwrap_or(&self.version);
        schema::check(version, method.as_deref(), message);
        // RPC-13, HTTP26-17: a modern server sends no requests.
        let asks = message.get("method").is_some() && message.get("id").is_some();
        assert!(version != MODERN || !asks, "a request from the server: {message}");
        if let Some(code) = message["error"]["code"].as_i64() {
            check_code(version, code);
        }
    }
}

/// RPC-17, RPC-19, RPC-20: asserts that reserved error codes have their defined meaning.
fn check_code(version: &str, code: i64) {
    let known = match code {
        -32700 | -32603..=-32600 => true,
        -32022..=-32020 => version == MODERN,
        -32002 => version != MODERN,
        code => !(-32768..=-32000).contains(&code),
    };
    assert!(known, "{code} has no meaning in {version}");
}
