//! Transport over standard input and output, one message per line, for both eras.
//!
//! One thread reads, polls each call once and writes the responses of a chunk together. Calls that
//! wait run on the runtime, and a second thread writes their messages. On Unix, standard output is
//! redirected to standard error, so that output of handlers does not corrupt the protocol.
//! Spec: <https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio>

use std::{
    fs::File,
    io::{self, Read, Write},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use outlive_protocol::{Endpoint, Principal, Receipt};
use tokio::{
    runtime::Handle,
    sync::{mpsc, oneshot},
};

use crate::{
    pipe::{Piece, Pipe, Splitter, Unread},
    stop::stop_signal,
};

/// Bytes per read: a hundred small messages, or a part of a large one.
const CHUNK: usize = 64 << 10;

/// Time that running calls have to finish after the client closes standard input.
const GRACE: Duration = Duration::from_secs(5);

/// Serves one client on standard input and output until the client closes them, or until the
/// process receives a stop signal.
///
/// # Errors
///
/// Returns an error if the streams cannot be used, or if writing fails while the client still
/// sends.
pub async fn serve(endpoint: Endpoint) -> io::Result<()> {
    let (input, output) = take_streams()?;
    serve_files(endpoint, input, output).await
}

/// Serves one client on a pair of blocking files, pipes or sockets.
async fn serve_files(endpoint: Endpoint, input: File, output: File) -> io::Result<()> {
    let profile = Arc::clone(endpoint.profile());
    let service = Arc::clone(endpoint.service());
    let (pipe, messages) = Pipe::open(endpoint, Principal::LOCAL);
    let output = Arc::new(Mutex::new(output));
    let (written, all_written) = oneshot::channel();
    let late = Arc::clone(&output);
    thread::Builder::new().name("outlive-stdout".into()).spawn(move || {
        write_late(messages, &late);
        let _ = written.send(());
    })?;
    let (done, finished) = oneshot::channel();
    let reader = Arc::clone(&pipe);
    let runtime = Handle::current();
    thread::Builder::new().name("outlive-stdin".into()).spawn(move || {
        // This thread polls handlers, which may use timers and spawn tasks of the runtime.
        let _runtime = runtime.enter();
        let _ = done.send(read(&reader, input, &output));
    })?;
    let read = tokio::select! {
        read = finished => {
            read.unwrap_or_else(|_| Err(io::Error::other("the reading thread panicked")))
        }
        // The reading thread ends with the process.
        stopped = stop_signal() => stopped,
    };
    profile.bus.close();
    let calls = async move {
        let _ = tokio::time::timeout(GRACE, pipe.drained()).await;
        pipe.close();
    };
    service.shut_down(Box::pin(calls), GRACE).await;
    // The writer ends with the last sender. The timeout covers a client that does not read.
    let _ = tokio::time::timeout(GRACE, all_written).await;
    read
}

/// Reads messages until the end of input, and writes the immediate responses.
fn read(pipe: &Arc<Pipe>, mut input: File, output: &Mutex<File>) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    let mut splitter = Splitter::new(pipe.message_limit());
    let mut out = Vec::with_capacity(CHUNK);
    loop {
        // Backpressure: if the client does not read, the server stops reading from it.
        pipe.unread().wait_for_room();
        let read = match input.read(&mut chunk) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        splitter.push(&chunk[..read]);
        let last = if read == 0 { splitter.rest() } else { None };
        for piece in std::iter::from_fn(|| splitter.next()).chain(last) {
            match piece {
                Piece::Line(line) => pipe.accept(&line, &mut out),
                Piece::TooLong => pipe.refuse_too_long(&mut out),
            }
        }
        if !out.is_empty() {
            output.lock().unwrap_or_else(PoisonError::into_inner).write_all(&out)?;
            out.clear();
        }
        if read == 0 {
            return Ok(());
        }
    }
}

/// Writes the messages of calls that waited.
fn write_late(mut messages: mpsc::Receiver<Unread>, output: &Mutex<File>) {
    let mut out = Vec::new();
    while let Some(first) = messages.blocking_recv() {
        out.clear();
        out.extend_from_slice(&first);
        // A message counts as unread until it is written.
        let mut unread = vec![first];
        while out.len() < CHUNK
            && let Ok(more) = messages.try_recv()
        {
            out.extend_from_slice(&more);
            unread.push(more);
        }
        if output.lock().unwrap_or_else(PoisonError::into_inner).write_all(&out).is_err() {
            return;
        }
        unread.iter_mut().filter_map(Unread::take_receipt).for_each(Receipt::delivered);
    }
}

/// Duplicates standard input and output, and redirects standard output to standard error. Other
/// writes to standard output in this process then do not corrupt the protocol.
#[cfg(unix)]
fn take_streams() -> io::Result<(File, File)> {
    use std::os::fd::AsFd;

    let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    rustix::stdio::dup2_stdout(io::stderr().as_fd())?;
    Ok((input, output))
}

/// Duplicates standard input and output.
#[cfg(windows)]
fn take_streams() -> io::Result<(File, File)> {
    use std::os::windows::io::AsHandle;

    let input = File::from(io::stdin().as_handle().try_clone_to_owned()?);
    let output = File::from(io::stdout().as_handle().try_clone_to_owned()?);
    Ok((input, output))
}
