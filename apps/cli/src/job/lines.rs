//! Reads what a command has printed, line by line, while it grows.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::PathBuf,
};

use serde::{Deserialize, Serialize};

use super::MAX_LINE;

/// A line, or a piece of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// What was printed, without the line end. It need not be text.
    pub bytes: Vec<u8>,
    /// Whether the line ends here. If not, it goes on in the next one, because it is longer than
    /// [`MAX_LINE`](super::MAX_LINE), or the output ends without a line end.
    pub ended: bool,
}

/// Where a reader is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// How many lines were read.
    pub line: u64,
    /// How many bytes were read.
    pub offset: u64,
}

/// A reader of the file `out`.
#[derive(Debug)]
pub(super) struct Lines {
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
    pub(super) fn new(path: PathBuf, position: Position) -> Self {
        Self { path, file: None, ahead: Vec::new(), start: 0, searched: 0, position }
    }

    pub(super) fn position(&self) -> Position {
        self.position
    }

    /// The next line. `over` says that nothing will be added to the file, so that what has no end is a line too.
    ///
    /// It reads where it is called, without a thread: the file has just been written, so it is in memory.
    pub(super) fn next(&mut self, over: bool) -> io::Result<Option<Line>> {
        loop {
            if let Some(line) = self.take_line() {
                return Ok(Some(line));
            }
            if !self.read_on()? {
                let rest = self.ahead.len() - self.start;
                return Ok((over && rest > 0).then(|| self.hand_out(rest, false)));
            }
        }
    }

    fn take_line(&mut self) -> Option<Line> {
        let rest = &self.ahead[self.start..];
        // A line of the greatest length has its end one further.
        let seen = &rest[..rest.len().min(MAX_LINE + 1)];
        match memchr::memchr(b'\n', &seen[self.searched..]) {
            Some(end) => Some(self.hand_out(self.searched + end, true)),
            None if seen.len() > MAX_LINE => Some(self.hand_out(MAX_LINE, false)),
            None => {
                self.searched = seen.len();
                None
            }
        }
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
