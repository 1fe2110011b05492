//! What is kept of what a command prints: the beginning and the end of its standard output, the end of its standard error.
//!
//! Neither grows in memory, whatever is printed.

use std::{
    fs::File,
    io::{self, Write},
};

use super::{
    JobSpec, MAX_LINE,
    control::{Events, Record, What},
};

/// How much of standard error is kept.
const TAIL: usize = 16 << 10;
/// How long a line of standard error may be to be told whole.
const MAX_STATUS: usize = 1 << 10;
/// How much of the end of standard output is kept, unless a quarter of the limit is less.
const MAX_END: u64 = 64 << 10;

/// Standard output, within the limits: its beginning as it is printed, and its end when somebody needs it, which is at the
/// exit and at each input request. What lies between is counted and dropped, and a record says so.
#[derive(Debug)]
pub(super) struct Output {
    file: File,
    written: u64,
    bytes_left: u64,
    lines_left: u64,
    /// How much of the present line, or piece of a line, has been printed.
    in_line: usize,
    /// From here on everything goes to `end`.
    full: bool,
    end: End,
    dropped: Dropped,
    warning: Option<String>,
}

/// What was not kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Dropped {
    pub(super) bytes: u64,
    /// Lines that were not kept, or not whole.
    pub(super) lines: u64,
}

impl Output {
    pub(super) fn new(file: File, spec: &JobSpec) -> Self {
        let end_bytes = (spec.max_output_bytes / 4).min(MAX_END);
        let end_lines = spec.max_output_lines / 4;
        Self {
            file,
            written: 0,
            bytes_left: spec.max_output_bytes - end_bytes,
            lines_left: spec.max_output_lines - end_lines,
            in_line: 0,
            full: false,
            end: End::new(end_bytes as usize, end_lines),
            dropped: Dropped::default(),
            warning: None,
        }
    }

    /// How many bytes can be read.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Why output is missing that is within the limits, if it is.
    pub(super) fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    pub(super) fn push(&mut self, chunk: &[u8]) {
        let mut kept = 0;
        while !self.full && kept < chunk.len() {
            let part = self.part(&chunk[kept..]);
            let admitted = self.admit(part);
            kept += admitted;
            self.in_line += admitted;
            if admitted == part && chunk[kept - 1] == b'\n' {
                self.in_line = 0;
            }
        }
        let unwritten = self.write(&chunk[..kept]).len();
        self.end.push(&chunk[kept - unwritten..]);
    }

    /// Makes all that is kept of what was printed until now readable: the end, and before it a record of what is not kept.
    pub(super) fn flush(&mut self, events: &mut Events) {
        let (dropped, end) = self.end.take();
        if dropped.bytes > 0 {
            let Dropped { bytes, lines } = dropped;
            let gap = Record { at: self.written, what: What::Gap { bytes, lines } };
            self.count(dropped);
            if let Err(error) = events.append(&gap) {
                // Without the record the end would look like the continuation.
                self.warning.get_or_insert_with(|| unwritten(&error));
                self.count(Dropped::all_of(&end));
                return;
            }
        }
        let lost = Dropped::all_of(self.write(&end));
        self.count(lost);
    }

    /// Nothing more will be printed.
    pub(super) fn close(&mut self, events: &mut Events) -> (Dropped, Option<String>) {
        self.flush(events);
        if self.dropped.bytes == 0 {
            // It could be written later.
            self.warning = None;
        }
        if let Err(error) = self.file.sync_all() {
            self.warning.get_or_insert_with(|| unwritten(&error));
        }
        (self.dropped, self.warning.take())
    }

    /// How much of it belongs to the present line, up to its end or the greatest length of a line.
    fn part(&mut self, rest: &[u8]) -> usize {
        if self.in_line == MAX_LINE && rest[0] != b'\n' {
            self.in_line = 0;
        }
        // The line end may stand one further than the longest line.
        let longest = &rest[..rest.len().min(MAX_LINE + 1 - self.in_line)];
        match memchr::memchr(b'\n', longest) {
            Some(end) => end + 1,
            None => longest.len().min(MAX_LINE - self.in_line),
        }
    }

    /// How much of so many bytes of one line is kept as the beginning.
    fn admit(&mut self, length: usize) -> usize {
        if self.in_line == 0 {
            self.full = self.lines_left == 0;
            self.lines_left = self.lines_left.saturating_sub(1);
        }
        let kept = if self.full { 0 } else { self.bytes_left.min(length as u64) as usize };
        self.bytes_left -= kept as u64;
        self.full |= kept < length;
        kept
    }

    /// Writes, and returns what could not be written.
    fn write<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.file.write(rest) {
                Ok(count) if count > 0 => {
                    self.written += count as u64;
                    rest = &rest[count..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                failed => {
                    let error = failed.err().unwrap_or_else(|| io::ErrorKind::WriteZero.into());
                    self.warning.get_or_insert_with(|| unwritten(&error));
                    // What follows is not the beginning.
                    self.full = true;
                    break;
                }
            }
        }
        rest
    }

    fn count(&mut self, dropped: Dropped) {
        self.dropped.bytes += dropped.bytes;
        self.dropped.lines += dropped.lines;
    }
}

fn unwritten(error: &io::Error) -> String {
    format!("output could not be written ({error}); make room in the data folder")
}

impl Dropped {
    fn all_of(bytes: &[u8]) -> Self {
        let ends = memchr::memchr_iter(b'\n', bytes).count() as u64;
        let is_cut = !bytes.is_empty() && !bytes.ends_with(b"\n");
        Self { bytes: bytes.len() as u64, lines: ends + u64::from(is_cut) }
    }
}

/// The last bytes and lines of what was printed.
#[derive(Debug)]
struct End {
    bytes: Vec<u8>,
    max_bytes: usize,
    max_lines: u64,
    /// What was dropped since it was last taken.
    dropped: Dropped,
    /// Whether the last byte that was dropped ends a line.
    starts_line: bool,
}

impl End {
    fn new(max_bytes: usize, max_lines: u64) -> Self {
        Self {
            bytes: Vec::new(),
            max_bytes,
            max_lines,
            dropped: Dropped::default(),
            starts_line: true,
        }
    }

    fn push(&mut self, chunk: &[u8]) {
        let surplus = (self.bytes.len() + chunk.len()).saturating_sub(self.max_bytes);
        let of_old = surplus.min(self.bytes.len());
        self.drop_first(of_old);
        let skipped = &chunk[..surplus - of_old];
        self.count(skipped);
        self.bytes.extend_from_slice(&chunk[skipped.len()..]);
        if self.bytes.len() as u64 <= self.max_lines {
            // Not even if each byte were a line.
            return;
        }
        let lines = Dropped::all_of(&self.bytes).lines;
        if lines > self.max_lines {
            let surplus = usize::try_from(lines - self.max_lines).unwrap_or(usize::MAX);
            let end = memchr::memchr_iter(b'\n', &self.bytes).nth(surplus - 1);
            self.drop_first(end.map_or(self.bytes.len(), |end| end + 1));
        }
    }

    /// What was dropped and what is there, which begins with a line if it can.
    fn take(&mut self) -> (Dropped, Vec<u8>) {
        if !self.starts_line
            && let Some(end) = memchr::memchr(b'\n', &self.bytes)
            && end + 1 < self.bytes.len()
        {
            self.drop_first(end + 1);
        }
        let mut dropped = std::mem::take(&mut self.dropped);
        dropped.lines += u64::from(!self.starts_line);
        self.starts_line = true;
        (dropped, std::mem::take(&mut self.bytes))
    }

    fn drop_first(&mut self, count: usize) {
        if count == 0 {
            return;
        }
        let rest = self.bytes.split_off(count);
        let first = std::mem::replace(&mut self.bytes, rest);
        self.count(&first);
    }

    fn count(&mut self, dropped: &[u8]) {
        let Some(last) = dropped.last() else { return };
        self.dropped.bytes += dropped.len() as u64;
        self.dropped.lines += memchr::memchr_iter(b'\n', dropped).count() as u64;
        self.starts_line = *last == b'\n';
    }
}

/// The end of standard error, and its newest line.
#[derive(Debug)]
pub(super) struct Tail {
    /// For who finds the job without its supervisor.
    file: File,
    in_file: usize,
    tail: Vec<u8>,
    line: Vec<u8>,
}

impl Tail {
    pub(super) fn new(file: File) -> Self {
        Self { file, in_file: 0, tail: Vec::new(), line: Vec::new() }
    }

    /// The newest line in what was said, if one has come to its end.
    pub(super) fn push(&mut self, chunk: &[u8]) -> Option<String> {
        self.keep(chunk);
        let mut newest = None;
        // Bars are drawn again and again on one line.
        for part in chunk.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
            let room = MAX_STATUS.saturating_sub(self.line.len());
            self.line.extend_from_slice(&part[..part.len().min(room)]);
            if part.ends_with(b"\n") || part.ends_with(b"\r") {
                newest = self.take_line().or(newest);
            }
        }
        newest
    }

    /// What is kept.
    pub(super) fn text(&self) -> String {
        text(&self.tail)
    }

    fn take_line(&mut self) -> Option<String> {
        let line = String::from_utf8_lossy(&self.line).trim().to_owned();
        self.line.clear();
        (!line.is_empty()).then_some(line)
    }

    fn keep(&mut self, chunk: &[u8]) {
        self.tail.extend_from_slice(chunk);
        let surplus = self.tail.len().saturating_sub(TAIL);
        self.tail.drain(..surplus);
        // The file is read when the supervisor was killed; that it cannot be written hurts nobody else.
        let _ = if self.in_file + chunk.len() > 4 * TAIL {
            self.in_file = self.tail.len();
            self.rewrite()
        } else {
            self.in_file += chunk.len();
            self.file.write_all(chunk)
        };
    }

    /// The file is opened for appending, so that writing goes on at its new end.
    fn rewrite(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.write_all(&self.tail)
    }
}

/// The end of what was said, as text.
pub(super) fn text(tail: &[u8]) -> String {
    let tail = &tail[tail.len().saturating_sub(TAIL)..];
    String::from_utf8_lossy(tail).into_owned()
}

#[cfg(test)]
mod tests;
