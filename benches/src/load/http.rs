//! HTTP/1.1, as little of it as answers need: many kept connections, one thread, epoll.
//!
//! Whoever asks must be faster than who answers, or the server's sleeping is measured as well.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use memchr::memmem;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};

use super::template;
use crate::messages::{FIRST_ID, Numbered, next_id};

/// How long an answer may take. Only a server that hangs takes so long.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// Connections that ask the same server.
pub(crate) struct Load {
    epoll: OwnedFd,
    connections: Vec<Connection>,
    ready: Vec<Event>,
}

impl Load {
    /// Connects, once for each request, and makes each call once.
    pub(crate) fn open(address: SocketAddr, requests: Vec<Vec<u8>>) -> Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let mut connections = Vec::with_capacity(requests.len());
        for (index, request) in requests.into_iter().enumerate() {
            let connection = Connection::open(address, request)?;
            epoll::add(
                &epoll,
                &connection.stream,
                EventData::new_u64(index as u64),
                EventFlags::IN,
            )?;
            connections.push(connection);
        }
        let ready = Vec::with_capacity(connections.len());
        Ok(Self { epoll, connections, ready })
    }

    /// The body that the server answers with.
    pub(crate) fn answer(&self) -> &[u8] {
        self.connections.first().map_or(&[], |connection| connection.answer.bytes())
    }

    /// Calls for a while on all connections, and says how many calls were answered. Nothing is
    /// under way afterwards.
    pub(crate) fn run(&mut self, time: Duration) -> Result<u64> {
        let end = Instant::now() + time;
        for connection in &mut self.connections {
            connection.send()?;
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
            ensure!(
                !self.ready.is_empty(),
                "{waiting} calls were not answered within {PATIENCE:?}"
            );
            let go_on = Instant::now() < end;
            for event in &self.ready {
                let connection = &mut self.connections[event.data.u64() as usize];
                if !connection.receive()? {
                    continue;
                }
                answered += 1;
                match go_on {
                    true => connection.send()?,
                    false => waiting -= 1,
                }
            }
        }
        Ok(answered)
    }
}

#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    request: Numbered,
    answer: Numbered,
    id: u32,
    buffer: Box<[u8]>,
    filled: usize,
}

impl Connection {
    fn open(address: SocketAddr, request: Vec<u8>) -> Result<Self> {
        let mut stream = connect(address)?;
        let answer = exchange(&mut stream, &request)?;
        ensure!(answer.status == 200, "the server answered {}: {}", answer.status, answer.text());
        stream.set_nonblocking(true)?;
        let request = Numbered::new(request).context("the request has no id")?;
        let buffer = vec![0; 16 << 10].into();
        Ok(Self {
            stream,
            request,
            answer: template(&answer.body)?,
            id: FIRST_ID,
            buffer,
            filled: 0,
        })
    }

    fn send(&mut self) -> Result<()> {
        self.id = next_id(self.id);
        self.request.set(self.id);
        self.answer.set(self.id);
        // The buffer is empty: what was sent before has been answered.
        let sent = self.stream.write(self.request.bytes())?;
        ensure!(sent == self.request.bytes().len(), "the system took only a part of a request");
        Ok(())
    }

    /// Reads on; `true` when the answer is there, and is the right one.
    fn receive(&mut self) -> Result<bool> {
        match self.stream.read(&mut self.buffer[self.filled..]) {
            Ok(0) => bail!("the server closed a connection"),
            Ok(read) => self.filled += read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        let got = &self.buffer[..self.filled];
        let Some(head) = Head::read(got)? else { return Ok(false) };
        if self.filled < head.end + head.length {
            return Ok(false);
        }
        let body = &got[head.end..];
        if head.status != 200 || body != self.answer.bytes() {
            bail!("answered {}: {}", head.status, String::from_utf8_lossy(body));
        }
        self.filled = 0;
        Ok(true)
    }
}

/// Connects, for calls that block.
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

/// Sends a request and waits for all of the response.
pub(crate) fn exchange(stream: &mut TcpStream, request: &[u8]) -> Result<Answer> {
    stream.write_all(request)?;
    let (head, mut got) = read_head(stream)?;
    while got.len() < head.end + head.length {
        read_more(stream, &mut got)?;
    }
    let body = got.split_off(head.end);
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
    let mut chunk = [0; 4096];
    let read = stream.read(&mut chunk)?;
    ensure!(read > 0, "the server closed a connection");
    got.extend_from_slice(&chunk[..read]);
    Ok(())
}

/// The head of a response.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) status: u16,
    /// Where the body begins.
    pub(super) end: usize,
    /// How long the body is; 0 if the head does not say.
    pub(super) length: usize,
}

impl Head {
    /// Reads a head; `None` if it is not all there yet.
    pub(super) fn read(bytes: &[u8]) -> Result<Option<Self>> {
        let Some(end) = memmem::find(bytes, b"\r\n\r\n") else { return Ok(None) };
        let head = &bytes[..end + 2];
        let status = head.strip_prefix(b"HTTP/1.1 ").and_then(|rest| number(rest.get(..3)?));
        let status =
            status.with_context(|| format!("not HTTP: {}", String::from_utf8_lossy(head)))?;
        let length = header(head, "content-length").and_then(number).unwrap_or(0);
        Ok(Some(Self { status: status as u16, end: end + 4, length }))
    }
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
