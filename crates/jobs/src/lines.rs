//! Incremental reader of the output of a command.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::PathBuf,
};

use super::{
    control::{Records, What},
    line::{Line, MAX_LINE, Position},
    spec::Event,
};

/// Reader of the files `out` and `events`: lines, and the records between them.
#[derive(Debug)]
pub(super) struct Reader {
    lines: Lines,
    records: Records,
    /// Number of the last line that is skipped.
    after: u64,
}

impl Reader {
    /// Creates a reader that starts at `position`. Records at that position count as unread.
    pub(super) fn new(out: PathBuf, events: PathBuf, position: Position) -> Self {
        Self { lines: Lines::new(out, position), records: Records::new(events), after: 0 }
    }

    /// Skips the first `count` lines.
    pub(super) fn after_line(self, count: u64) -> Self {
        Self { after: count, ..self }
    }

    pub(super) fn position(&self) -> Position {
        self.lines.position
    }

    /// Returns the next line or record. `over` means that the files are complete, so that an
    /// unterminated line is returned too.
    ///
    /// Reads on the calling thread: the files were just written, so they are in the page cache.
    pub(super) fn next(&mut self, over: bool) -> io::Result<Option<Event>> {
        loop {
            match self.next_unfiltered(over)? {
                Some(Event::Line(_)) if self.lines.position.line <= self.after => {}
                event => return Ok(event),
            }
        }
    }

    fn next_unfiltered(&mut self, over: bool) -> io::Result<Option<Event>> {
        loop {
            let here = self.lines.position.offset;
            let stop = self.records.next_at();
            if let Some(at) = stop.filter(|at| *at <= here) {
                match self.records.take() {
                    // The record is before the requested position.
                    _ if at < here => continue,
                    Some(What::Input { number, request }) => {
                        return Ok(Some(Event::Input { number, request }));
                    }
                    Some(What::Step { number, request }) => {
                        return Ok(Some(Event::Step { number, request }));
                    }
                    Some(What::Gap { bytes, lines }) => {
                        return Ok(Some(Event::Gap { bytes, lines }));
                    }
                    None => continue,
                }
            }
            if let Some(line) = self.lines.take_line(stop.map(|at| at - here)) {
                return Ok(Some(Event::Line(line)));
            }
            // In this order, because a record is written before the output that follows it.
            let more = self.lines.read_more()?;
            if !self.records.read_more()? && !more {
                let rest = if over { self.lines.rest() } else { None };
                return Ok(rest.map(Event::Line));
            }
        }
    }
}

/// Reader of the file `out`.
#[derive(Debug)]
struct Lines {
    path: PathBuf,
    /// `None` until the file exists.
    file: Option<File>,
    /// Bytes that were read but not returned.
    ahead: Vec<u8>,
    /// Start of the next line in `ahead`.
    start: usize,
    /// Number of bytes from `start` that contain no line break.
    searched: usize,
    position: Position,
}

impl Lines {
    fn new(path: PathBuf, position: Position) -> Self {
        Self { path, file: None, ahead: Vec::new(), start: 0, searched: 0, position }
    }

    /// Returns the next line in the buffer. No line extends beyond `stop`, which is relative to the
    /// current position.
    fn take_line(&mut self, stop: Option<u64>) -> Option<Line> {
        let rest = &self.ahead[self.start..];
        let stop = stop.and_then(|stop| usize::try_from(stop).ok()).unwrap_or(usize::MAX);
        // The line break of a line with the maximum length is one byte further.
        let seen = &rest[..rest.len().min(MAX_LINE + 1).min(stop)];
        match memchr::memchr(b'\n', &seen[self.searched.min(seen.len())..]) {
            Some(end) => Some(self.hand_out(self.searched + end, true)),
            None if seen.len() > MAX_LINE => Some(self.hand_out(MAX_LINE, false)),
            None if seen.len() == stop => Some(self.hand_out(stop, false)),
            None => {
                self.searched = seen.len();
                None
            }
        }
    }

    /// Returns the unterminated line in the buffer.
    fn rest(&mut self) -> Option<Line> {
        let rest = self.ahead.len() - self.start;
        (rest > 0).then(|| self.hand_out(rest, false))
    }

    fn hand_out(&mut self, length: usize, ended: bool) -> Line {
        let bytes = self.ahead[self.start..self.start + length].to_vec();
        let taken = length + usize::from(ended);
        self.start += taken;
        self.searched = 0;
        self.position.line += 1;
        self.position.offset += taken as u64;
        Line { bytes, ended }
    }

    /// Reads more bytes. Returns whether there were any.
    fn read_more(&mut self) -> io::Result<bool> {
        let Some(file) = self.open()? else { return Ok(false) };
        let mut chunk = [0; 16 * 1024];
        let count = file.read(&mut chunk)?;
        self.ahead.drain(..self.start);
        self.start = 0;
        self.ahead.extend_from_slice(&chunk[..count]);
        Ok(count > 0)
    }

    fn open(&mut self) -> io::Result<Option<&mut File>> {
        if self.file.is_none() {
            let mut file = match File::open(&self.path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error),
            };
            file.seek(SeekFrom::Start(self.position.offset))?;
            self.file = Some(file);
        }
        Ok(self.file.as_mut())
    }
}
