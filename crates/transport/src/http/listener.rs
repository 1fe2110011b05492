//! A listener of our own: binds, accepts, and shuts down without dropping what it has begun.

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

/// A server that listens. Dropping it stops at once; [`HttpServer::shutdown`] stops properly.
pub struct HttpServer {
    service: HttpService,
    address: SocketAddr,
    path: String,
    grace: Duration,
    stop: watch::Sender<bool>,
    accepting: tokio::task::JoinHandle<JoinSet<()>>,
}

/// Listens on an address and serves an endpoint there. Port 0 takes any free one.
///
/// # Errors
///
/// When the address cannot be used; the message says what to do. An address that others can reach
/// needs an authenticator, or [`HttpConfig::allow_anonymous`].
pub async fn serve(
    endpoint: Endpoint,
    address: impl ToSocketAddrs,
    config: HttpConfig,
) -> io::Result<HttpServer> {
    let address = lookup_host(address)
        .await?
        .next()
        .ok_or_else(|| io::Error::other("the address names no host"))?;
    let loopback = address.ip().is_loopback();
    if !loopback && config.authenticator.is_none() && !config.allow_anonymous {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "{address} can be reached from other machines, and no authenticator is set: set one with \
                 `authenticator`, listen on 127.0.0.1, or say `allow_anonymous` if that is meant"
            ),
        ));
    }
    let listener = listen(address).map_err(|error| explain(error, address))?;
    let address = listener.local_addr()?;
    // Behind a name of its own a server is reached by that name; which ones, only its owner knows.
    let hosts = if loopback { Allowlist::Loopback } else { Allowlist::Any };
    let (path, grace) = (config.path.clone(), config.shutdown_grace);
    let service = HttpService::by_path(endpoint, config, hosts);
    let (stop, stopped) = watch::channel(false);
    let accepting = tokio::spawn(accept(listener, service.clone(), stopped));
    Ok(HttpServer { service, address, path, grace, stop, accepting })
}

impl HttpServer {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of the endpoint.
    pub fn url(&self) -> String {
        let host = match self.address.ip() {
            ip if ip.is_unspecified() => "localhost".to_owned(),
            IpAddr::V6(ip) => format!("[{ip}]"),
            IpAddr::V4(ip) => ip.to_string(),
        };
        format!("http://{host}:{}{}", self.address.port(), self.path)
    }

    /// The service behind it.
    pub fn service(&self) -> &HttpService {
        &self.service
    }

    /// Serves until the process is asked to stop (Ctrl-C, or SIGTERM), then shuts down properly.
    ///
    /// # Errors
    ///
    /// When the signals cannot be watched.
    pub async fn wait(self) -> io::Result<()> {
        stop_signal().await?;
        self.shutdown().await;
        Ok(())
    }

    /// Stops accepting, ends streams properly, lets running calls end and tasks come to a place
    /// where another replica can go on, within the grace of [`HttpConfig::shutdown_grace`], and then
    /// ends what is left.
    pub async fn shutdown(self) {
        let _ = self.stop.send(true);
        self.service.close();
        let state = Arc::clone(self.service.state());
        let end = async {
            if let Ok(mut connections) = self.accepting.await {
                while connections.join_next().await.is_some() {}
            }
            // Calls whose clients have left.
            state.tasks.finished().await;
        };
        let service = Arc::clone(state.endpoint.service());
        let (ended, ()) =
            tokio::join!(tokio::time::timeout(self.grace, end), service.shut_down(self.grace));
        if ended.is_err() {
            tracing::warn!(grace = ?self.grace, "some calls did not end in time; they are cancelled");
        }
        state.end_all();
    }
}

impl fmt::Debug for HttpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Serving").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Connections that may wait in the system until they are accepted, where the system allows as many.
/// A client whose connection does not fit tries again after a second, so one client that opens many
/// at once must not fill the queue.
const BACKLOG: u32 = 4096;

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // The port can be taken again at once after a restart. Windows means something else by it.
    #[cfg(not(windows))]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// How long nobody has to come, after it was decided to stop, before nobody can any more.
const LAST_CALL: Duration = Duration::from_millis(20);

/// How long a connection on which nothing has come yet is listened to when the server stops.
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
            // There is no room, and no time to wait for it.
            _ = stopped.wait_for(|stopped| *stopped) => return open,
        };
        let Ok(permit) = permit else { return open };
        let stopping = *stopped.borrow();
        let accepted = tokio::select! {
            biased;
            accepted = listener.accept() => accepted,
            // Whoever has connected has been promised an answer: they are all let in first.
            () = tokio::time::sleep(LAST_CALL), if stopping => return open,
            changed = stopped.changed(), if !stopping => match changed {
                Ok(()) => continue,
                // Dropped, not shut down.
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
            // Too many open files, or a connection that was gone before it was taken: go on, but
            // do not spin.
            Err(error) => {
                if let Some(times) = failures.count(Instant::now()) {
                    tracing::warn!(%error, times, "could not accept connections");
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
    // Answers are written in one piece; waiting for more to send would cost 40 ms each.
    let _ = stream.set_nodelay(true);
    async move {
        let _place = place;
        let begun = tokio::time::Instant::now();
        let head_timeout = service.state().config.head_timeout;
        if !begins(&stream, head_timeout, stopped.clone()).await {
            return;
        }
        let left = head_timeout.saturating_sub(begun.elapsed());
        // In a box, so that what is held open for long does not take as much as what hyper needs.
        let held = Box::pin(over_hyper(stream, peer, service, stopped, left)).await;
        if let Some(held) = held {
            held.await;
        }
    }
}

/// Waits for the first byte of a new connection. Returns whether the connection is to be served.
///
/// hyper takes about 20 KiB for a connection as soon as it has it. A client that connects and sends
/// nothing does not get them.
async fn begins(socket: &TcpStream, timeout: Duration, stopped: watch::Receiver<bool>) -> bool {
    tokio::select! {
        biased;
        readable = tokio::time::timeout(timeout, socket.readable()) => matches!(readable, Ok(Ok(()))),
        // The request may be on its way: `over_hyper` waits for it once more.
        () = stop(stopped) => true,
    }
}

/// Serves a connection until it ends, or a stream begins on it that hyper is not needed for. Its first
/// head has to come within `head_timeout`.
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
        // This task is its own waker, and leaves it once: to poll that with every request would be
        // to lock what all connections share.
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
    // The first request may be on its way, or unread: a connection that is told to end before it has
    // read anything ends without an answer.
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

/// Why a connection is not served on as it was.
enum Until {
    Over(hyper::Result<()>),
    /// A stream has begun on it that hyper is not needed for.
    Taken,
    Stopped,
}

async fn stop(mut stopped: watch::Receiver<bool>) {
    // Whoever could say so may also be gone.
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

fn over(result: hyper::Result<()>) {
    if let Err(error) = result {
        tracing::debug!(%error, "a connection ended early");
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
                "port {} needs rights this program does not have; choose one above 1023",
                address.port()
            )
        }
        io::ErrorKind::AddrNotAvailable => {
            format!("{} is no address of this machine", address.ip())
        }
        _ => return error,
    };
    io::Error::new(error.kind(), format!("could not listen on {address}: {remedy}"))
}
