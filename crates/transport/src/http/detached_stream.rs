//! Long-lived streams that are detached from hyper.
//!
//! hyper keeps two buffers of 8 KiB per connection. A server can have one subscription per client,
//! and most of them are idle. This module therefore takes the connection of such a stream from
//! hyper and writes the stream itself in chunked encoding. The connection closes with the stream.
//! Input is read only to detect that the client disconnected.

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

/// Maximum bytes that a client may send on a detached connection before the server closes it.
const UNREAD: usize = 64 << 10;

/// State of a connection that hyper's service and the connection task share.
#[derive(Default)]
pub(super) struct Seat {
    /// Response that the connection task writes instead of hyper.
    left: Mutex<Option<Response<Body>>>,
    /// Whether responses can no longer be detached.
    is_closed: AtomicBool,
    /// Whether hyper has written bytes that the socket has not sent.
    is_behind: AtomicBool,
}

impl Seat {
    /// Returns a response to hyper, or stores a long-lived stream for the connection task. A stored
    /// response never reaches hyper.
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

    /// Leaves all further responses to hyper. Returns whether a response was stored before.
    pub(super) fn close(&self) -> bool {
        self.is_closed.store(true, Ordering::Relaxed);
        self.is_taken()
    }

    /// Takes the stored response, to write it to `socket`.
    pub(super) fn take(&self, socket: TcpStream, write_timeout: Duration) -> Option<HeldStream> {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let head = head(&left);
        let events = left.into_body().into_events()?;
        let counted = Bytes::new();
        let (events, stalled) = (Some(events), Stalled::new(write_timeout));
        Some(HeldStream { socket, events, out: head, counted, stalled, unread: UNREAD })
    }
}

/// Formats the head of a response in chunked encoding.
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

/// Future that writes events until the stream ends or the client disconnects.
pub(super) struct HeldStream {
    socket: TcpStream,
    events: Option<Box<Events>>,
    /// Bytes to send next.
    out: Bytes,
    /// The event bytes in `out`. Their charge is released when they are dropped.
    counted: Bytes,
    stalled: Stalled,
    /// Number of input bytes that are still accepted.
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

    /// Completes when the client disconnects.
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
                tracing::debug!(%error, "closing a stream: writing failed");
                Poll::Ready(())
            }
            Poll::Pending => self.poll_gone(cx),
        }
    }
}

fn chunk(bytes: &[u8]) -> Bytes {
    let mut size = String::new();
    // Writing to a string does not fail.
    let _ = write!(size, "{:x}\r\n", bytes.len());
    [size.as_bytes(), bytes, b"\r\n"].concat().into()
}

/// Socket that records whether all written bytes have been sent.
pub(super) struct Watched<'a> {
    pub(super) socket: TcpStream,
    pub(super) seat: &'a Seat,
    pub(super) stalled: Stalled,
}

/// Timeout for a client that reads nothing. Its pending bytes occupy memory.
pub(super) struct Stalled {
    timeout: Duration,
    // The timer is created when a write blocks, which is rare.
    timer: Option<Pin<Box<Sleep>>>,
}

impl Stalled {
    pub(super) fn new(timeout: Duration) -> Self {
        Self { timeout, timer: None }
    }

    /// Starts the timer if a write blocks, and stops it otherwise.
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
