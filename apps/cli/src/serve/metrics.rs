//! A listener for /metrics alone: `metrics_listen` of `[server]`.
//!
//! It speaks just enough HTTP for a scraper: it reads the head of one request, answers and closes. Heads
//! are short, readers have seconds, and few connections are served at once.

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
/// Pause after a connection could not be taken: there may be too many open files.
const ACCEPT_BACK_OFF: Duration = Duration::from_millis(100);

/// Answers those who connect, for as long as it is polled.
pub(super) async fn serve(listener: TcpListener, numbers: Numbers) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let numbers = numbers.clone();
                tokio::spawn(async move {
                    // One who goes away, or is slow, gets no answer.
                    let _ = timeout(TIMEOUT, answer(stream, &numbers)).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection to `metrics_listen` cannot be taken");
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
        _ => ("404 Not Found", "the numbers are at /metrics\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\ncache-control: no-store\r\nconnection: close\r\n\r\n",
        text.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(text.as_bytes()).await?;
    stream.shutdown().await
}
