//! Streams that are held open for long, taken off hyper.
//!
//! hyper keeps two buffers of 8 KiB for each connection, whatever is said on it. A server has as many
//! subscriptions open as it has clients, and each says something once in a while. So a connection on
//! which such a stream begins is taken back, and the stream is written here: in chunks, as hyper
//! would, and the connection ends with it.
//!
//! What comes in meanwhile is only looked at to learn that the client has gone.

use std::{
    convert::Infallible,
    fmt::Write as _,
    future::{Future, pending},
    io::{self, IoSlice},
    pin::Pin,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::{Duration, SystemTime},
};

use bytes::{Buf, Bytes};
use http::{Response, Version};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Sleep, sleep},
};

use super::{Body, body::Events};

/// Whoever sends this much on a connection that says nothing but events is no client of ours.
const UNREAD: usize = 64 << 10;

/// What hyper and the connection's owner both see of a connection.
#[derive(Default)]
pub(super) struct Seat {
    /// The response that hyper is not to write.
    left: Mutex<Option<Response<Body>>>,
    /// Nobody looks for one any more.
    is_closed: AtomicBool,
    /// Something that hyper has written has not been sent yet.
    is_behind: AtomicBool,
}

impl Seat {
    /// Lets hyper write a response, unless it is one that is better written here: then it never hears
    /// of it.
    pub(super) async fn answer(
        &self,
        response: Result<Response<Body>, Infallible>,
        version: Version,
    ) -> Result<Response<Body>, Infallible> {
        let Ok(response) = response;
        let can_be_taken = version == Version::HTTP_11
            && !self.is_behind.load(Ordering::Relaxed)
            && !self.is_closed.load(Ordering::Relaxed);
        if !can_be_taken || !response.body().is_held() {
            return Ok(response);
        }
        *self.left.lock().unwrap_or_else(PoisonError::into_inner) = Some(response);
        pending().await
    }

    pub(super) fn is_taken(&self) -> bool {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// From now on hyper writes everything. Whether something was left before that.
    pub(super) fn close(&self) -> bool {
        self.is_closed.store(true, Ordering::Relaxed);
        self.is_taken()
    }

    /// What was left here, to be written to this socket.
    pub(super) fn take(&self, socket: TcpStream, write_timeout: Duration) -> Option<HeldStream> {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let head = head(&left);
        let events = left.into_body().into_events()?;
        let counted = Bytes::new();
        let (events, stalled) = (Some(events), Stalled::new(write_timeout));
        Some(HeldStream { socket, events, out: head, counted, stalled, unread: UNREAD })
    }
}

/// The head of a response whose length nobody knows yet.
fn head(response: &Response<Body>) -> Bytes {
    let mut head = format!(
        "HTTP/1.1 {}\r\ntransfer-encoding: chunked\r\nconnection: close\r\ndate: {}\r\n",
        response.status(),
        httpdate::fmt_http_date(SystemTime::now()),
    )
    .into_bytes();
    for (name, value) in response.headers() {
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    head.into()
}

/// Writes events until there are no more, or nobody reads them.
pub(super) struct HeldStream {
    socket: TcpStream,
    events: Option<Box<Events>>,
    /// What is to be sent next.
    out: Bytes,
    /// What it was made of, and what is charged for it.
    counted: Bytes,
    stalled: Stalled,
    /// How much may still come in.
    unread: usize,
}

impl HeldStream {
    fn poll_events(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            while !self.out.is_empty() {
                let sent = Pin::new(&mut self.socket).poll_write(cx, &self.out);
                let sent = ready!(self.stalled.watch(cx, sent))?;
                if sent == 0 {
                    return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                }
                self.out.advance(sent);
            }
            self.out = Bytes::new();
            let Some(events) = &mut self.events else {
                return Pin::new(&mut self.socket).poll_shutdown(cx);
            };
            self.counted = Bytes::new();
            self.out = match ready!(events.poll(cx)) {
                Some(bytes) => {
                    let chunk = chunk(&bytes);
                    self.counted = bytes;
                    chunk
                }
                None => {
                    self.events = None;
                    Bytes::from_static(b"0\r\n\r\n")
                }
            };
        }
    }

    /// Ready when the client has gone.
    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut bytes = [0; 256];
        loop {
            let mut read = ReadBuf::new(&mut bytes);
            match ready!(Pin::new(&mut self.socket).poll_read(cx, &mut read)) {
                Ok(()) if (1..=self.unread).contains(&read.filled().len()) => {
                    self.unread -= read.filled().len();
                }
                _ => return Poll::Ready(()),
            }
        }
    }
}

impl Future for HeldStream {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match self.poll_events(cx) {
            Poll::Ready(Ok(())) => Poll::Ready(()),
            Poll::Ready(Err(error)) => {
                tracing::debug!(%error, "a stream ended early");
                Poll::Ready(())
            }
            Poll::Pending => self.poll_gone(cx),
        }
    }
}

fn chunk(bytes: &[u8]) -> Bytes {
    let mut size = String::new();
    // It is a string: this does not fail.
    let _ = write!(size, "{:x}\r\n", bytes.len());
    [size.as_bytes(), bytes, b"\r\n"].concat().into()
}

/// A socket that says whether all that was to be written has been.
pub(super) struct Watched<'a> {
    pub(super) socket: TcpStream,
    pub(super) seat: &'a Seat,
    pub(super) stalled: Stalled,
}

/// Ends a connection whose client reads nothing for too long: what waits for it is held in memory.
pub(super) struct Stalled {
    timeout: Duration,
    // Made when something cannot be sent at once, which is rare.
    timer: Option<Pin<Box<Sleep>>>,
}

impl Stalled {
    pub(super) fn new(timeout: Duration) -> Self {
        Self { timeout, timer: None }
    }

    /// Looks at how a write went.
    fn watch(
        &mut self,
        cx: &mut Context<'_>,
        sent: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if sent.is_ready() {
            self.timer = None;
            return sent;
        }
        let timeout = self.timeout;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(timeout)));
        ready!(timer.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl Watched<'_> {
    fn wrote(&self, wanted: usize, sent: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        let is_behind = !matches!(sent, Poll::Ready(Ok(sent)) if sent == wanted);
        self.seat.is_behind.store(is_behind, Ordering::Relaxed);
        sent
    }
}

impl AsyncRead for Watched<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, buf)
    }
}

impl AsyncWrite for Watched<'_> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let sent = Pin::new(&mut self.socket).poll_write(cx, buf);
        let sent = self.stalled.watch(cx, sent);
        self.wrote(buf.len(), sent)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wanted = bufs.iter().map(|buf| buf.len()).sum();
        let sent = Pin::new(&mut self.socket).poll_write_vectored(cx, bufs);
        let sent = self.stalled.watch(cx, sent);
        self.wrote(wanted, sent)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}
