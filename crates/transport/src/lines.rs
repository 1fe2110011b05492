//! Transport over any byte stream with one message per line: a Unix socket, a TCP connection, an
//! in-memory pipe.

use std::{io, sync::Arc};

use outlive_protocol::{Endpoint, Principal, Receipt};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::pipe::{Piece, Pipe, Splitter};

/// Bytes per read.
const CHUNK: usize = 16 << 10;

/// Serves one client on a byte stream until the client closes its side. Running calls finish before
/// this function returns.
///
/// The caller authenticates the connection and passes the result as `principal`.
///
/// # Errors
///
/// Returns an error if reading or writing fails.
pub async fn serve<R, W>(
    endpoint: Endpoint,
    principal: Principal,
    mut input: R,
    mut output: W,
) -> io::Result<()>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    let (pipe, mut messages) = Pipe::open(endpoint, principal);
    let _close = Close(Arc::clone(&pipe));
    let mut splitter = Splitter::new(pipe.message_limit());
    let mut chunk = vec![0; CHUNK];
    let (mut out, mut receipts) = (Vec::new(), Vec::new());
    loop {
        tokio::select! {
            // Backpressure: if the client does not read, the server stops reading from it.
            read = input.read(&mut chunk), if pipe.unread().has_room() => {
                let read = read?;
                splitter.push(&chunk[..read]);
                let last = if read == 0 { splitter.rest() } else { None };
                for piece in std::iter::from_fn(|| splitter.next()).chain(last) {
                    match piece {
                        Piece::Line(line) => pipe.accept(&line, &mut out),
                        Piece::TooLong => pipe.refuse_too_long(&mut out),
                    }
                }
                if read == 0 {
                    break;
                }
            }
            Some(mut message) = messages.recv() => {
                out.extend_from_slice(&message);
                receipts.extend(message.take_receipt());
            }
        }
        write(&mut output, &mut out, &mut receipts).await?;
    }
    write(&mut output, &mut out, &mut receipts).await?;
    let drained = pipe.drained();
    tokio::pin!(drained);
    loop {
        tokio::select! {
            biased;
            Some(mut message) = messages.recv() => {
                out.extend_from_slice(&message);
                receipts.extend(message.take_receipt());
                write(&mut output, &mut out, &mut receipts).await?;
            }
            () = &mut drained => break,
        }
    }
    while let Ok(mut message) = messages.try_recv() {
        out.extend_from_slice(&message);
        receipts.extend(message.take_receipt());
    }
    write(&mut output, &mut out, &mut receipts).await?;
    output.shutdown().await
}

/// Writes the bytes, and reports the delivery of their messages.
async fn write<W: AsyncWrite + Unpin>(
    output: &mut W,
    out: &mut Vec<u8>,
    receipts: &mut Vec<Receipt>,
) -> io::Result<()> {
    if !out.is_empty() {
        output.write_all(out).await?;
        output.flush().await?;
        out.clear();
    }
    receipts.drain(..).for_each(Receipt::delivered);
    Ok(())
}

/// Closes the connection on drop.
struct Close(Arc<Pipe>);

impl Drop for Close {
    fn drop(&mut self) {
        self.0.close();
    }
}
