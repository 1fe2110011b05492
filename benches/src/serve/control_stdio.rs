//! The control for pipes: a blocking loop that reads a line, responds and flushes.

use std::io::{self, BufRead, Write};

use anyhow::Result;

use super::control_http::{modern_result, respond};

pub(super) fn run() -> Result<()> {
    let mut input = io::stdin().lock();
    let mut output = io::BufWriter::new(io::stdout().lock());
    let mut line = Vec::new();
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let mut answer = respond(&line, modern_result)?;
        answer.push(b'\n');
        output.write_all(&answer)?;
        output.flush()?;
    }
}
