//! What to run, and how it ended.

use std::{ffi::OsStr, path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};

use super::{
    control::{ControlMode, InputLine, Progress},
    lines::Line,
};

/// What to run, and within which limits.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JobSpec {
    /// What the job is and for whom, in the words of who starts it.
    #[serde(default)]
    pub label: Option<String>,
    /// The program and its arguments, as they are: no shell reads them.
    pub argv: Vec<String>,
    /// Variables to set.
    pub env: Vec<(String, String)>,
    /// Whether only those of `env` are set. If not, it inherits the server's variables.
    pub clear_env: bool,
    /// Variables that it does not inherit, beside those that begin with `OUTLIVE_`.
    pub withheld_env: Vec<String>,
    /// Where to run it; without one, where the server runs.
    pub folder: Option<PathBuf>,
    /// What it finds on its standard input.
    pub stdin: Option<String>,
    /// Whether it may request input from its user.
    pub asks: bool,
    /// Where its control channel is.
    pub control: ControlMode,
    /// How long it may run; the time in which it waits for a response does not count.
    pub time_limit: Option<Duration>,
    /// How much of its standard output is kept: most of it from the beginning, the rest from the end.
    pub max_output_bytes: u64,
    /// How many lines of its standard output are kept, likewise.
    pub max_output_lines: u64,
    /// How long its processes have between being asked to end and being ended.
    pub end_grace: Duration,
    /// It is ended when there was no server for so long.
    pub orphan_after: Option<Duration>,
    /// How long an input request may be open while no call follows the job and no task owns it. Then the job ends.
    pub abandon_timeout: Option<Duration>,
    /// By how much its priority is lower than that of the server, as `nice` counts it.
    #[serde(default)]
    pub niceness: i32,
}

impl JobSpec {
    /// Runs a program with its arguments, within default limits.
    pub fn new(argv: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            label: None,
            argv: argv.into_iter().map(Into::into).collect(),
            env: Vec::new(),
            clear_env: false,
            withheld_env: Vec::new(),
            folder: None,
            stdin: None,
            asks: false,
            control: ControlMode::default(),
            time_limit: None,
            max_output_bytes: 4 * 1024 * 1024,
            max_output_lines: 100_000,
            end_grace: Duration::from_secs(5),
            orphan_after: None,
            abandon_timeout: None,
            niceness: 0,
        }
    }

    /// Whether a variable of the server's environment is one that no command inherits.
    pub(super) fn withholds(&self, name: &OsStr) -> bool {
        name.as_encoded_bytes().starts_with(b"OUTLIVE_")
            || self.withheld_env.iter().any(|withheld| name == withheld.as_str())
    }
}

/// What a job has to say.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The next line of its standard output.
    Line(Line),
    /// An input request, after all that was printed before it.
    Input {
        /// Number of the request; the first of a job has 1.
        number: u32,
        /// The request.
        request: InputLine,
    },
    /// Standard output was not kept here, because the limits were reached.
    Gap {
        /// How much was not kept.
        bytes: u64,
        /// How many lines were not kept, or not whole.
        lines: u64,
    },
    /// The newest progress. Those between two looks are not told.
    Progress(Progress),
    /// Something went wrong beside the command, and output is lost or will be: what happened, and what to do.
    Trouble(String),
    /// The newest line of its standard error. Those between two looks are not told.
    Status(String),
    /// It is over, and has been read to its end.
    Exit(Exit),
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// In which way.
    pub how: How,
    /// The end of what it said on standard error.
    pub stderr_tail: String,
    /// How much of its standard output was not kept.
    pub bytes_dropped: u64,
    /// How many of its lines were not kept, or not whole.
    pub lines_dropped: u64,
    /// Why output is missing that was within the limits, if it is: a full disk.
    #[serde(default)]
    pub output_lost: Option<String>,
    /// What else went wrong beside the command: processes that could not be ended.
    pub trouble: Option<String>,
    /// When, in milliseconds since 1970.
    pub at: u64,
}

impl Exit {
    /// Without having printed anything.
    pub(super) fn silent(how: How, at: u64) -> Self {
        let stderr_tail = String::new();
        Self {
            how,
            stderr_tail,
            bytes_dropped: 0,
            lines_dropped: 0,
            output_lost: None,
            trouble: None,
            at,
        }
    }
}

/// In which way a job ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// The command exited by itself.
    Code(i32),
    /// A signal ended the command, and it was not ours.
    Signal(i32),
    /// It ran longer than its time limit.
    TimedOut,
    /// It was ended because somebody wished it.
    Ended,
    /// It was ended because there was no server for too long.
    Orphaned,
    /// The supervisor ended it because an input request got no response in time.
    Abandoned,
    /// It could not be started; this is why, and what to do.
    NotStarted(String),
    /// The supervisor was ended, or the machine was: nobody knows what the command did.
    Lost,
}

/// What can be told of a job without reading it.
#[derive(Clone, Debug)]
pub struct JobInfo {
    /// Its id.
    pub id: String,
    /// What its owner wrote on it.
    pub note: Option<String>,
    /// The label of its [`JobSpec`], as long as it runs.
    pub label: Option<String>,
    /// How far it is.
    pub state: State,
    /// When it was begun, in milliseconds since 1970.
    pub started_at: Option<u64>,
    /// The input request that it waits for, if it does.
    pub waits_for: Option<WaitsFor>,
}

/// What a job waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitsFor {
    /// Since when, in milliseconds since 1970.
    pub since: u64,
    /// Text of the newest input request.
    pub message: String,
}

/// How far a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It was never started, because who wanted to was killed first. [`Jobs::find`](super::Jobs::find) starts it.
    Waiting,
    /// It runs.
    Running,
    /// Its end is known, even if it is that it was lost.
    Ended {
        /// When, in milliseconds since 1970.
        at: u64,
    },
    /// Its supervisor is gone. [`Jobs::find`](super::Jobs::find) ends what is left of it.
    Lost,
}
