//! Passes the lines of a tool worker on, and kills it at a line: `line-killer FILE PROGRAM ARGUMENT…`.
//!
//! Calls name their line in their arguments: `{"key":"p1","kill":{"line":5,"is_lost":true}}` kills the
//! process at the fifth line of the call, before (`is_lost`) or after the line is passed on. A call
//! kills once. The file gets one line `KEY/STEP` per step whose result the server has recorded by
//! then.

use std::{
    collections::HashMap,
    env,
    error::Error,
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, Read, Write},
    path::PathBuf,
    process::{Child, Command, ExitCode, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use serde_json::Value;

/// A call that kills the process. It may have several runs, whose lines count together.
struct Target {
    line: u64,
    is_lost: bool,
    seen: u64,
    recorded: Vec<String>,
}

/// The calls of the process, and the process.
struct Killer {
    file: PathBuf,
    child: Child,
    targets: HashMap<String, Target>,
    /// Keys of the targets by number of the run.
    runs: HashMap<u64, String>,
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut arguments = env::args_os().skip(1);
    let usage = "usage: line-killer FILE PROGRAM ARGUMENT…";
    let file = PathBuf::from(arguments.next().ok_or(usage)?);
    let mut child = Command::new(arguments.next().ok_or(usage)?)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let stdin = child.stdin.take().ok_or("the tool worker has a standard input")?;
    let stdout = child.stdout.take().ok_or("the tool worker has a standard output")?;
    let killer =
        Arc::new(Mutex::new(Killer { file, child, targets: HashMap::new(), runs: HashMap::new() }));
    let other = Arc::clone(&killer);
    // Ends with the standard input of this process, and closes that of the tool worker.
    thread::spawn(move || pass(io::stdin(), stdin, &other));
    pass(stdout, io::stdout(), &killer);
    let status = killer.lock().unwrap_or_else(PoisonError::into_inner).child.wait()?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(1)))
}

/// Passes lines on until one side is closed. The lock orders the lines of both directions.
fn pass(source: impl Read, mut target: impl Write, killer: &Mutex<Killer>) {
    for line in BufReader::new(source).split(b'\n').map_while(Result::ok) {
        let mut killer = killer.lock().unwrap_or_else(PoisonError::into_inner);
        let is_last = killer.read(&line);
        if is_last == Some(true) {
            killer.kill();
        }
        let passed = target.write_all(&[&line[..], b"\n"].concat());
        if passed.and_then(|()| target.flush()).is_err() {
            return;
        }
        if is_last == Some(false) {
            killer.kill();
        }
    }
}

impl Killer {
    /// Counts a line. Returns whether the line is lost, if it is the last one.
    fn read(&mut self, line: &[u8]) -> Option<bool> {
        let message: Value = serde_json::from_slice(line).ok()?;
        let number = message["call"].as_u64()?;
        let arguments = &message["arguments"];
        let (kill, key) = (&arguments["kill"], arguments["key"].as_str());
        if let (Some(line), Some(key)) = (kill["line"].as_u64(), key) {
            let is_lost = kill["is_lost"] == true;
            let target = Target { line, is_lost, seen: 0, recorded: Vec::new() };
            self.targets.entry(key.to_owned()).or_insert(target);
            self.runs.insert(number, key.to_owned());
        }
        let key = self.runs.get(&number)?;
        let target = self.targets.get_mut(key)?;
        if let Some(step) = message["recorded"].as_str() {
            target.recorded.push(format!("{key}/{step}\n"));
        }
        target.seen += 1;
        if target.seen != target.line {
            return None;
        }
        let (is_lost, recorded) = (target.is_lost, target.recorded.concat());
        let marker = format!("{}.killed.{key}", self.file.display());
        // A call that has killed another process does not kill again.
        File::create_new(marker).ok()?;
        let mut file = OpenOptions::new().create(true).append(true).open(&self.file).ok()?;
        file.write_all(recorded.as_bytes()).ok()?;
        Some(is_lost)
    }

    /// Kills the tool worker, and ends this process without reading further lines.
    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        std::process::exit(137);
    }
}
