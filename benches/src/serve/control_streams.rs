//! The control: a bare SSE server with one write per event.
//!
//! It reads the number of events from the path, and stores and checks nothing.

use std::io::Write;

use anyhow::{Context, Result};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::streams::LINE;

/// Listens on a free port.
pub(super) async fn start() -> Result<(u16, impl Sized)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    let serving = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    Ok((port, serving))
}

async fn serve(mut stream: TcpStream) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut request = vec![0; 4 << 10];
    let read = stream.read(&mut request).await?;
    let text = str::from_utf8(&request[..read])?;
    let count = text.split('/').nth(1).and_then(|rest| rest.split(' ').next());
    let count: u64 = count.context("no number in the path")?.parse()?;
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await?;
    let (mut event, mut chunk) = (Vec::new(), Vec::new());
    for number in 1..=count {
        event.clear();
        write!(
            event,
            "data: {{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"partial-content\":[{{\"seqNr\":{number},\
             \"type\":\"text\",\"text\":\"{LINE}\"}}],\"isComplete\":{}}}}}\n\n",
            number == count
        )?;
        chunk.clear();
        write!(chunk, "{:x}\r\n", event.len())?;
        chunk.extend_from_slice(&event);
        chunk.extend_from_slice(b"\r\n");
        stream.write_all(&chunk).await?;
    }
    stream.write_all(b"0\r\n\r\n").await?;
    Ok(())
}
