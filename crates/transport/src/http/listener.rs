//! Listener: binds an address, accepts connections and shuts down gracefully.

use std::{
    fmt,
    future::{Future, poll_fn},
    io,
    net::{IpAddr, SocketAddr},
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::{Duration, Instant},
};

use http::Request;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use outlive_protocol::Endpoint;
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream, ToSocketAddrs, lookup_host},
    sync::{OwnedSemaphorePermit, watch},
    task::JoinSet,
};

use super::{
    Allowlist, HttpConfig, HttpService,
    admission::{self, Admission, Admitted},
    detached_stream::{HeldStream, Seat, Stalled, Watched},
    idle::IdleTimer,
};
use crate::{shares::Share, stop::stop_signal, warnings::Warnings};

/// A listening HTTP server. Dropping it stops immediately; [`HttpServer::shutdown`] stops
/// gracefully.
pub struct HttpServer {
    service: HttpService,
    address: SocketAddr,
    path: String,
    grace: Duration,
    stop: watch::Sender<bool>,
    accepting: tokio::task::JoinHandle<JoinSet<()>>,
}

/// Binds an address and serves an endpoint. Port 0 selects any free port.
///
/// # Errors
///
/// Returns an error if the address cannot be used; the message says what to do. An address that
/// other machines can reach requires an authenticator or [`HttpConfig::allow_anonymous`].
pub async fn serve(
    endpoint: Endpoint,
    address: impl ToSocketAddrs,
    config: HttpConfig,
) -> io::Result<HttpServer> {
    let address = lookup_host(address)
        .await?
        .next()
        .ok_or_else(|| io::Error::other("the address resolves to no host"))?;
    let loopback = address.ip().is_loopback();
    if !loopback && config.authenticator.is_none() && !config.allow_anonymous {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "{address} can be reached from other machines, and no authenticator is set; set one with \
                 `authenticator`, listen on 127.0.0.1, or set `allow_anonymous` to serve anonymous clients"
            ),
        ));
    }
    let listener = listen(address).map_err(|error| explain(error, address))?;
    let address = listener.local_addr()?;
    // A public server is reached under host names that only the operator knows.
    let hosts = if loopback { Allowlist::Loopback } else { Allowlist::Any };
    let (path, grace) = (config.path.clone(), config.shutdown_grace);
    let service = HttpService::by_path(endpoint, config, hosts);
    let (stop, stopped) = watch::channel(false);
    let accepting = tokio::spawn(accept(listener, service.clone(), stopped));
    Ok(HttpServer { service, address, path, grace, stop, accepting })
}

impl HttpServer {
    /// Returns the address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL of the endpoint.
    pub fn url(&self) -> String {
        let host = match self.address.ip() {
            ip if ip.is_unspecified() => "localhost".to_owned(),
            IpAddr::V6(ip) => format!("[{ip}]"),
            IpAddr::V4(ip) => ip.to_string(),
        };
        format!("http://{host}:{}{}", self.address.port(), self.path)
    }

    /// Returns the HTTP service.
    pub fn service(&self) -> &HttpService {
        &self.service
    }

    /// Serves until the process receives SIGINT (Ctrl-C) or SIGTERM, then shuts down gracefully.
    ///
    /// # Errors
    ///
    /// Returns an error if the signal handlers cannot be installed.
    pub async fn wait(self) -> io::Result<()> {
        stop_signal().await?;
        self.shutdown().await;
        Ok(())
    }

    /// Shuts down gracefully.
    ///
    /// Stops accepting connections and ends streams. Running calls finish, and tasks reach a point
    /// where another replica can continue. Cancels the remaining calls after
    /// [`HttpConfig::shutdown_grace`].
    pub async fn shutdown(self) {
        let _ = self.stop.send(true);
        self.service.close();
        let (accepting, grace) = (self.accepting, self.grace);
        let state = Arc::clone(self.service.state());
        let service = Arc::clone(state.endpoint.service());
        let calls = async move {
            let end = async {
                if let Ok(mut connections) = accepting.await {
                    while connections.join_next().await.is_some() {}
                }
                // Wait for calls whose clients have disconnected.
                state.tasks.finished().await;
            };
            if tokio::time::timeout(grace, end).await.is_err() {
                tracing::warn!(
                    ?grace,
                    "cancelling calls that did not end within the shutdown grace period"
                );
            }
            state.end_all();
        };
        service.shut_down(Box::pin(calls), grace).await;
    }
}

impl fmt::Debug for HttpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpServer").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Length of the system's queue of connections to accept; the system may apply a lower limit. A
/// client retries a dropped connection attempt after a second, so a burst of one client must not
/// fill the queue.
const BACKLOG: u32 = 4096;

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // Allows the port to be reused right after a restart. On Windows the option has another
    // meaning.
    #[cfg(not(windows))]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// After a stop request, the listener closes when no connection arrives for this long.
const LAST_CALL: Duration = Duration::from_millis(20);

/// After a stop request, time that a new connection has to send its first request.
const FIRST_REQUEST: Duration = Duration::from_millis(200);

async fn accept(
    listener: TcpListener,
    service: HttpService,
    mut stopped: watch::Receiver<bool>,
) -> JoinSet<()> {
    let admission = Admission::new(&service.state().config);
    let failures = Warnings::default();
    let mut open = JoinSet::new();
    loop {
        let permit = tokio::select! {
            biased;
            permit = Arc::clone(&admission.room).acquire_owned() => permit,
            // All connections are in use, and the server is stopping.
            _ = stopped.wait_for(|stopped| *stopped) => return open,
        };
        let Ok(permit) = permit else { return open };
        let stopping = *stopped.borrow();
        let accepted = tokio::select! {
            biased;
            accepted = listener.accept() => accepted,
            // On shutdown, accept the connections that wait in the queue first: their clients
            // expect a response.
            () = tokio::time::sleep(LAST_CALL), if stopping => return open,
            changed = stopped.changed(), if !stopping => match changed {
                Ok(()) => continue,
                // The sender is gone: the server was dropped without a shutdown.
                Err(_) => return open,
            },
        };
        while open.try_join_next().is_some() {}
        match accepted {
            Ok((stream, peer)) => match admission.admit(peer) {
                Admitted::Yes(share) => {
                    let (service, stopped) = (service.clone(), stopped.clone());
                    open.spawn(connection(stream, peer, service, stopped, (permit, share)));
                }
                Admitted::No(place) => {
                    if let Some(place) = place {
                        open.spawn(admission::refuse(stream, place));
                    }
                }
            },
            // Too many open files, or a connection that closed before it was accepted: retry, but
            // do not spin.
            Err(error) => {
                if let Some(times) = failures.count(Instant::now()) {
                    tracing::warn!(%error, times, "accepting connections failed");
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    service: HttpService,
    stopped: watch::Receiver<bool>,
    place: (OwnedSemaphorePermit, Option<Share<IpAddr>>),
) -> impl Future<Output = ()> {
    // Responses are written in one piece; Nagle's algorithm would delay each by up to 40 ms.
    let _ = stream.set_nodelay(true);
    async move {
        let _place = place;
        let started = tokio::time::Instant::now();
        let head_timeout = service.state().config.head_timeout;
        if !wait_for_first_byte(&stream, head_timeout, stopped.clone()).await {
            return;
        }
        let left = head_timeout.saturating_sub(started.elapsed());
        // Boxed, so that the memory for hyper is freed when a detached stream remains.
        let held = Box::pin(over_hyper(stream, peer, service, stopped, left)).await;
        if let Some(held) = held {
            held.await;
        }
    }
}

/// Waits for the first byte of a new connection. Returns whether to serve the connection.
///
/// hyper allocates about 20 KiB per connection at once. A client that connects and sends nothing
/// must not cost that memory.
async fn wait_for_first_byte(
    socket: &TcpStream,
    timeout: Duration,
    stopped: watch::Receiver<bool>,
) -> bool {
    tokio::select! {
        biased;
        readable = tokio::time::timeout(timeout, socket.readable()) => matches!(readable, Ok(Ok(()))),
        // A request may be in flight: `over_hyper` waits for it once more.
        () = stop(stopped) => true,
    }
}

/// Serves a connection until it ends, or until a long-lived stream is detached from it. The first
/// request head must arrive within `head_timeout`.
async fn over_hyper(
    socket: TcpStream,
    peer: SocketAddr,
    service: HttpService,
    stopped: watch::Receiver<bool>,
    head_timeout: Duration,
) -> Option<HeldStream> {
    let HttpConfig { idle_timeout: idle_connection, write_timeout, .. } = service.state().config;
    let has_request = AtomicBool::new(false);
    let seat = Seat::default();
    let handle = service_fn(|request: Request<Incoming>| {
        has_request.store(true, Ordering::Relaxed);
        let (version, seat) = (request.version(), &seat);
        let handled = service.handle(request, Some(peer.ip()));
        async move { seat.answer(handled.await, version).await }
    });
    let watched = Watched { socket, seat: &seat, stalled: Stalled::new(write_timeout) };
    let mut connection = http1::Builder::new()
        .timer(IdleTimer::new(head_timeout))
        .header_read_timeout(idle_connection)
        .serve_connection(TokioIo::new(watched), handle);
    let mut stop = pin!(stop(stopped.clone()));
    let mut is_watched = false;
    let ended = poll_fn(|cx| match Pin::new(&mut connection).poll(cx) {
        Poll::Pending if seat.is_taken() => Poll::Ready(Until::Taken),
        Poll::Ready(result) => Poll::Ready(Until::Over(result)),
        // Once registered, the stop signal wakes this task by itself. Polling it with every request
        // would take a lock that all connections share.
        Poll::Pending if is_watched && stopped.has_changed().is_ok_and(|changed| !changed) => {
            Poll::Pending
        }
        Poll::Pending => {
            is_watched = true;
            stop.as_mut().poll(cx).map(|()| Until::Stopped)
        }
    });
    match ended.await {
        Until::Over(result) => {
            over(result);
            return None;
        }
        Until::Taken => {
            return seat.take(connection.into_parts().io.into_inner().socket, write_timeout);
        }
        Until::Stopped => {}
    }
    if seat.close() {
        return seat.take(connection.into_parts().io.into_inner().socket, write_timeout);
    }
    let mut connection = Pin::new(&mut connection);
    // The first request may be in flight or unread. hyper closes a connection without a response if
    // it is shut down before it has read anything.
    let first = poll_fn(|cx| match connection.as_mut().poll(cx) {
        Poll::Pending if !has_request.load(Ordering::Relaxed) => Poll::Pending,
        Poll::Ready(ended) => Poll::Ready(Some(ended)),
        Poll::Pending => Poll::Ready(None),
    });
    if let Ok(Some(ended)) = tokio::time::timeout(FIRST_REQUEST, first).await {
        over(ended);
        return None;
    }
    connection.as_mut().graceful_shutdown();
    over(connection.await);
    None
}

/// Reason why hyper stops serving a connection.
enum Until {
    Over(hyper::Result<()>),
    /// A long-lived stream was detached from the connection.
    Taken,
    Stopped,
}

async fn stop(mut stopped: watch::Receiver<bool>) {
    // An error means that the sender is gone, which also stops the server.
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

fn over(result: hyper::Result<()>) {
    if let Err(error) = result {
        tracing::debug!(%error, "connection closed with an error");
    }
}

fn explain(error: io::Error, address: SocketAddr) -> io::Error {
    let remedy = match error.kind() {
        io::ErrorKind::AddrInUse => format!(
            "port {} is in use; stop the other program or choose another port",
            address.port()
        ),
        io::ErrorKind::PermissionDenied => {
            format!(
                "port {} requires privileges that this process does not have; choose one above 1023",
                address.port()
            )
        }
        io::ErrorKind::AddrNotAvailable => {
            format!("{} is not an address of this machine", address.ip())
        }
        _ => return error,
    };
    io::Error::new(error.kind(), format!("could not listen on {address}: {remedy}"))
}
