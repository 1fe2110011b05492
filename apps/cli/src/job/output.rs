//! What is kept of what a command prints: the beginning of its standard output, the end of its standard error.
//!
//! Neither grows in memory, whatever is printed.

use std::{
    fs::File,
    io::{self, Write},
};

use super::{Ask, JobSpec, MARKER, MAX_LINE};

/// How much of standard error is kept.
const TAIL: usize = 16 << 10;
/// How long a line of standard error may be to be told whole.
const MAX_STATUS: usize = 1 << 10;

/// The beginning of standard output, within the limits. All that follows is counted and dropped.
#[derive(Debug)]
pub(super) struct Output {
    file: File,
    written: u64,
    bytes_left: u64,
    lines_left: u64,
    /// How much of the present line, or piece of a line, has been printed.
    in_line: usize,
    /// From here on nothing is kept: what is kept is always the beginning.
    full: bool,
    dropped: Dropped,
    /// Whether a part of the present line was dropped.
    cut: bool,
    trouble: Option<String>,
    /// The present line, as long as it may become a question.
    candidate: Option<Vec<u8>>,
    asks: bool,
}

/// What was not kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Dropped {
    pub(super) bytes: u64,
    pub(super) lines: u64,
}

/// The questions in what was printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Questions {
    /// Those that can be read.
    pub(super) asked: u32,
    /// Whether there was one beyond the limits, which nobody will see.
    pub(super) lost: bool,
}

impl Output {
    pub(super) fn new(file: File, spec: &JobSpec) -> Self {
        Self {
            file,
            written: 0,
            bytes_left: spec.max_output_bytes,
            lines_left: spec.max_output_lines,
            in_line: 0,
            full: false,
            dropped: Dropped::default(),
            cut: false,
            trouble: None,
            candidate: spec.asks.then(Vec::new),
            asks: spec.asks,
        }
    }

    /// How many bytes can be read.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    pub(super) fn push(&mut self, chunk: &[u8]) -> Questions {
        let mut questions = Questions::default();
        if self.full && !self.may_ask(chunk) {
            self.skip(chunk);
            return questions;
        }
        let mut kept = 0;
        let mut rest = chunk;
        while !rest.is_empty() {
            let part = self.part(rest);
            rest = &rest[part.len()..];
            kept += self.admit(part.len());
            self.in_line += part.len();
            self.remember(part);
            if part.ends_with(b"\n") {
                self.end_line(&mut questions);
            }
        }
        self.write(&chunk[..kept]);
        questions
    }

    /// Nothing more will be printed.
    pub(super) fn close(&mut self) -> (Dropped, Option<String>) {
        if self.cut {
            self.dropped.lines += 1;
            self.cut = false;
        }
        if let Err(error) = self.file.sync_all() {
            self.trouble.get_or_insert_with(|| unwritten(&error));
        }
        (self.dropped, self.trouble.take())
    }

    /// What belongs to the present line, up to its end or the greatest length of a line.
    fn part<'c>(&mut self, rest: &'c [u8]) -> &'c [u8] {
        if self.in_line == MAX_LINE && rest[0] != b'\n' {
            self.in_line = 0;
            // A question is one piece.
            self.candidate = None;
        }
        // The line end may stand one further than the longest line.
        let longest = &rest[..rest.len().min(MAX_LINE + 1 - self.in_line)];
        match memchr::memchr(b'\n', longest) {
            Some(end) => &rest[..=end],
            None => &rest[..longest.len().min(MAX_LINE - self.in_line)],
        }
    }

    /// How much of so many bytes is kept.
    fn admit(&mut self, length: usize) -> usize {
        if !self.full && self.in_line == 0 {
            self.full = self.lines_left == 0;
            self.lines_left = self.lines_left.saturating_sub(1);
        }
        let kept = if self.full { 0 } else { self.bytes_left.min(length as u64) as usize };
        self.bytes_left -= kept as u64;
        if kept < length {
            self.full = true;
            self.cut = true;
            self.dropped.bytes += (length - kept) as u64;
        }
        kept
    }

    fn remember(&mut self, part: &[u8]) {
        let Some(candidate) = &mut self.candidate else { return };
        candidate.extend_from_slice(part);
        let known = candidate.len().min(MARKER.len());
        if candidate[..known] != MARKER.as_bytes()[..known] {
            self.candidate = None;
        }
    }

    fn end_line(&mut self, questions: &mut Questions) {
        if self.candidate.take().is_some_and(|line| Ask::read(&line).is_some()) {
            if self.cut {
                questions.lost = true;
            } else {
                questions.asked += 1;
            }
        }
        self.dropped.lines += u64::from(self.cut);
        self.cut = false;
        self.in_line = 0;
        self.candidate = self.asks.then(Vec::new);
    }

    /// Whether there may be a question in what is dropped.
    fn may_ask(&self, chunk: &[u8]) -> bool {
        self.asks
            && (self.candidate.as_ref().is_some_and(|line| !line.is_empty())
                || memchr::memchr(MARKER.as_bytes()[0], chunk).is_some())
    }

    /// Only counts. A flood may be a thousand times what is kept.
    fn skip(&mut self, chunk: &[u8]) {
        self.dropped.bytes += chunk.len() as u64;
        self.dropped.lines += memchr::memchr_iter(b'\n', chunk).count() as u64;
        if !chunk.is_empty() {
            let is_ended = chunk.ends_with(b"\n");
            self.cut = !is_ended;
            self.in_line = usize::from(!is_ended);
            self.candidate = (is_ended && self.asks).then(Vec::new);
        }
    }

    fn write(&mut self, bytes: &[u8]) {
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
                    self.trouble = Some(unwritten(&error));
                    // Nothing comes here again: what is kept is the beginning, without holes.
                    self.full = true;
                    self.dropped.bytes += rest.len() as u64;
                    self.dropped.lines += memchr::memchr_iter(b'\n', rest).count() as u64;
                    return;
                }
            }
        }
    }
}

fn unwritten(error: &io::Error) -> String {
    format!("the rest of the output could not be written ({error}); make room and run it again")
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
