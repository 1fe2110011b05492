//! The file `events`: what a supervisor records between the bytes of a command's output, each with its place.
//!
//! A record is written after the output that stands before it and before the output that follows it. So who reads output
//! first and records second knows every record that stands inside that output.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    path::PathBuf,
};

use serde::{Deserialize, Serialize};

use super::message::InputLine;

/// How large the file may become. Beyond it, input requests are rejected.
const MAX_EVENTS: u64 = 4 << 20;

/// A record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Place in the file `out`, in bytes.
    pub(crate) at: u64,
    pub(crate) what: What,
}

/// What stands there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum What {
    /// An input request; the first of a job has the number 1.
    Input { number: u32, request: InputLine },
    /// Output was not kept.
    Gap { bytes: u64, lines: u64 },
}

/// The writer of the file.
#[derive(Debug)]
pub(crate) struct Events {
    file: File,
    written: u64,
}

impl Events {
    pub(crate) fn new(file: File) -> Self {
        Self { file, written: 0 }
    }

    /// How many bytes can be read.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Appends a record, all of it or nothing.
    pub(crate) fn append(&mut self, record: &Record) -> io::Result<()> {
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        if self.written + line.len() as u64 > MAX_EVENTS {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("the input requests of one command take at most {MAX_EVENTS} bytes"),
            ));
        }
        if let Err(error) = self.file.write_all(&line) {
            // Half a record would spoil the next one.
            let _ = self.file.set_len(self.written);
            return Err(error);
        }
        self.written += line.len() as u64;
        Ok(())
    }
}

/// The reader of the file.
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

    /// Place of the next record, as far as the file has been read.
    pub(crate) fn next_at(&mut self) -> Option<u64> {
        self.decode();
        self.next.as_ref().map(|record| record.at)
    }

    pub(crate) fn take(&mut self) -> Option<What> {
        self.decode();
        self.next.take().map(|record| record.what)
    }

    /// Reads on. Returns whether there was more.
    pub(crate) fn read_on(&mut self) -> io::Result<bool> {
        if self.file.is_none() {
            self.file = match File::open(&self.path) {
                Ok(file) => Some(file),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
                Err(error) => return Err(error),
            };
        }
        let Some(file) = &mut self.file else { return Ok(false) };
        // From where the last whole read ended: the file may have been shortened by a record that had no room.
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
            // One that cannot be read is of a newer supervisor.
            self.next = serde_json::from_slice(&line).ok();
        }
    }
}
