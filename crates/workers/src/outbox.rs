//! Lines that wait until a process reads them.

use std::{
    mem,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::{
    io::{AsyncWrite, AsyncWriteExt},
    sync::Notify,
};

/// Bytes above which a journal is sent only when the process has read others.
const ROOM: usize = 1 << 20;

/// Bytes above which the process counts as frozen.
const MAX_BYTES: usize = 64 << 20;

/// Lines for one process.
#[derive(Default)]
pub(crate) struct Outbox {
    // A std mutex: no code awaits while it is held.
    state: Mutex<State>,
    /// Notifies the writer.
    changed: Notify,
    /// Notifies calls that wait for room.
    emptied: Notify,
}

#[derive(Default)]
struct State {
    text: String,
    is_closed: bool,
}

impl Outbox {
    /// Adds a line, which ends with a line feed.
    pub(crate) fn send(&self, line: &str) {
        let mut state = self.lock();
        if !state.is_closed {
            state.text.push_str(line);
            drop(state);
            self.changed.notify_one();
        }
    }

    /// Waits until there is room for a long line.
    pub(crate) async fn room(&self) {
        loop {
            let emptied = self.emptied.notified();
            {
                let state = self.lock();
                if state.is_closed || state.text.len() < ROOM {
                    return;
                }
            }
            emptied.await;
        }
    }

    /// Returns whether the process does not read its lines.
    pub(crate) fn is_full(&self) -> bool {
        self.lock().text.len() > MAX_BYTES
    }

    /// Ends the standard input of the process after the lines so far.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_one();
        self.emptied.notify_waiters();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// Waits until the outbox is closed.
    pub(crate) async fn closed(&self) {
        loop {
            let emptied = self.emptied.notified();
            if self.is_closed() {
                return;
            }
            emptied.await;
        }
    }

    /// Writes all lines until the outbox is closed or the process has closed its input.
    pub(crate) async fn write_to(&self, mut pipe: impl AsyncWrite + Unpin) {
        loop {
            let (text, is_closed) = {
                let mut state = self.lock();
                (mem::take(&mut state.text), state.is_closed)
            };
            self.emptied.notify_waiters();
            if !text.is_empty() && pipe.write_all(text.as_bytes()).await.is_err() {
                // The process is exiting, which its attendant sees.
                return self.close();
            }
            if is_closed {
                return;
            }
            if text.is_empty() {
                self.changed.notified().await;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::io::AsyncReadExt as _;

    use super::{Outbox, ROOM};

    #[tokio::test]
    async fn lines_are_written_in_order_until_the_end() {
        let (ours, mut theirs) = tokio::io::duplex(16);
        let outbox = Arc::new(Outbox::default());
        let writer = tokio::spawn({
            let outbox = Arc::clone(&outbox);
            async move { outbox.write_to(ours).await }
        });
        for number in 0..100 {
            outbox.send(&format!("{number}\n"));
        }
        outbox.close();
        outbox.send("late\n");
        let mut read = String::new();
        theirs.read_to_string(&mut read).await.unwrap();
        writer.await.unwrap();
        let expected: String = (0..100).map(|number| format!("{number}\n")).collect();
        assert_eq!(read, expected);
    }

    #[tokio::test]
    async fn long_line_waits_for_room() {
        let (ours, mut theirs) = tokio::io::duplex(1 << 10);
        let outbox = Arc::new(Outbox::default());
        outbox.send(&"x".repeat(2 * ROOM));
        let waiting = tokio::spawn({
            let outbox = Arc::clone(&outbox);
            async move { outbox.room().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        let writing = Arc::clone(&outbox);
        let writer = tokio::spawn(async move { writing.write_to(ours).await });
        let mut read = vec![0; 2 * ROOM];
        theirs.read_exact(&mut read).await.unwrap();
        waiting.await.unwrap();
        outbox.close();
        writer.await.unwrap();
    }
}
