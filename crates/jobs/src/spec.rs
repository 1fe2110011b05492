//! Specification of a job, its events and its exit.

use std::{ffi::OsStr, path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};

use super::{
    control::{ControlMode, InputLine, Progress, StepLine},
    line::Line,
};

/// Command to run, and its limits.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JobSpec {
    /// Description of the job for the process that started it. Not interpreted here.
    #[serde(default)]
    pub label: Option<String>,
    /// Program and arguments, passed verbatim without a shell.
    pub argv: Vec<String>,
    /// Environment variables to set.
    pub env: Vec<(String, String)>,
    /// Whether the command gets only the variables of `env`. Otherwise it also inherits those of
    /// the server.
    pub clear_env: bool,
    /// Variables that the command does not inherit, in addition to those that start with
    /// `OUTLIVE_`.
    pub withheld_env: Vec<String>,
    /// Working directory. The default is that of the server.
    pub working_dir: Option<PathBuf>,
    /// Content of standard input.
    pub stdin: Option<String>,
    /// Whether the command may request input from its user.
    pub interactive: bool,
    /// Whether the command may record steps.
    #[serde(default)]
    pub steps: bool,
    /// Location of the control channel.
    pub control: ControlMode,
    /// Maximum run time, without the time in which the command waits for a response.
    pub timeout: Option<Duration>,
    /// Maximum stored bytes of standard output: most from the start, the rest from the end.
    pub max_output_bytes: u64,
    /// Maximum stored lines of standard output, divided in the same way.
    pub max_output_lines: u64,
    /// Time between asking the processes to exit and killing them.
    pub kill_grace: Duration,
    /// Time without a server heartbeat after which the job ends.
    pub orphan_timeout: Option<Duration>,
    /// Maximum time that an input request stays open while no call follows the job and no task owns
    /// it. The job then ends.
    pub abandon_timeout: Option<Duration>,
    /// Niceness that is added to that of the server.
    #[serde(default)]
    pub niceness: i32,
}

impl JobSpec {
    /// Creates a specification of a program with its arguments and the default limits.
    pub fn new(argv: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            label: None,
            argv: argv.into_iter().map(Into::into).collect(),
            env: Vec::new(),
            clear_env: false,
            withheld_env: Vec::new(),
            working_dir: None,
            stdin: None,
            interactive: false,
            steps: false,
            control: ControlMode::default(),
            timeout: None,
            max_output_bytes: 4 * 1024 * 1024,
            max_output_lines: 100_000,
            kill_grace: Duration::from_secs(5),
            orphan_timeout: None,
            abandon_timeout: None,
            niceness: 0,
        }
    }

    /// Returns the program.
    pub(super) fn program(&self) -> &str {
        self.argv.first().map(String::as_str).unwrap_or_default()
    }

    /// Returns whether the command may send requests that need a response.
    pub(super) fn responds(&self) -> bool {
        self.interactive || self.steps
    }

    /// Returns whether commands do not inherit this variable.
    pub(super) fn withholds(&self, name: &OsStr) -> bool {
        name.as_encoded_bytes().starts_with(b"OUTLIVE_")
            || self.withheld_env.iter().any(|withheld| name == withheld.as_str())
    }
}

/// Event of a job.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Next line of standard output.
    Line(Line),
    /// Input request, after all output that was printed before it.
    Input {
        /// Number of the request. The first one of a job has number 1.
        number: u32,
        /// The request.
        request: InputLine,
    },
    /// Start or end of a step, after all output that was printed before it.
    Step {
        /// Number of the request. Steps and input requests share their numbers.
        number: u32,
        /// The request.
        request: StepLine,
    },
    /// Dropped standard output, because of a limit.
    Gap {
        /// Number of dropped bytes.
        bytes: u64,
        /// Number of lines that were dropped completely or partially.
        lines: u64,
    },
    /// Newest progress. Older progress that was not read is skipped.
    Progress(Progress),
    /// Failure outside of the command that loses output: what happened, and what to do.
    Warning(String),
    /// Newest line of standard error. Older lines that were not read are skipped.
    Status(String),
    /// The job has ended, and all its output has been read.
    Exit(Exit),
}

/// End of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exit {
    /// Reason for the end.
    pub how: How,
    /// End of standard error.
    pub stderr_tail: String,
    /// Newest progress.
    #[serde(default)]
    pub progress: Option<Progress>,
    /// Number of dropped bytes of standard output.
    pub bytes_dropped: u64,
    /// Number of lines of standard output that were dropped completely or partially.
    pub lines_dropped: u64,
    /// Reason why output within the limits is missing, such as a full disk.
    #[serde(default)]
    pub output_lost: Option<String>,
    /// Failure outside of the command, such as processes that could not be killed.
    pub warning: Option<String>,
    /// Time of the end in Unix milliseconds.
    pub ended_at: u64,
}

impl Exit {
    /// Creates the exit of a job without output.
    pub(super) fn silent(how: How, ended_at: u64) -> Self {
        let stderr_tail = String::new();
        Self {
            how,
            stderr_tail,
            progress: None,
            bytes_dropped: 0,
            lines_dropped: 0,
            output_lost: None,
            warning: None,
            ended_at,
        }
    }
}

/// Reason why a job ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// The command exited with this code.
    Code(i32),
    /// The command was ended by a signal that the supervisor did not send.
    Signal(i32),
    /// The command ran longer than [`JobSpec::timeout`].
    TimedOut,
    /// A caller ended the job.
    Ended,
    /// The supervisor ended the job, because no server was alive for [`JobSpec::orphan_timeout`].
    Orphaned,
    /// The supervisor ended the job, because an input request got no response within
    /// [`JobSpec::abandon_timeout`].
    Abandoned,
    /// The command could not be started. The text says why, and what to do.
    NotStarted(String),
    /// The supervisor or the machine stopped, so the result of the command is unknown.
    Lost,
}

/// Summary of a job, without its output.
#[derive(Clone, Debug)]
pub struct JobInfo {
    /// Job ID.
    pub id: String,
    /// Owner of the job, as [`Job::set_note`](super::Job::set_note) recorded it.
    pub note: Option<String>,
    /// Label of the [`JobSpec`], while the job runs.
    pub label: Option<String>,
    /// State of the job.
    pub state: State,
    /// Time of the start in Unix milliseconds.
    pub started_at: Option<u64>,
    /// Input request that the job waits for.
    pub waits_for: Option<WaitsFor>,
}

/// Input request that a job waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitsFor {
    /// Time of the request in Unix milliseconds.
    pub since: u64,
    /// Text of the newest input request.
    pub message: String,
}

/// State of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The job was not started, because the process that created it was killed.
    /// [`Jobs::find`](super::Jobs::find) starts it.
    Waiting,
    /// The job runs.
    Running,
    /// The job has ended, and its exit is recorded. Includes lost jobs that were settled.
    Ended {
        /// Time of the end in Unix milliseconds.
        ended_at: u64,
    },
    /// The supervisor is gone. [`Jobs::find`](super::Jobs::find) terminates the remaining
    /// processes.
    Lost,
}
