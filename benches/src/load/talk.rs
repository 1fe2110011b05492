//! Conversations over HTTP, in which the next request depends on the last response. Many persistent
//! connections, one thread, epoll.

use std::{
    borrow::Cow,
    collections::VecDeque,
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use anyhow::{Result, bail, ensure};
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};

use super::{
    Generator,
    http::{Head, PATIENCE, connect},
};

/// The client side of a conversation.
pub(crate) trait Talk {
    /// Returns the next action after a response; `None` at the start.
    fn next(&mut self, answer: Option<&[u8]>) -> Result<Say>;
}

/// The next action.
pub(crate) enum Say {
    /// Sends this immediately.
    Now(Vec<u8>),
    /// Sends this after the pause.
    Later(Vec<u8>),
    /// Ends the conversation; another one starts.
    Done,
}

/// Connections to one server.
pub(crate) struct Talks<T> {
    epoll: OwnedFd,
    connections: Vec<Connection<T>>,
    ready: Vec<Event>,
    /// Pausing connections with the end of their pause, in order.
    pausing: VecDeque<(Instant, usize)>,
    pause: Duration,
}

struct Connection<T> {
    stream: TcpStream,
    talk: T,
    request: Vec<u8>,
    buffer: Box<[u8]>,
    filled: usize,
}

impl<T: Talk> Talks<T> {
    pub(crate) fn open(
        address: SocketAddr,
        pause: Duration,
        talks: impl Iterator<Item = T>,
    ) -> Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let mut connections = Vec::new();
        for (index, talk) in talks.enumerate() {
            let stream = connect(address)?;
            stream.set_nonblocking(true)?;
            epoll::add(&epoll, &stream, EventData::new_u64(index as u64), EventFlags::IN)?;
            let buffer = vec![0; 16 << 10].into();
            connections.push(Connection { stream, talk, request: Vec::new(), buffer, filled: 0 });
        }
        let ready = Vec::with_capacity(connections.len());
        Ok(Self { epoll, connections, ready, pausing: VecDeque::new(), pause })
    }

    /// Continues after a response, or starts. Returns `true` if the conversation is finished.
    fn step(&mut self, index: usize, answered: bool) -> Result<bool> {
        let connection = &mut self.connections[index];
        let body = match answered {
            true => Some(body(&connection.buffer[..connection.filled])?),
            false => None,
        };
        match connection.talk.next(body.as_deref())? {
            Say::Now(request) => {
                connection.request = request;
                connection.filled = 0;
                connection.send()?;
            }
            Say::Later(request) => {
                connection.request = request;
                connection.filled = 0;
                self.pausing.push_back((Instant::now() + self.pause, index));
            }
            Say::Done => {
                connection.filled = 0;
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl<T: Talk> Generator for Talks<T> {
    /// Talks on all connections for `time` and counts the finished conversations.
    fn run(&mut self, time: Duration) -> Result<u64> {
        let end = Instant::now() + time;
        let (mut talking, mut done) = (self.connections.len(), 0);
        for index in 0..self.connections.len() {
            self.step(index, false)?;
        }
        while talking > 0 {
            self.ready.clear();
            let due = self.pausing.front().map(|(due, _)| *due);
            let patience =
                due.map_or(PATIENCE, |due| due.saturating_duration_since(Instant::now()));
            epoll::wait(
                &self.epoll,
                rustix::buffer::spare_capacity(&mut self.ready),
                Some(&patience.try_into()?),
            )?;
            ensure!(due.is_some() || !self.ready.is_empty(), "no response within {PATIENCE:?}");
            let now = Instant::now();
            while let Some((due, index)) = self.pausing.front().copied()
                && due <= now
            {
                self.pausing.pop_front();
                self.connections[index].send()?;
            }
            for place in 0..self.ready.len() {
                let index = self.ready[place].data.u64() as usize;
                if !self.connections[index].receive()? || !self.step(index, true)? {
                    continue;
                }
                done += 1;
                match now < end {
                    true => drop(self.step(index, false)?),
                    false => talking -= 1,
                }
            }
        }
        Ok(done)
    }
}

impl<T> Connection<T> {
    fn send(&mut self) -> Result<()> {
        // The socket buffer is empty, because the previous request got its response.
        let sent = self.stream.write(&self.request)?;
        ensure!(sent == self.request.len(), "the socket accepted only a part of a request");
        Ok(())
    }

    /// Continues reading. Returns `true` when the response is complete.
    fn receive(&mut self) -> Result<bool> {
        match self.stream.read(&mut self.buffer[self.filled..]) {
            Ok(0) => bail!("the server closed a connection"),
            Ok(read) => self.filled += read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        let got = &self.buffer[..self.filled];
        Ok(Head::read(got)?.is_some_and(|head| head.body(got).is_some()))
    }
}

/// Returns the body of a whole response.
fn body(got: &[u8]) -> Result<Cow<'_, [u8]>> {
    let head = Head::read(got)?.filter(|head| head.status == 200);
    match head.and_then(|head| head.body(got)) {
        Some(body) => Ok(body),
        None => bail!("answered: {}", String::from_utf8_lossy(got)),
    }
}
