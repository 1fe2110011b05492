//! A minimal HTTP/1.1 client: many persistent connections, one thread, epoll.
//!
//! The client must be faster than the server, otherwise the idle time of the server is measured
//! too.

use std::{
    borrow::Cow,
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use memchr::memmem;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};

use super::{Expected, Generator};
use crate::messages::{FIRST_ID, Numbered, TEXT, next_id};

/// Response timeout. Only a hanging server reaches it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Maximum size of a response.
const LONGEST: usize = 64 << 20;

/// Connections to one server.
pub(crate) struct Load {
    pub(super) epoll: OwnedFd,
    pub(super) connections: Vec<Connection>,
    pub(super) ready: Vec<Event>,
}

impl Load {
    /// Connects once per request and makes each call once.
    pub(crate) fn open(address: SocketAddr, requests: Vec<Vec<u8>>) -> Result<Self> {
        Self::telling(address, requests, TEXT, 0)
    }

    /// The same for calls with another text and this many notifications.
    pub(crate) fn telling(
        address: SocketAddr,
        requests: Vec<Vec<u8>>,
        text: &str,
        notifications: usize,
    ) -> Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let mut connections = Vec::with_capacity(requests.len());
        for (index, request) in requests.into_iter().enumerate() {
            let connection = Connection::open(address, request, text, notifications)?;
            epoll::add(&epoll, &connection.stream, event_data(index), EventFlags::IN)?;
            connections.push(connection);
        }
        let ready = Vec::with_capacity(connections.len());
        Ok(Self { epoll, connections, ready })
    }

    /// The body of the server's response.
    pub(crate) fn answer(&self) -> &[u8] {
        self.connections.first().map_or(&[], |connection| connection.expected.bytes())
    }

    /// Sends the next request of a connection, as far as the socket accepts it.
    pub(super) fn begin(&mut self, index: usize) -> Result<()> {
        let connection = &mut self.connections[index];
        if connection.is_closed {
            epoll::delete(&self.epoll, &connection.stream)?;
            connection.stream = connect(connection.address)?;
            connection.stream.set_nonblocking(true)?;
            connection.is_closed = false;
            epoll::add(&self.epoll, &connection.stream, event_data(index), EventFlags::IN)?;
        }
        connection.next();
        if !connection.send()? {
            let both = EventFlags::IN | EventFlags::OUT;
            epoll::modify(&self.epoll, &connection.stream, event_data(index), both)?;
        }
        Ok(())
    }

    /// Continues the call of a connection. Returns `true` when its response is complete.
    pub(super) fn go_on(&mut self, index: usize) -> Result<bool> {
        let connection = &mut self.connections[index];
        if connection.sent < connection.request.bytes().len() {
            if connection.send()? {
                epoll::modify(&self.epoll, &connection.stream, event_data(index), EventFlags::IN)?;
            }
            return Ok(false);
        }
        connection.receive()
    }
}

impl Generator for Load {
    /// Calls on all connections for `time` and counts the responses.
    fn run(&mut self, time: Duration) -> Result<u64> {
        let end = Instant::now() + time;
        for index in 0..self.connections.len() {
            self.begin(index)?;
        }
        let (mut waiting, mut answered) = (self.connections.len(), 0);
        while waiting > 0 {
            self.ready.clear();
            let patience = PATIENCE.try_into()?;
            epoll::wait(
                &self.epoll,
                rustix::buffer::spare_capacity(&mut self.ready),
                Some(&patience),
            )?;
            ensure!(!self.ready.is_empty(), "{waiting} calls got no response within {PATIENCE:?}");
            let go_on = Instant::now() < end;
            for place in 0..self.ready.len() {
                let index = self.ready[place].data.u64() as usize;
                if !self.go_on(index)? {
                    continue;
                }
                answered += 1;
                match go_on {
                    true => self.begin(index)?,
                    false => waiting -= 1,
                }
            }
        }
        Ok(answered)
    }
}

fn event_data(index: usize) -> EventData {
    EventData::new_u64(index as u64)
}

#[derive(Debug)]
pub(super) struct Connection {
    address: SocketAddr,
    stream: TcpStream,
    request: Numbered,
    /// Number of sent bytes of the request.
    sent: usize,
    expected: Expected,
    id: u32,
    buffer: Vec<u8>,
    filled: usize,
    /// The server has announced that it closes the connection.
    is_closed: bool,
}

impl Connection {
    fn open(
        address: SocketAddr,
        request: Vec<u8>,
        text: &str,
        notifications: usize,
    ) -> Result<Self> {
        let mut stream = connect(address)?;
        let answer = exchange(&mut stream, &request)?;
        ensure!(answer.status == 200, "the server responded {}: {}", answer.status, answer.text());
        let is_closed = header(&answer.head, "connection")
            .is_some_and(|value| value.eq_ignore_ascii_case(b"close"));
        stream.set_nonblocking(true)?;
        let request = Numbered::new(request).context("the request has no ID")?;
        let expected = Expected::read(&answer.body, text, notifications)?;
        let sent = request.bytes().len();
        let buffer = vec![0; 16 << 10];
        Ok(Self {
            address,
            stream,
            request,
            sent,
            expected,
            id: FIRST_ID,
            buffer,
            filled: 0,
            is_closed,
        })
    }

    /// Prepares the next request.
    fn next(&mut self) {
        self.id = next_id(self.id);
        self.request.set(self.id);
        self.expected.set(self.id);
        self.sent = 0;
    }

    /// Continues sending. Returns `true` when the whole request is sent.
    fn send(&mut self) -> Result<bool> {
        match self.stream.write(&self.request.bytes()[self.sent..]) {
            Ok(sent) => self.sent += sent,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
        Ok(self.sent == self.request.bytes().len())
    }

    /// Continues reading. Returns `true` when the expected response is complete.
    fn receive(&mut self) -> Result<bool> {
        if self.filled == self.buffer.len() {
            ensure!(self.filled < LONGEST, "a response is longer than {LONGEST} bytes");
            self.buffer.resize(self.filled * 2, 0);
        }
        match self.stream.read(&mut self.buffer[self.filled..]) {
            Ok(0) => bail!("the server closed a connection"),
            Ok(read) => self.filled += read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        let got = &self.buffer[..self.filled];
        let Some(head) = Head::read(got)? else { return Ok(false) };
        let Some(body) = head.body(got) else { return Ok(false) };
        if head.status != 200 || !self.expected.is(&body) {
            bail!("response {}: {}", head.status, String::from_utf8_lossy(&body));
        }
        self.is_closed = head.closes;
        self.filled = 0;
        Ok(true)
    }
}

/// Connects a blocking socket.
pub(crate) fn connect(address: SocketAddr) -> Result<TcpStream> {
    let stream = TcpStream::connect(address).context("could not connect to the server")?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// A whole response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: Vec<u8>,
    body: Vec<u8>,
}

impl Answer {
    /// A header's value.
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        header(&self.head, name).map(|value| String::from_utf8_lossy(value).into_owned())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Sends a request and waits for the whole response.
pub(crate) fn exchange(stream: &mut TcpStream, request: &[u8]) -> Result<Answer> {
    stream.write_all(request)?;
    let (head, mut got) = read_head(stream)?;
    let body = loop {
        match head.body(&got) {
            Some(body) => break body.into_owned(),
            None => read_more(stream, &mut got)?,
        }
    };
    got.truncate(head.end);
    Ok(Answer { status: head.status, head: got, body })
}

/// Sends a request whose response is a stream, and waits for its head.
pub(crate) fn open_stream(stream: &mut TcpStream, request: &[u8]) -> Result<()> {
    stream.write_all(request)?;
    let (head, got) = read_head(stream)?;
    ensure!(head.status == 200, "no stream was opened: {}", String::from_utf8_lossy(&got));
    Ok(())
}

fn read_head(stream: &mut TcpStream) -> Result<(Head, Vec<u8>)> {
    let mut got = Vec::new();
    loop {
        read_more(stream, &mut got)?;
        if let Some(head) = Head::read(&got)? {
            return Ok((head, got));
        }
    }
}

fn read_more(stream: &mut TcpStream, got: &mut Vec<u8>) -> Result<()> {
    let mut chunk = [0; 16 << 10];
    let read = stream.read(&mut chunk)?;
    ensure!(read > 0, "the server closed a connection");
    got.extend_from_slice(&chunk[..read]);
    Ok(())
}

/// The head of a response.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) status: u16,
    /// Offset of the body.
    end: usize,
    /// Length of the body; 0 if the head does not have it.
    length: usize,
    chunked: bool,
    closes: bool,
}

impl Head {
    /// Parses a head. Returns `None` if it is incomplete.
    pub(crate) fn read(bytes: &[u8]) -> Result<Option<Self>> {
        let Some(end) = memmem::find(bytes, b"\r\n\r\n") else { return Ok(None) };
        let head = &bytes[..end + 2];
        let status = head.strip_prefix(b"HTTP/1.1 ").and_then(|rest| number(rest.get(..3)?));
        let status =
            status.with_context(|| format!("not HTTP: {}", String::from_utf8_lossy(head)))?;
        let length = header(head, "content-length").and_then(number);
        let chunked = length.is_none()
            && header(head, "transfer-encoding")
                .is_some_and(|value| value.eq_ignore_ascii_case(b"chunked"));
        let closes =
            header(head, "connection").is_some_and(|value| value.eq_ignore_ascii_case(b"close"));
        let length = length.unwrap_or(0);
        Ok(Some(Self { status: status as u16, end: end + 4, length, chunked, closes }))
    }

    /// Returns the body. `got` starts with the head. Returns `None` if the body is incomplete.
    pub(crate) fn body<'b>(&self, got: &'b [u8]) -> Option<Cow<'b, [u8]>> {
        let rest = &got[self.end..];
        if !self.chunked {
            return rest.get(..self.length).map(Cow::Borrowed);
        }
        // Only one response is in flight, so the last chunk is at the end.
        let is_whole = rest.ends_with(b"\r\n0\r\n\r\n") || rest == b"0\r\n\r\n";
        is_whole.then(|| Cow::Owned(joined(rest)))
    }
}

/// Joins the content of chunks.
fn joined(mut chunks: &[u8]) -> Vec<u8> {
    let mut whole = Vec::with_capacity(chunks.len());
    while let Some(end) = memmem::find(chunks, b"\r\n") {
        let size = str::from_utf8(&chunks[..end]).ok();
        let size = size.and_then(|size| usize::from_str_radix(size, 16).ok()).unwrap_or(0);
        let Some(chunk) = chunks.get(end + 2..end + 2 + size).filter(|_| size > 0) else { break };
        whole.extend_from_slice(chunk);
        chunks = chunks.get(end + 4 + size..).unwrap_or_default();
    }
    whole
}

fn header<'h>(head: &'h [u8], name: &str) -> Option<&'h [u8]> {
    memchr::memchr_iter(b'\n', head).find_map(|at| {
        let line = &head[at + 1..];
        let (found, rest) = line.split_at_checked(name.len())?;
        let value =
            rest.strip_prefix(b":").filter(|_| found.eq_ignore_ascii_case(name.as_bytes()))?;
        Some(value[..memchr::memchr(b'\r', value)?].trim_ascii())
    })
}

fn number(digits: &[u8]) -> Option<usize> {
    str::from_utf8(digits).ok()?.parse().ok()
}
