//! Lines on a pipe: a message on each, in both directions.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout},
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// The input and output of a server.
pub(super) struct Pipe {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Pipe {
    pub(super) fn to(server: &mut Child) -> Result<Self> {
        Ok(Self {
            input: server.stdin.take().context("no input")?,
            output: BufReader::new(server.stdout.take().context("no output")?),
        })
    }

    pub(super) fn say(&mut self, message: &Value) -> Result<()> {
        Ok(writeln!(self.input, "{message}")?)
    }

    /// Waits for the next message.
    pub(super) fn hear(&mut self) -> Result<Value> {
        let mut line = String::new();
        ensure!(self.output.read_line(&mut line)? > 0, "the server has closed its output");
        serde_json::from_str(&line).with_context(|| format!("no JSON on the pipe: {line}"))
    }
}
