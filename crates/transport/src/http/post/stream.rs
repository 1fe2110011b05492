//! Event stream of one or more calls, with event IDs if the era supports resumption.

use std::{
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll},
};

use outlive_protocol::{EventIdMode, Frame, Message, Receipt};

use super::running::{Numbered, Running};
use crate::{
    caller::Caller,
    http::{
        body::{ENOUGH, Source},
        sessions::HttpSession,
        sse,
        state::HttpState,
    },
};

/// The calls that share one response stream.
pub(super) struct CallStream {
    calls: Vec<Running>,
    numbered: Option<Numbered>,
    primed: bool,
    /// Whether the server has told the client to reconnect for the remaining events.
    detached: bool,
    entry: Option<Arc<HttpSession>>,
    receipts: Vec<Receipt>,
}

impl CallStream {
    pub(super) fn new(
        state: &HttpState,
        mut calls: Vec<Running>,
        entry: Option<Arc<HttpSession>>,
    ) -> Self {
        let numbering = calls
            .first_mut()
            .and_then(|running| running.run())
            .map(|run| run.call().rules().event_ids);
        let numbered = match (numbering, &entry) {
            (Some(EventIdMode::Ids | EventIdMode::Primed), Some(entry)) => {
                Some(Numbered::open(entry, &state.events, calls.len()))
            }
            _ => None,
        };
        for running in &mut calls {
            running.numbered.clone_from(&numbered);
        }
        if let Some(entry) = &entry {
            entry.open_streams.fetch_add(1, Ordering::Relaxed);
        }
        Self {
            calls,
            numbered,
            primed: numbering == Some(EventIdMode::Primed),
            detached: false,
            entry,
            receipts: Vec::new(),
        }
    }

    /// Adds callbacks for the delivery of responses that were written before.
    pub(super) fn add_receipts(&mut self, receipts: Vec<Receipt>) {
        self.receipts.extend(receipts);
    }

    /// Returns the caller that the bytes of the stream count against.
    pub(super) fn caller(&mut self) -> Option<Caller> {
        let run = self.calls.first_mut()?.run()?;
        Caller::new(run.call().principal(), run.call().peer_addr())
    }

    /// Returns the first bytes of the stream: an event ID to resume from, if the era has one.
    pub(super) fn begin(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if let (Some(numbered), true) = (&self.numbered, self.primed) {
            self.say_numbered(numbered, b"", &mut out);
        }
        out
    }

    /// Writes an encoded message.
    pub(super) fn say(&self, data: &[u8], out: &mut Vec<u8>) {
        match &self.numbered {
            Some(numbered) => self.say_numbered(numbered, data, out),
            None => sse::event(out, |out| {
                out.extend_from_slice(data);
                true
            }),
        }
    }

    /// Writes a message of a call.
    pub(super) fn write(&mut self, index: usize, message: Message, out: &mut Vec<u8>) {
        let Some(running) = self.calls.get_mut(index) else { return };
        let Some(run) = running.run() else { return };
        let Some(numbered) = &self.numbered else {
            let mut frame = Frame::Silent;
            sse::event(out, |out| {
                frame = run.encode(message, out);
                matches!(frame, Frame::Message | Frame::End { .. })
            });
            if let Frame::End { .. } = frame {
                self.receipts.extend(run.take_receipt());
                running.end();
            }
            return;
        };
        let mut data = Vec::new();
        match run.encode(message, &mut data) {
            Frame::Silent => {}
            Frame::Detach { retry } => {
                let number = numbered.stream.append(b"");
                sse::retry(out, numbered.stream.id(number), retry);
                self.detached = true;
            }
            frame => {
                let receipt = run.take_receipt();
                self.say(&data, out);
                self.receipts.extend(receipt);
                if let Frame::End { .. } = frame {
                    self.end(index);
                }
            }
        }
    }

    fn say_numbered(&self, numbered: &Numbered, data: &[u8], out: &mut Vec<u8>) {
        let number = numbered.stream.append(data);
        sse::numbered(out, numbered.stream.id(number), data);
    }

    fn end(&mut self, index: usize) {
        if let (true, Some(numbered)) = (self.calls[index].end(), &self.numbered) {
            numbered.call_ended();
        }
    }
}

impl Source for CallStream {
    fn take_receipts(&mut self) -> Vec<Receipt> {
        std::mem::take(&mut self.receipts)
    }

    fn poll_fill(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Poll<()> {
        if self
            .numbered
            .as_ref()
            .is_some_and(|numbered| !numbered.stream.poll_reader(numbered.reader, cx))
        {
            // The client has reconnected; the new connection sends the remaining events.
            return Poll::Ready(());
        }
        let mut index = 0;
        while index < self.calls.len() {
            if self.detached {
                // Dropping the source lets the running calls continue in the session.
                return Poll::Ready(());
            }
            if out.len() >= ENOUGH {
                return Poll::Pending;
            }
            match self.calls[index].poll(cx) {
                Poll::Ready(Some(message)) => self.write(index, message, out),
                Poll::Ready(None) => {
                    self.end(index);
                    index += 1;
                }
                Poll::Pending => index += 1,
            }
        }
        match self.calls.iter_mut().all(|running| running.run().is_none()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }
}

impl Drop for CallStream {
    fn drop(&mut self) {
        if let Some(entry) = &self.entry {
            entry.open_streams.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
