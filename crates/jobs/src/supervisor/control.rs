//! The supervisor's socket: servers watch, respond and end through it.
//!
//! Each connection is a task of its own, so that a slow reader keeps nobody waiting, least of all the command.

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
    files::random_name,
    folder::{Folder, sockets},
    wire::{MAX_REQUEST, News, ServerRequest, Taken, What},
};

/// How many servers may be connected at once: more than there are, fewer than would hurt.
const MAX_CONNECTIONS: usize = 64;
/// What is told again is told after this, so that a flood costs a hundred messages in a second.
const PACE: Duration = Duration::from_millis(10);
/// How long a connection may take to say what it wants, and to hear that the job is over.
const PATIENCE: Duration = Duration::from_secs(5);

/// A socket that listens.
#[derive(Debug)]
pub(super) struct Control {
    listener: UnixListener,
    path: PathBuf,
    job: String,
    followers: Followers,
}

/// Counts the servers that follow the job.
#[derive(Clone, Debug, Default)]
pub(super) struct Followers(Arc<()>);

impl Followers {
    /// Whether a server follows the job.
    pub(super) fn any(&self) -> bool {
        /// The socket's own, and the one of who looks.
        const OWN: usize = 2;
        Arc::strong_count(&self.0) > OWN
    }
}

/// What a server wants of the command.
#[derive(Debug)]
pub(super) enum Request {
    End,
    Respond { number: u32, line: String, taken: oneshot::Sender<Taken> },
}

impl Control {
    pub(super) fn open(folder: &Folder) -> io::Result<Self> {
        let (name, path, listener) = loop {
            let name = random_name();
            let path = sockets(folder.jobs()).join(&name);
            match UnixListener::bind(&path) {
                Ok(listener) => break (name, path, listener),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                Err(error) => return Err(error),
            }
        };
        folder.set_control(&name)?;
        let followers = Followers::default();
        Ok(Self { listener, path, job: folder.id().to_owned(), followers })
    }

    pub(super) fn followers(&self) -> Followers {
        self.followers.clone()
    }

    /// Serves until the job is over and all who watch have heard it.
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
                    // They see that it is closed, and come again.
                    Ok(_) => {}
                    // There are no descriptors left. Those who wait are still there later.
                    Err(_) => sleep(PACE).await,
                },
            }
        }
        let _ = fs::remove_file(&self.path);
        drop(self.listener);
        let _ = timeout(PATIENCE, async { while connections.join_next().await.is_some() {} }).await;
    }
}

/// Whether it is the same user at the other end. The folder is closed to others; this holds even if it was opened.
fn is_ours(stream: &UnixStream) -> bool {
    stream.peer_cred().is_ok_and(|peer| peer.uid() == rustix::process::geteuid().as_raw())
}

/// What goes wrong here is that the server is gone.
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
        What::Watch => tell(read.into_inner().into_inner(), write, news).await,
        What::End => {
            let _ = requests.send(Request::End).await;
            tell(read.into_inner().into_inner(), write, news).await;
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

/// Tells what is new, until the job is over or nobody listens.
async fn tell(mut read: OwnedReadHalf, mut write: OwnedWriteHalf, mut news: watch::Receiver<News>) {
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
        // Nothing more is said on a connection, so this is its end.
        _ = read.read_u8() => {}
    }
}

/// Waits until the exit has been written.
async fn over(mut news: watch::Receiver<News>) {
    // Who would say so is gone only after having said it.
    let _ = news.wait_for(|news| news.over).await;
}
