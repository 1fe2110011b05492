//! Specification of a supervised process, and the state that its supervisor reports.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::super::spec::How;

/// Member of the data of the error that a request gets if its response is too long: the bytes of the
/// response.
pub const MESSAGE_BYTES: &str = "dev.outlive/messageBytes";

/// A process that speaks over its standard streams, one JSON-RPC message per line, and its limits.
///
/// The values of its variables are not part of it, because it is stored. See
/// [`Pipes::start`](super::super::Pipes::start).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PipeSpec {
    /// Description for the process that started it. Not interpreted here.
    pub label: String,
    /// Program and arguments, passed verbatim without a shell.
    pub argv: Vec<OsString>,
    /// Names of the environment variables, for people. Filled by
    /// [`Pipes::start`](super::super::Pipes::start).
    #[serde(default)]
    pub variables: Vec<String>,
    /// Working directory. The default is that of the gateway.
    pub working_dir: Option<PathBuf>,
    /// Maximum bytes of a message of the process. A longer one is skipped, and its request gets an
    /// error with [`MESSAGE_BYTES`].
    pub max_message_bytes: usize,
    /// Text before and after the ID in the message that cancels a request at the process.
    pub cancel: (String, String),
    /// Time that the process has to exit after its input is closed, and then after SIGTERM.
    pub kill_grace: Duration,
    /// Time without a server heartbeat after which the process ends.
    pub orphan_timeout: Option<Duration>,
}

impl PipeSpec {
    /// Creates a specification of a program with its arguments and the default limits.
    pub fn new(argv: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self {
            label: String::new(),
            argv: argv.into_iter().map(Into::into).collect(),
            variables: Vec::new(),
            working_dir: None,
            max_message_bytes: 16 << 20,
            cancel: (String::new(), String::new()),
            kill_grace: Duration::from_secs(5),
            orphan_timeout: None,
        }
    }

    /// Returns the name of the program.
    pub(super) fn program(&self) -> String {
        self.argv.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default()
    }
}

/// Content of the file `spec.json`. The member distinguishes it from the specification of a job.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct StoredSpec {
    pub(crate) pipe: Option<PipeSpec>,
}

/// State of a supervisor when a gateway connects.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PipeHello {
    /// Version of the supervisor's protocol.
    pub version: u32,
    /// Text of the gateway that opened the connection: [`PipeSender::greet`](super::super::PipeSender::greet).
    pub greeting: Option<Box<RawValue>>,
    /// Open requests.
    pub slots: Vec<SlotState>,
    /// Number of other gateways that are connected.
    pub gateways: usize,
    /// End of the process, if it has ended.
    pub exit: Option<How>,
}

/// An open request of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SlotState {
    /// ID of the request.
    pub id: u64,
    /// Task of the request, as [`PipeSender::label`](super::super::PipeSender::label) recorded it.
    pub label: Option<String>,
    /// Whether a connected gateway owns the request.
    pub is_owned: bool,
    /// Time in milliseconds since when no gateway owns the request.
    pub unowned_ms: u64,
    /// Whether the response has arrived.
    pub has_response: bool,
}

/// State of a request to which a gateway attaches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Attached {
    /// Progress of the request.
    pub state: AttachState,
    /// Open input requests that the request carries. Their messages follow.
    pub inputs: Vec<CarriedInput>,
    /// Highest number of an input request that the request has carried.
    pub carried: u32,
}

/// Progress of a request to which a gateway attaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum AttachState {
    /// The request was written to the process, and its response is lost, or it was cancelled.
    #[default]
    Gone,
    /// The supervisor never received the request.
    Unknown,
    /// The process has not responded.
    Open,
    /// The response follows.
    Responded,
}

/// An open input request of the process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedInput {
    /// ID of the input request, as in [`Members`](super::super::Members).
    pub input: String,
    /// Number that the gateway gave it within its call.
    pub number: u32,
}

/// A supervised process.
#[derive(Clone, Debug)]
pub struct PipeInfo {
    /// ID of the process.
    pub id: String,
    /// Label of the [`PipeSpec`].
    pub label: String,
    /// Whether its supervisor runs.
    pub is_running: bool,
}
