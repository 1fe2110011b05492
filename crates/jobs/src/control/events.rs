//! The file `events`, with which a supervisor records input requests and gaps at positions of the
//! output.
//!
//! A record is written after the output before it, and before the output after it. A reader that
//! reads the output first and the records second therefore knows all records inside that output.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    path::PathBuf,
};

use serde::{Deserialize, Serialize};

use super::message::{InputLine, StepLine};

/// Maximum size of the file. Further input requests are rejected.
const MAX_EVENTS: u64 = 4 << 20;

/// A record of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Position in the file `out`, in bytes.
    pub(crate) at: u64,
    pub(crate) what: What,
}

/// Content of a record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum What {
    /// An input request. The first one of a job has number 1.
    Input { number: u32, request: InputLine },
    /// The start or the end of a step. Steps and input requests share their numbers.
    Step { number: u32, request: StepLine },
    /// Output was dropped.
    Gap { bytes: u64, lines: u64 },
}

/// Writer of the file.
#[derive(Debug)]
pub(crate) struct Events {
    file: File,
    written: u64,
}

impl Events {
    pub(crate) fn new(file: File) -> Self {
        Self { file, written: 0 }
    }

    /// Returns the number of bytes that can be read.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Appends a record completely or not at all.
    pub(crate) fn append(&mut self, record: &Record) -> io::Result<()> {
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        if self.written + line.len() as u64 > MAX_EVENTS {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("the input requests and steps of one command exceed {MAX_EVENTS} bytes"),
            ));
        }
        if let Err(error) = self.file.write_all(&line) {
            // A partial record would corrupt the next one.
            let _ = self.file.set_len(self.written);
            return Err(error);
        }
        self.written += line.len() as u64;
        Ok(())
    }
}

/// Reader of the file.
#[derive(Debug)]
pub(crate) struct Records {
    path: PathBuf,
    file: Option<File>,
    offset: u64,
    ahead: Vec<u8>,
    next: Option<Record>,
}

impl Records {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, file: None, offset: 0, ahead: Vec::new(), next: None }
    }

    /// Returns the position of the next record that has been read.
    pub(crate) fn next_at(&mut self) -> Option<u64> {
        self.decode();
        self.next.as_ref().map(|record| record.at)
    }

    pub(crate) fn take(&mut self) -> Option<What> {
        self.decode();
        self.next.take().map(|record| record.what)
    }

    /// Reads new records. Returns whether there were any.
    pub(crate) fn read_more(&mut self) -> io::Result<bool> {
        if self.file.is_none() {
            self.file = match File::open(&self.path) {
                Ok(file) => Some(file),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
                Err(error) => return Err(error),
            };
        }
        let Some(file) = &mut self.file else { return Ok(false) };
        // Starts at the end of the last complete record: a failed append may have truncated the
        // file.
        file.seek(SeekFrom::Start(self.offset))?;
        let mut read = Vec::new();
        file.read_to_end(&mut read)?;
        let whole = memchr::memrchr(b'\n', &read).map_or(0, |end| end + 1);
        self.offset += whole as u64;
        self.ahead.extend_from_slice(&read[..whole]);
        Ok(whole > 0)
    }

    fn decode(&mut self) {
        while self.next.is_none() {
            let Some(end) = memchr::memchr(b'\n', &self.ahead) else { return };
            let line: Vec<u8> = self.ahead.drain(..=end).collect();
            // Skips records of a newer supervisor, which cannot be parsed.
            self.next = serde_json::from_slice(&line).ok();
        }
    }
}
