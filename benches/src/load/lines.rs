//! A legacy client on a pipe with one call at a time. The server may send other messages between
//! the responses, as a bridge does.

use std::{
    io::{BufRead, BufReader, Write},
    process::{ChildStdin, ChildStdout},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};

use super::Generator;
use crate::messages::{FIRST_ID, INITIALIZE, INITIALIZED, Numbered, TEXT, legacy_call, next_id};

/// A legacy client on a pipe.
#[derive(Debug)]
pub(crate) struct LineLoad {
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    request: Numbered,
    id: u32,
    line: String,
}

impl LineLoad {
    /// Performs the handshake and makes one call.
    pub(crate) fn open(stdin: ChildStdin, stdout: ChildStdout) -> Result<Self> {
        let request = format!("{}\n", legacy_call());
        let mut load = Self {
            stdin,
            stdout: BufReader::new(stdout),
            request: Numbered::new(request).context("the request has no ID")?,
            id: FIRST_ID,
            line: String::new(),
        };
        load.stdin.write_all(format!("{INITIALIZE}\n").as_bytes())?;
        load.read_response(1)?;
        load.stdin.write_all(format!("{INITIALIZED}\n").as_bytes())?;
        load.call()?;
        Ok(load)
    }

    fn call(&mut self) -> Result<()> {
        self.id = next_id(self.id);
        self.request.set(self.id);
        self.stdin.write_all(self.request.bytes())?;
        self.read_response(self.id)?;
        ensure!(self.line.contains(TEXT), "not the response to our call: {}", self.line);
        Ok(())
    }

    /// Reads lines until the response with an ID.
    fn read_response(&mut self, id: u32) -> Result<()> {
        let ids = [format!(r#""id":{id}"#), format!(r#""id": {id}"#)];
        loop {
            self.line.clear();
            let read = self.stdout.read_line(&mut self.line)?;
            ensure!(read > 0, "the server closed its standard output");
            if ids.iter().any(|id| self.line.contains(id.as_str())) {
                return Ok(());
            }
        }
    }
}

impl Generator for LineLoad {
    fn run(&mut self, time: Duration) -> Result<u64> {
        let end = Instant::now() + time;
        let mut answered = 0;
        while answered == 0 || Instant::now() < end {
            self.call()?;
            answered += 1;
        }
        Ok(answered)
    }
}
