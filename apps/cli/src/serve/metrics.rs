//! A separate listener for /metrics: `metrics_listen` in `[server]`.
//!
//! It implements the HTTP that a scraper needs: one request per connection, then it closes. Request
//! size, time and the number of connections are limited.

use std::{io, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::{sleep, timeout},
};

use super::pages::Numbers;

const MAX_CONNECTIONS: usize = 16;
const MAX_HEAD: usize = 8 << 10;
const TIMEOUT: Duration = Duration::from_secs(5);
/// Delay after a failed accept, for example when too many files are open.
const ACCEPT_BACK_OFF: Duration = Duration::from_millis(100);

/// Serves connections until dropped.
pub(super) async fn serve(listener: TcpListener, numbers: Numbers) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let numbers = numbers.clone();
                tokio::spawn(async move {
                    // A client that disconnects or is slow gets no response.
                    let _ = timeout(TIMEOUT, answer(stream, &numbers)).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection on `metrics_listen`");
                sleep(ACCEPT_BACK_OFF).await;
            }
        }
    }
}

async fn answer(mut stream: TcpStream, numbers: &Numbers) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|four| four == b"\r\n\r\n") {
        if head.len() > MAX_HEAD || stream.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
    }
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let (status, text) = match line.split(|byte| *byte == b' ').collect::<Vec<_>>().as_slice() {
        [b"GET", target, _] if target.split(|byte| *byte == b'?').next() == Some(b"/metrics") => {
            ("200 OK", numbers.text().await)
        }
        _ => ("404 Not Found", "not found; the metrics are at /metrics\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\ncache-control: no-store\r\nconnection: close\r\n\r\n",
        text.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(text.as_bytes()).await?;
    stream.shutdown().await
}
