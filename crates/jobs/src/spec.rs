//! The command to run, and how it ended.

use std::{ffi::OsStr, path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};

use super::{
    control::{ControlMode, InputLine, Progress},
    line::Line,
};

/// Command to run, and its limits.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JobSpec {
    /// Description of the job for the process that started it; not read here.
    #[serde(default)]
    pub label: Option<String>,
    /// Program and its arguments, verbatim: no shell reads them.
    pub argv: Vec<String>,
    /// Environment variables to set.
    pub env: Vec<(String, String)>,
    /// Whether the command gets the variables of `env` only. If not, it inherits those of the server.
    pub clear_env: bool,
    /// Variables that the command does not inherit, beside those that start with `OUTLIVE_`.
    pub withheld_env: Vec<String>,
    /// Working directory; that of the server by default.
    pub working_dir: Option<PathBuf>,
    /// Content of standard input.
    pub stdin: Option<String>,
    /// Whether the command may request input from its user.
    pub interactive: bool,
    /// Place of the control channel.
    pub control: ControlMode,
    /// Longest run time, without the time in which the command waits for a response.
    pub timeout: Option<Duration>,
    /// Bytes of standard output that are kept: most from the start, the rest from the end.
    pub max_output_bytes: u64,
    /// Lines of standard output that are kept, likewise.
    pub max_output_lines: u64,
    /// Time between asking the processes of the command to exit and killing them.
    pub kill_grace: Duration,
    /// Time without a server heartbeat after which the job ends.
    pub orphan_timeout: Option<Duration>,
    /// Longest time that an input request stays open while no call follows the job and no task owns it. Then the job ends.
    pub abandon_timeout: Option<Duration>,
    /// Niceness that is added to that of the server.
    #[serde(default)]
    pub niceness: i32,
}

impl JobSpec {
    /// Creates a spec that runs a program with its arguments and the default limits.
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

    /// Whether a variable of the server's environment is one that no command inherits.
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
        /// Number of the request; the first of a job has 1.
        number: u32,
        /// The request.
        request: InputLine,
    },
    /// Standard output that was dropped here, because a limit was reached.
    Gap {
        /// Number of dropped bytes.
        bytes: u64,
        /// Number of lines that were dropped, whole or in part.
        lines: u64,
    },
    /// Newest progress. Earlier progress that was not read is skipped.
    Progress(Progress),
    /// Failure outside the command because of which output is lost: what happened, and what to do.
    Warning(String),
    /// Newest line of standard error. Earlier lines that were not read are skipped.
    Status(String),
    /// The job has ended, and all its output has been read.
    Exit(Exit),
}

/// End of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// How the job ended.
    pub how: How,
    /// Last part of standard error.
    pub stderr_tail: String,
    /// Bytes of standard output that were dropped.
    pub bytes_dropped: u64,
    /// Lines of standard output that were dropped, whole or in part.
    pub lines_dropped: u64,
    /// Reason why output within the limits is missing, such as a full disk.
    #[serde(default)]
    pub output_lost: Option<String>,
    /// Failure outside the command, such as processes that could not be killed.
    pub warning: Option<String>,
    /// End in milliseconds since 1970.
    pub ended_at: u64,
}

impl Exit {
    /// Creates the exit of a job without output.
    pub(super) fn silent(how: How, ended_at: u64) -> Self {
        let stderr_tail = String::new();
        Self {
            how,
            stderr_tail,
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
    /// A signal that the supervisor did not send ended the command.
    Signal(i32),
    /// The command ran longer than [`JobSpec::timeout`].
    TimedOut,
    /// A caller ended the job.
    Ended,
    /// The supervisor ended the job because no server was alive for [`JobSpec::orphan_timeout`].
    Orphaned,
    /// The supervisor ended the job because an input request got no response within [`JobSpec::abandon_timeout`].
    Abandoned,
    /// The command could not start: why, and what to do.
    NotStarted(String),
    /// The supervisor or the machine stopped, so it is unknown what the command did.
    Lost,
}

/// Summary of a job, without its output.
#[derive(Clone, Debug)]
pub struct JobInfo {
    /// Id of the job.
    pub id: String,
    /// Owner of the job, as [`Job::set_note`](super::Job::set_note) recorded it.
    pub note: Option<String>,
    /// Label of its [`JobSpec`], as long as the job runs.
    pub label: Option<String>,
    /// State of the job.
    pub state: State,
    /// Start in milliseconds since 1970.
    pub started_at: Option<u64>,
    /// Input request that the job waits for.
    pub waits_for: Option<WaitsFor>,
}

/// Input request that a job waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitsFor {
    /// Time of the request in milliseconds since 1970.
    pub since: u64,
    /// Text of the newest input request.
    pub message: String,
}

/// State of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The job was not started, because the process that claimed it was killed. [`Jobs::find`](super::Jobs::find) starts it.
    Waiting,
    /// The job runs.
    Running,
    /// The job has ended and its exit is recorded, even as lost.
    Ended {
        /// End in milliseconds since 1970.
        ended_at: u64,
    },
    /// The supervisor is gone. [`Jobs::find`](super::Jobs::find) ends what is left of the command.
    Lost,
}
