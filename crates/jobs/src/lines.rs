//! Reads what a command has printed, line by line, while it grows.

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

/// A reader of the files `out` and `events`: lines, and what was recorded between them.
#[derive(Debug)]
pub(super) struct Reader {
    lines: Lines,
    records: Records,
    /// Number of the last line that is skipped.
    after: u64,
}

impl Reader {
    /// Reads from a position on. A record at that position counts as not read.
    pub(super) fn new(out: PathBuf, events: PathBuf, position: Position) -> Self {
        Self { lines: Lines::new(out, position), records: Records::new(events), after: 0 }
    }

    /// Skips the lines up to this number.
    pub(super) fn after_line(self, count: u64) -> Self {
        Self { after: count, ..self }
    }

    pub(super) fn position(&self) -> Position {
        self.lines.position
    }

    /// The next line or record. `over` says that nothing will be added to the files, so that what has no end is a line too.
    ///
    /// It reads where it is called, without a thread: the files have just been written, so they are in memory.
    pub(super) fn next(&mut self, over: bool) -> io::Result<Option<Event>> {
        loop {
            match self.next_of_all(over)? {
                Some(Event::Line(_)) if self.lines.position.line <= self.after => {}
                event => return Ok(event),
            }
        }
    }

    fn next_of_all(&mut self, over: bool) -> io::Result<Option<Event>> {
        loop {
            let here = self.lines.position.offset;
            let stop = self.records.next_at();
            if let Some(at) = stop.filter(|at| *at <= here) {
                match self.records.take() {
                    // Before the position that was asked for.
                    _ if at < here => continue,
                    Some(What::Input { number, request }) => {
                        return Ok(Some(Event::Input { number, request }));
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
            // In this order: a record is written before the output that follows it.
            let more = self.lines.read_on()?;
            if !self.records.read_on()? && !more {
                let rest = if over { self.lines.rest() } else { None };
                return Ok(rest.map(Event::Line));
            }
        }
    }
}

/// A reader of the file `out`.
#[derive(Debug)]
struct Lines {
    path: PathBuf,
    /// None until the file is there.
    file: Option<File>,
    /// What is read and not yet handed out.
    ahead: Vec<u8>,
    /// Where in `ahead` the next line begins.
    start: usize,
    /// How much of `ahead` is known to have no line end, from `start`.
    searched: usize,
    position: Position,
}

impl Lines {
    fn new(path: PathBuf, position: Position) -> Self {
        Self { path, file: None, ahead: Vec::new(), start: 0, searched: 0, position }
    }

    /// The next line of what is read. None goes beyond `stop`, in bytes from here.
    fn take_line(&mut self, stop: Option<u64>) -> Option<Line> {
        let rest = &self.ahead[self.start..];
        let stop = stop.and_then(|stop| usize::try_from(stop).ok()).unwrap_or(usize::MAX);
        // A line of the greatest length has its end one further.
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

    /// What is read and has no end.
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

    /// Whether there was more to read.
    fn read_on(&mut self) -> io::Result<bool> {
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
