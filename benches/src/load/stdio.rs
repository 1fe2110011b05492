//! A pipe to a server with a fixed number of calls in flight. Responses must come in order.

use std::{
    io::{Read, Write},
    process::{ChildStdin, ChildStdout},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};

use super::template;
use crate::messages::{FIRST_ID, Numbered, TEXT, next_id};

/// A client on a pipe.
#[derive(Debug)]
pub(crate) struct Load {
    stdin: ChildStdin,
    stdout: ChildStdout,
    request: Numbered,
    answer: Numbered,
    asked: u32,
    answered: u32,
    /// Bytes of an incomplete line.
    rest: Vec<u8>,
    out: Vec<u8>,
}

impl Load {
    /// Makes one call. Requests are `request` with a line end.
    pub(crate) fn open(
        mut stdin: ChildStdin,
        mut stdout: ChildStdout,
        request: &str,
    ) -> Result<Self> {
        let request = format!("{request}\n").into_bytes();
        stdin.write_all(&request)?;
        let mut answer = Vec::new();
        while !answer.ends_with(b"\n") {
            read_into(&mut stdout, &mut answer)?;
        }
        let request = Numbered::new(request).context("the request has no ID")?;
        Ok(Self {
            stdin,
            stdout,
            request,
            answer: template(&answer, TEXT)?,
            asked: FIRST_ID,
            answered: FIRST_ID,
            rest: Vec::new(),
            out: Vec::new(),
        })
    }

    /// The response line of the server.
    pub(crate) fn answer(&self) -> &[u8] {
        self.answer.bytes()
    }

    /// Calls for `time` with `in_flight` calls in flight and returns the number of responses.
    /// Nothing is in flight afterwards.
    pub(crate) fn run(&mut self, in_flight: usize, time: Duration) -> Result<u64> {
        let end = Instant::now() + time;
        self.ask(in_flight)?;
        let (mut waiting, mut answered) = (in_flight, 0);
        while waiting > 0 {
            let lines = self.read_answers()?;
            answered += lines as u64;
            // All requests fit into the pipe, so this never blocks on the server.
            match Instant::now() < end {
                true => self.ask(lines)?,
                false => waiting -= lines,
            }
        }
        Ok(answered)
    }

    fn ask(&mut self, calls: usize) -> Result<()> {
        self.out.clear();
        for _ in 0..calls {
            self.asked = next_id(self.asked);
            self.request.set(self.asked);
            self.out.extend_from_slice(self.request.bytes());
        }
        Ok(self.stdin.write_all(&self.out)?)
    }

    /// Waits for responses and returns their number.
    fn read_answers(&mut self) -> Result<usize> {
        read_into(&mut self.stdout, &mut self.rest)?;
        let length = self.answer.bytes().len();
        let mut lines = 0;
        for line in self.rest.chunks_exact(length) {
            self.answered = next_id(self.answered);
            self.answer.set(self.answered);
            ensure!(
                line == self.answer.bytes(),
                "not the response: {}",
                String::from_utf8_lossy(line)
            );
            lines += 1;
        }
        self.rest.drain(..lines * length);
        Ok(lines)
    }
}

fn read_into(stdout: &mut ChildStdout, got: &mut Vec<u8>) -> Result<()> {
    let filled = got.len();
    got.resize(filled + (64 << 10), 0);
    let read = stdout.read(&mut got[filled..])?;
    ensure!(read > 0, "the server closed its standard output");
    got.truncate(filled + read);
    Ok(())
}
