//! POSTs over a socket, and responses that are read as they come: a server may ask in the middle
//! of one, and goes on when it has been answered.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::Child,
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::Era;

/// Where a server listens, and what it knows us by.
pub(super) struct Http {
    era: Era,
    address: String,
    session: Option<String>,
}

impl Http {
    /// Waits until the server has said where it listens.
    pub(super) fn to(server: &mut Child, era: Era) -> Result<Self> {
        let stderr = server.stderr.take().context("no stderr")?;
        let mut talk = BufReader::new(stderr).lines().map_while(Result::ok);
        let address = talk.find_map(|line| {
            line.strip_prefix("listening on http://")?.strip_suffix("/mcp").map(str::to_owned)
        });
        // The rest is read too: a program whose talk nobody reads cannot go on talking.
        thread::spawn(move || talk.for_each(drop));
        let address = address.context("the server did not say where it listens")?;
        Ok(Self { era, address, session: None })
    }

    /// Posts a message. The response brings what the server says to it.
    pub(super) fn post(&mut self, message: &Value) -> Result<Response> {
        let body = message.to_string();
        let (address, length, headers) = (&self.address, body.len(), self.headers(message));
        let response = Response::to(
            address,
            &format!(
                "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
                 Accept: application/json, text/event-stream\r\nConnection: close\r\n\
                 Content-Length: {length}\r\n{headers}\r\n{body}"
            ),
        )?;
        if let Some(issued) = response.header("mcp-session-id") {
            self.session = Some(issued.to_owned());
        }
        Ok(response)
    }

    /// Posts a message that needs no answer: a notification, or an answer of ours.
    pub(super) fn tell(&mut self, message: &Value) -> Result<()> {
        let response = self.post(message)?;
        let head = &response.head;
        ensure!(head.starts_with("HTTP/1.1 202"), "{message} was not accepted: {head}");
        Ok(())
    }

    /// Opens the stream on which a session hears what belongs to none of its requests.
    pub(super) fn listen(&self) -> Result<Response> {
        let (address, session) = (&self.address, self.session.as_deref().unwrap_or_default());
        Response::to(
            address,
            &format!(
                "GET /mcp HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n\
                 Mcp-Session-Id: {session}\r\n\r\n"
            ),
        )
    }

    /// 2026-07-28 repeats parts of the body in headers; before, there are sessions.
    fn headers(&self, message: &Value) -> String {
        let line = |name: &str, value: Option<&str>| {
            value.map(|value| format!("{name}: {value}\r\n")).unwrap_or_default()
        };
        match self.era {
            Era::Modern => {
                let params = &message["params"];
                let name = ["name", "uri", "taskId"].iter().find_map(|key| params[key].as_str());
                let version = line("MCP-Protocol-Version", Some("2026-07-28"));
                version + &line("Mcp-Method", message["method"].as_str()) + &line("Mcp-Name", name)
            }
            Era::Legacy => line("Mcp-Session-Id", self.session.as_deref()),
        }
    }
}

/// A response that is still coming.
pub(super) struct Response {
    head: String,
    body: BufReader<Body>,
}

impl Response {
    fn to(address: &str, request: &str) -> Result<Self> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        stream.write_all(request.as_bytes())?;
        let mut stream = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            ensure!(stream.read_line(&mut head)? > 0, "no end of the response's head: {head}");
        }
        let length = header(&head, "content-length").map(str::parse).transpose()?;
        let body = match header(&head, "transfer-encoding") {
            Some(_) => Body { stream, left: 0, chunks: true },
            None => Body { stream, left: length.unwrap_or(u64::MAX), chunks: false },
        };
        Ok(Self { head, body: BufReader::new(body) })
    }

    /// Waits for the next message: an event, or all that there is.
    pub(super) fn message(&mut self) -> Result<Value> {
        let is_stream =
            self.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
        if !is_stream {
            let mut text = String::new();
            self.body.read_to_string(&mut text)?;
            return serde_json::from_str(&text)
                .with_context(|| format!("no JSON in the answer: {}{text}", self.head));
        }
        loop {
            let mut line = String::new();
            if self.body.read_line(&mut line)? == 0 {
                bail!("the stream ended before the answer came");
            }
            // Comments, ids and events without data are not for us.
            let data = line.strip_prefix("data:").unwrap_or_default().trim();
            if !data.is_empty() {
                return serde_json::from_str(data)
                    .with_context(|| format!("no JSON in the event: {data}"));
            }
        }
    }

    fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (found, value) = line.split_once(": ")?;
        found.eq_ignore_ascii_case(name).then_some(value)
    })
}

/// The bytes of a response, without the lengths of its chunks.
struct Body {
    stream: BufReader<TcpStream>,
    /// How many bytes are left, of this chunk or of all.
    left: u64,
    chunks: bool,
}

impl Read for Body {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && self.chunks {
            self.left = self.next_chunk()?;
            // The last chunk is an empty one.
            self.chunks = self.left > 0;
        }
        let read = (&mut self.stream).take(self.left).read(out)?;
        self.left -= read as u64;
        Ok(read)
    }
}

impl Body {
    fn next_chunk(&mut self) -> io::Result<u64> {
        let mut line = String::new();
        // An empty line ends the chunk before.
        while line.trim().is_empty() {
            line.clear();
            if self.stream.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        u64::from_str_radix(line.trim(), 16).map_err(io::Error::other)
    }
}
