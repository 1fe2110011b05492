//! Stored output of a command: the start and the end of standard output, and the end of standard
//! error. Memory is bounded.

use std::{
    fs::File,
    io::{self, Write},
};

use super::{
    JobSpec, MAX_LINE,
    control::{Events, Record, What},
};

/// Stored bytes of standard error.
const TAIL: usize = 16 << 10;
/// Maximum bytes of a status line.
const MAX_STATUS: usize = 1 << 10;
/// Maximum stored bytes of the end of standard output. At most a quarter of the limit.
const MAX_END: u64 = 64 << 10;

/// Standard output within its limits.
///
/// The start is written as it is printed. The end is written at the exit and at each input request.
/// The output between them is dropped, and a record contains its size.
#[derive(Debug)]
pub(super) struct Output {
    file: File,
    written: u64,
    bytes_left: u64,
    lines_left: u64,
    /// Printed bytes of the current line or piece.
    in_line: usize,
    /// Whether all further output goes to `end`.
    full: bool,
    end: End,
    dropped: Dropped,
    warning: Option<String>,
}

/// Dropped output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Dropped {
    pub(super) bytes: u64,
    /// Lines that were dropped completely or partially.
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

    /// Returns the number of bytes that can be read.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Returns a warning if output within the limits could not be written.
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

    /// Makes all stored output readable: writes a record of the dropped output, and then the end.
    pub(super) fn flush(&mut self, events: &mut Events) {
        let (dropped, end) = self.end.take();
        if dropped.bytes > 0 {
            let Dropped { bytes, lines } = dropped;
            let gap = Record { at: self.written, what: What::Gap { bytes, lines } };
            self.count(dropped);
            if let Err(error) = events.append(&gap) {
                // Without the record, the end would look like a continuation of the start.
                self.warning.get_or_insert_with(|| unwritten(&error));
                self.count(Dropped::all_of(&end));
                return;
            }
        }
        let lost = Dropped::all_of(self.write(&end));
        self.count(lost);
    }

    /// Writes the remaining output after the end of the stream.
    pub(super) fn close(&mut self, events: &mut Events) -> (Dropped, Option<String>) {
        self.flush(events);
        if self.dropped.bytes == 0 {
            // All bytes of a failed write were written later, so the warning is obsolete.
            self.warning = None;
        }
        if let Err(error) = self.file.sync_all() {
            self.warning.get_or_insert_with(|| unwritten(&error));
        }
        (self.dropped, self.warning.take())
    }

    /// Returns the number of bytes that belong to the current line or piece.
    fn part(&mut self, rest: &[u8]) -> usize {
        if self.in_line == MAX_LINE && rest[0] != b'\n' {
            self.in_line = 0;
        }
        // The line break may be one byte after the maximum length.
        let longest = &rest[..rest.len().min(MAX_LINE + 1 - self.in_line)];
        match memchr::memchr(b'\n', longest) {
            Some(end) => end + 1,
            None => longest.len().min(MAX_LINE - self.in_line),
        }
    }

    /// Returns how many of `length` bytes of a line are stored as part of the start.
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

    /// Writes bytes, and returns those that could not be written.
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
                    // Later output is no longer part of the start.
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
    format!("writing output failed ({error}); free space in the data folder")
}

impl Dropped {
    fn all_of(bytes: &[u8]) -> Self {
        let ends = memchr::memchr_iter(b'\n', bytes).count() as u64;
        let is_cut = !bytes.is_empty() && !bytes.ends_with(b"\n");
        Self { bytes: bytes.len() as u64, lines: ends + u64::from(is_cut) }
    }
}

/// Last bytes and lines of the output.
#[derive(Debug)]
struct End {
    bytes: Vec<u8>,
    max_bytes: usize,
    max_lines: u64,
    /// Output dropped since the last `take`.
    dropped: Dropped,
    /// Whether the last dropped byte ends a line.
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
            // The line limit holds even if each byte were a line.
            return;
        }
        let lines = Dropped::all_of(&self.bytes).lines;
        if lines > self.max_lines {
            let surplus = usize::try_from(lines - self.max_lines).unwrap_or(usize::MAX);
            let end = memchr::memchr_iter(b'\n', &self.bytes).nth(surplus - 1);
            self.drop_first(end.map_or(self.bytes.len(), |end| end + 1));
        }
    }

    /// Returns the dropped output and the stored end, which starts at a line if possible.
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

/// End of standard error, and its newest line.
#[derive(Debug)]
pub(super) struct Tail {
    /// Copy for a process that finds the job without its supervisor.
    file: File,
    in_file: usize,
    tail: Vec<u8>,
    line: Vec<u8>,
}

impl Tail {
    pub(super) fn new(file: File) -> Self {
        Self { file, in_file: 0, tail: Vec::new(), line: Vec::new() }
    }

    /// Adds output. Returns the newest line that it completes.
    pub(super) fn push(&mut self, chunk: &[u8]) -> Option<String> {
        self.keep(chunk);
        let mut newest = None;
        // A carriage return ends a line too, because progress bars use it to redraw.
        for part in chunk.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
            let room = MAX_STATUS.saturating_sub(self.line.len());
            self.line.extend_from_slice(&part[..part.len().min(room)]);
            if part.ends_with(b"\n") || part.ends_with(b"\r") {
                newest = self.take_line().or(newest);
            }
        }
        newest
    }

    /// Returns the stored text.
    pub(super) fn text(&self) -> String {
        text(&self.tail)
    }

    fn take_line(&mut self) -> Option<String> {
        let line = status(&self.line);
        self.line.clear();
        line
    }

    fn keep(&mut self, chunk: &[u8]) {
        self.tail.extend_from_slice(chunk);
        let surplus = self.tail.len().saturating_sub(TAIL);
        self.tail.drain(..surplus);
        // The file is needed only if the supervisor is killed, so a failed write is ignored.
        let _ = if self.in_file + chunk.len() > 4 * TAIL {
            self.in_file = self.tail.len();
            self.rewrite()
        } else {
            self.in_file += chunk.len();
            self.file.write_all(chunk)
        };
    }

    /// Replaces the content of the file, which is opened for appending.
    fn rewrite(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.write_all(&self.tail)
    }
}

/// Returns the last line of an ended command's standard error, complete or not.
pub(super) fn last_line(stderr_tail: &str) -> Option<String> {
    let mut lines = stderr_tail.rsplit(['\n', '\r']).map(str::as_bytes);
    lines.find_map(|line| status(&line[..line.len().min(MAX_STATUS)]))
}

/// Returns a line as a status, unless it is empty.
fn status(line: &[u8]) -> Option<String> {
    let line = String::from_utf8_lossy(line).trim().to_owned();
    (!line.is_empty()).then_some(line)
}

/// Returns the end of standard error as text.
pub(super) fn text(tail: &[u8]) -> String {
    let tail = &tail[tail.len().saturating_sub(TAIL)..];
    String::from_utf8_lossy(tail).into_owned()
}

#[cfg(test)]
mod tests;
