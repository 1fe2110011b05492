//! Socket of the supervisor, through which servers watch, respond to and end the job.
//!
//! Each connection has its own task, so that a slow reader does not delay other readers or the
//! command.

use std::{fs, io, path::PathBuf, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{
        UnixListener, UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{mpsc, oneshot, watch},
    task::JoinSet,
    time::{Instant, sleep, sleep_until, timeout},
};

use super::super::{
    folder::Folder,
    socket::{is_ours, listen},
    wire::{MAX_REQUEST, News, ServerRequest, Taken, What},
};

/// Maximum number of connected servers.
const MAX_CONNECTIONS: usize = 64;
/// Minimum interval between two lines to a watcher, so that a flood of output causes at most 100
/// lines per second.
const PACE: Duration = Duration::from_millis(10);
/// Time for a connection to send its request, and to receive the end of the job.
const PATIENCE: Duration = Duration::from_secs(5);

/// A listening control socket.
#[derive(Debug)]
pub(super) struct Control {
    listener: UnixListener,
    path: PathBuf,
    job: String,
    followers: Followers,
}

/// Counter of the servers that follow the job.
#[derive(Clone, Debug, Default)]
pub(super) struct Followers(Arc<()>);

impl Followers {
    /// Returns whether a server follows the job.
    pub(super) fn any(&self) -> bool {
        /// References of the socket and of the caller.
        const OWN: usize = 2;
        Arc::strong_count(&self.0) > OWN
    }
}

/// Request of a server.
#[derive(Debug)]
pub(super) enum Request {
    End,
    Respond { number: u32, line: String, taken: oneshot::Sender<Taken> },
}

impl Control {
    pub(super) fn open(folder: &Folder) -> io::Result<Self> {
        let (listener, path) = listen(folder)?;
        let followers = Followers::default();
        Ok(Self { listener, path, job: folder.id().to_owned(), followers })
    }

    pub(super) fn followers(&self) -> Followers {
        self.followers.clone()
    }

    /// Serves connections until the job has ended and all watchers have received that.
    pub(super) async fn serve(self, requests: mpsc::Sender<Request>, news: watch::Receiver<News>) {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                () = over(news.clone()) => break,
                Some(_) = connections.join_next() => {}
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) if connections.len() < MAX_CONNECTIONS && is_ours(&stream) => {
                        let followers = self.followers.clone();
                        let (requests, news) = (requests.clone(), news.clone());
                        let connection = serve(stream, self.job.clone(), requests, news, followers);
                        connections.spawn(connection);
                    }
                    // A rejected server sees the closed connection and retries.
                    Ok(_) => {}
                    // The process has no descriptors left. Pending connections can be accepted
                    // later.
                    Err(_) => sleep(PACE).await,
                },
            }
        }
        let _ = fs::remove_file(&self.path);
        drop(self.listener);
        let _ = timeout(PATIENCE, async { while connections.join_next().await.is_some() {} }).await;
    }
}

/// Serves one connection. Errors mean that the server disconnected, and are ignored.
async fn serve(
    stream: UnixStream,
    job: String,
    requests: mpsc::Sender<Request>,
    news: watch::Receiver<News>,
    followers: Followers,
) {
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read.take(MAX_REQUEST));
    let mut line = String::new();
    let Ok(Ok(_)) = timeout(PATIENCE, read.read_line(&mut line)).await else { return };
    let Ok(request) = serde_json::from_str::<ServerRequest>(&line) else { return };
    if request.job != job {
        return;
    }
    match request.what {
        What::Watch => send_news(read.into_inner().into_inner(), write, news).await,
        What::End => {
            let _ = requests.send(Request::End).await;
            send_news(read.into_inner().into_inner(), write, news).await;
        }
        What::Respond { number, line } => {
            drop(followers);
            let (taken, answer) = oneshot::channel();
            let _ = requests.send(Request::Respond { number, line, taken }).await;
            if let Ok(answer) = answer.await
                && let Ok(mut line) = serde_json::to_vec(&answer)
            {
                line.push(b'\n');
                let _ = write.write_all(&line).await;
            }
        }
    }
}

/// Sends changes until the job ends or the server disconnects.
async fn send_news(
    mut read: OwnedReadHalf,
    mut write: OwnedWriteHalf,
    mut news: watch::Receiver<News>,
) {
    let telling = async {
        loop {
            let now = news.borrow_and_update().clone();
            let Ok(mut line) = serde_json::to_vec(&now) else { return };
            line.push(b'\n');
            if write.write_all(&line).await.is_err() || now.over {
                return;
            }
            let again = Instant::now() + PACE;
            if news.changed().await.is_err() {
                return;
            }
            tokio::select! {
                () = sleep_until(again) => {}
                () = over(news.clone()) => {}
            }
        }
    };
    tokio::select! {
        () = telling => {}
        // Servers send nothing more, so any read means the end of the connection.
        _ = read.read_u8() => {}
    }
}

/// Waits until the exit is recorded.
async fn over(mut news: watch::Receiver<News>) {
    // An error means that the sender is dropped, which happens only after the end of the job.
    let _ = news.wait_for(|news| news.over).await;
}
