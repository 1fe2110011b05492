//! The append-only file of all processes and clients.
//!
//! The oracle is independent of the stores under test. Its lines are in the order in which all
//! processes wrote them.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};

/// Writes lines in the format of `testbench/src/bin/crash-server.rs`.
#[derive(Debug)]
pub(crate) struct Oracle {
    path: PathBuf,
    file: File,
}

/// One line: `MILLISECONDS WHO JOB EVENT ...`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) at: u64,
    /// A run of a handler, `NAME#NUMBER`, or [`HARNESS`].
    pub(crate) who: String,
    pub(crate) job: String,
    pub(crate) event: Event,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A handler run started.
    Run,
    /// The body of a step starts. The token identifies this execution.
    Begin { step: u32, token: String },
    /// A step returned, from its body or from the journal. The token is the recorded execution.
    Have { step: u32, token: String },
    /// The handler waits for input or a timer.
    Waits,
    /// The handler is about to return.
    End,
    /// A cancellation was acknowledged to a client.
    Cancelled,
    /// A failure was injected into a process.
    Fault { kind: String, name: String },
    /// Information for readers of the log.
    Other(String),
}

/// The writer of failures and client observations.
const HARNESS: &str = "harness";
/// The job of a line that belongs to no job.
const NO_JOB: &str = "-";

impl Oracle {
    pub(crate) fn open(path: PathBuf) -> Result<Self> {
        let file = OpenOptions::new().append(true).create(true).open(&path);
        let file = file.with_context(|| format!("could not create {}", path.display()))?;
        Ok(Self { path, file })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Records a failure before it is injected.
    pub(crate) fn fault(&self, kind: &str, name: &str) -> Result<()> {
        self.write(NO_JOB, &format!("fault {kind} {name}"))
    }

    /// Records an observation or an action of a client.
    pub(crate) fn note(&self, job: &str, event: &str) -> Result<()> {
        self.write(job, event)
    }

    fn write(&self, job: &str, event: &str) -> Result<()> {
        let line = format!("{} {HARNESS} {job} {event}\n", now());
        (&self.file).write_all(line.as_bytes()).context("could not write to the oracle")
    }

    /// Reads all lines.
    pub(crate) fn read(&self) -> Result<Vec<Line>> {
        parse(&fs::read_to_string(&self.path).context("could not read the oracle")?)
    }

    /// Returns a reader of new lines.
    pub(crate) fn tail(&self) -> Result<Tail> {
        let mut file = File::open(&self.path).context("could not read the oracle")?;
        file.seek(SeekFrom::End(0))?;
        Ok(Tail { file, half: String::new() })
    }
}

/// A reader of lines that are appended from now on.
#[derive(Debug)]
pub(crate) struct Tail {
    file: File,
    /// The start of a line whose end is not written yet.
    half: String,
}

impl Tail {
    /// Waits for the first matching line. Returns `None` at the timeout.
    pub(crate) fn find(
        &mut self,
        patience: Duration,
        is_meant: impl Fn(&Line) -> bool,
    ) -> Result<Option<Line>> {
        let begun = Instant::now();
        while begun.elapsed() < patience {
            let mut text = std::mem::take(&mut self.half);
            // A reader may see a part of a line that is being written.
            self.file.read_to_string(&mut text)?;
            self.half = text.split_off(text.rfind('\n').map_or(0, |end| end + 1));
            if let Some(line) = parse(&text)?.into_iter().find(&is_meant) {
                return Ok(Some(line));
            }
            thread::sleep(Duration::from_millis(2));
        }
        Ok(None)
    }
}

fn parse(text: &str) -> Result<Vec<Line>> {
    text.lines()
        .map(|line| line.parse().with_context(|| format!("invalid oracle line `{line}`")))
        .collect()
}

impl Line {
    /// The process that wrote the line.
    pub(crate) fn process(&self) -> &str {
        self.who.split('#').next().unwrap_or(&self.who)
    }
}

impl std::str::FromStr for Line {
    type Err = anyhow::Error;

    fn from_str(line: &str) -> Result<Self> {
        let mut words = line.splitn(4, ' ');
        let mut word = || words.next().context("the line has too few words");
        let (at, who, job, event) = (word()?, word()?, word()?, word()?);
        let mut parts = event.split(' ');
        let kind = parts.next().unwrap_or_default();
        let mut part = || parts.next().context("the line has too few words").map(str::to_owned);
        let event = match kind {
            "run" => Event::Run,
            "begin" => Event::Begin { step: part()?.parse()?, token: part()? },
            "have" => Event::Have { step: part()?.parse()?, token: part()? },
            "ask" | "sleep" => Event::Waits,
            "end" => Event::End,
            "cancelled" => Event::Cancelled,
            "fault" => Event::Fault { kind: part()?, name: part()? },
            _ => Event::Other(event.to_owned()),
        };
        Ok(Self { at: at.parse()?, who: who.to_owned(), job: job.to_owned(), event })
    }
}

/// Milliseconds since 1970, as in all lines.
pub(crate) fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{Event, Line};

    #[test]
    fn oracle_lines_are_parsed() {
        let line: Line = "17 0.3#4 c1-2 begin 5 0.3#4:5".parse().unwrap();
        assert_eq!((line.at, line.process(), line.job.as_str()), (17, "0.3", "c1-2"));
        assert_eq!(line.event, Event::Begin { step: 5, token: "0.3#4:5".into() });
        let line: Line = "18 harness - fault kill 0.3".parse().unwrap();
        assert_eq!(line.event, Event::Fault { kind: "kill".into(), name: "0.3".into() });
        assert!("19 harness".parse::<Line>().is_err());
    }
}
