//! Standard error of a supervised process: lines for gateways, and the last ones.

use std::collections::VecDeque;

use bytes::Bytes;

use super::{
    peers::{PeerId, Peers},
    wire::{Frame, Kind},
};

/// Maximum bytes of a line. The rest of a longer line is dropped.
const MAX_LINE: usize = 16 << 10;

/// Bytes of the last lines that are retained.
const MAX_RETAINED: usize = 16 << 10;

/// Lines of standard error.
#[derive(Debug, Default)]
pub(super) struct StderrLines {
    /// Start of the next line.
    line: Vec<u8>,
    /// The last lines, and whether a gateway has received each of them.
    last: VecDeque<(Bytes, bool)>,
    bytes: usize,
}

impl StderrLines {
    /// Takes output, and sends its lines to the gateways.
    pub(super) fn push(&mut self, chunk: &[u8], peers: &Peers) {
        for part in chunk.split_inclusive(|byte| *byte == b'\n') {
            let room = MAX_LINE.saturating_sub(self.line.len());
            self.line.extend_from_slice(&part[..part.len().min(room)]);
            if part.ends_with(b"\n") {
                self.end_line(peers);
            }
        }
    }

    /// Sends the last line, which may have no end.
    pub(super) fn finish(&mut self, peers: &Peers) {
        if !self.line.is_empty() {
            self.end_line(peers);
        }
    }

    fn end_line(&mut self, peers: &Peers) {
        let line = Bytes::copy_from_slice(self.line.trim_ascii_end());
        self.line.clear();
        let is_sent = peers.gateways().next().is_some();
        peers.push_all(&Frame::new(Kind::Stderr, 0).body(line.clone()));
        // At least one byte, so that empty lines are bounded too.
        self.bytes += line.len() + 1;
        self.last.push_back((line, is_sent));
        while self.bytes > MAX_RETAINED
            && let Some((oldest, _)) = self.last.pop_front()
        {
            self.bytes -= oldest.len() + 1;
        }
    }

    /// Sends the lines that no gateway has received.
    pub(super) fn send_unsent(&mut self, peer: PeerId, peers: &Peers) {
        for (line, is_sent) in self.last.iter_mut().filter(|(_, is_sent)| !is_sent) {
            *is_sent = true;
            peers.push(peer, Frame::new(Kind::Stderr, 0).body(line.clone()));
        }
    }

    /// Returns the last lines as text.
    pub(super) fn tail(&self) -> String {
        let lines = self.last.iter().map(|(line, _)| String::from_utf8_lossy(line));
        lines.collect::<Vec<_>>().join("\n")
    }
}
