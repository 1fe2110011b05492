//! The rules of each protocol version: data only, one constant per version.
//!
//! To add a version to an existing era, add its constant here and its entry in [`VERSIONS`]. Its
//! differences that no field expresses are in the codec of the era.
//! Spec: <https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning>

use outlive_wire::{Method, Version};

/// The rules of one protocol version.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "a version is a constant with every field")]
pub struct VersionRules {
    /// The version, as a value to show; never to compare.
    pub version: Version,
    /// The era, which decides which codec reads and writes messages.
    pub era: Era,
    /// The requests that clients may send. An absent one is an unknown method.
    pub methods: &'static [Method],
    /// The notifications that clients may send.
    pub notifications: &'static [Method],
    /// How an input request reaches the client.
    pub input_mode: InputMode,
    /// The input requests that the version can express.
    pub inputs: InputSupport,
    /// What happens to a call whose connection is lost.
    pub on_disconnect: OnDisconnect,
    /// How the events of a stream are numbered.
    pub event_ids: EventIdMode,
    /// How a call becomes a task.
    pub tasks: TaskDialect,
    /// The label that the store keeps with tasks of this era.
    pub task_origin: &'static str,
    /// The label of tasks whose content is sent as it grows, if the era has such tasks.
    pub streaming_task_origin: Option<&'static str>,
    /// Whether clients see the tasks of other eras.
    pub sees_all_tasks: bool,
    /// Whether the server ends a cancelled task before it responds to the cancellation.
    pub cancels_immediately: bool,
    /// Whether clients receive the progress of tasks.
    pub task_progress: bool,
    /// Whether clients may run input requests as tasks of their own.
    pub hosted_tasks: bool,
    /// Whether a handshake opens a session.
    pub sessions: bool,
    /// Whether several messages may arrive in one array.
    pub batches: bool,
    /// Whether clients send the `MCP-Protocol-Version` header.
    pub version_header: bool,
    /// Whether HTTP headers must repeat parts of the body.
    pub mirrored_headers: bool,
}

/// Every version that this crate knows, newest first.
pub static VERSIONS: [&VersionRules; 5] =
    [&V2026_07_28, &V2025_11_25, &V2025_06_18, &V2025_03_26, &V2024_11_05];

/// Every label that the store keeps with tasks.
pub const TASK_ORIGINS: [&str; 3] = [MODERN_TASK, LEGACY_TASK, LEGACY_STREAMING_TASK];

const MODERN_TASK: &str = "modern";
const LEGACY_TASK: &str = "legacy";
const LEGACY_STREAMING_TASK: &str = "legacy-streaming";

/// The first version without a handshake.
pub(crate) const FIRST_MODERN: &VersionRules = &V2026_07_28;

pub(super) const V2026_07_28: VersionRules = VersionRules {
    version: Version::V2026_07_28,
    era: Era::Modern,
    methods: &[
        Method::ToolsCall,
        Method::Discover,
        Method::ToolsList,
        Method::ResourcesList,
        Method::ResourceTemplatesList,
        Method::ResourcesRead,
        Method::PromptsList,
        Method::PromptsGet,
        Method::Complete,
        Method::Listen,
        Method::TasksGet,
        Method::TasksUpdate,
        Method::TasksCancel,
    ],
    notifications: &[],
    input_mode: InputMode::RoundTrip,
    inputs: InputSupport::ALL,
    on_disconnect: OnDisconnect::Cancel,
    event_ids: EventIdMode::None,
    tasks: TaskDialect::Offered,
    task_origin: MODERN_TASK,
    streaming_task_origin: None,
    sees_all_tasks: true,
    cancels_immediately: false,
    task_progress: false,
    hosted_tasks: false,
    sessions: false,
    batches: false,
    version_header: true,
    mirrored_headers: true,
};

pub(super) const V2025_11_25: VersionRules = VersionRules {
    version: Version::V2025_11_25,
    methods: &[
        Method::ToolsCall,
        Method::Initialize,
        Method::Ping,
        Method::ToolsList,
        Method::ResourcesList,
        Method::ResourceTemplatesList,
        Method::ResourcesRead,
        Method::ResourcesSubscribe,
        Method::ResourcesUnsubscribe,
        Method::PromptsList,
        Method::PromptsGet,
        Method::Complete,
        Method::SetLevel,
        Method::TasksGet,
        Method::TasksResult,
        Method::TasksList,
        Method::TasksCancel,
    ],
    inputs: InputSupport::ALL,
    // Clients of the versions before may try to read the empty first event as JSON.
    event_ids: EventIdMode::Primed,
    tasks: TaskDialect::Requested,
    hosted_tasks: true,
    ..V2025_06_18
};

pub(super) const V2025_06_18: VersionRules = VersionRules {
    version: Version::V2025_06_18,
    inputs: InputSupport { forms: true, ..V2025_03_26.inputs },
    batches: false,
    version_header: true,
    ..V2025_03_26
};

pub(super) const V2025_03_26: VersionRules = VersionRules {
    version: Version::V2025_03_26,
    inputs: InputSupport { sampling_audio: true, ..V2024_11_05.inputs },
    event_ids: EventIdMode::Ids,
    batches: true,
    ..V2024_11_05
};

pub(super) const V2024_11_05: VersionRules = VersionRules {
    version: Version::V2024_11_05,
    era: Era::Legacy,
    methods: &[
        Method::ToolsCall,
        Method::Initialize,
        Method::Ping,
        Method::ToolsList,
        Method::ResourcesList,
        Method::ResourceTemplatesList,
        Method::ResourcesRead,
        Method::ResourcesSubscribe,
        Method::ResourcesUnsubscribe,
        Method::PromptsList,
        Method::PromptsGet,
        Method::Complete,
        Method::SetLevel,
    ],
    notifications: &[
        Method::Initialized,
        Method::Cancelled,
        Method::Progress,
        Method::RootsListChanged,
    ],
    input_mode: InputMode::Stream,
    inputs: InputSupport::NONE,
    on_disconnect: OnDisconnect::Continue,
    event_ids: EventIdMode::None,
    tasks: TaskDialect::None,
    task_origin: LEGACY_TASK,
    streaming_task_origin: Some(LEGACY_STREAMING_TASK),
    sees_all_tasks: false,
    cancels_immediately: true,
    task_progress: true,
    hosted_tasks: false,
    sessions: true,
    batches: false,
    version_header: false,
    mirrored_headers: false,
};

impl VersionRules {
    /// Returns the rules of the version with this date.
    pub fn find(date: &str) -> Option<&'static Self> {
        VERSIONS.into_iter().find(|rules| rules.version.as_str() == date)
    }

    /// Returns the rules of the newest of these versions that this crate knows.
    pub fn newest_of<'a>(dates: impl IntoIterator<Item = &'a str>) -> Option<&'static Self> {
        dates.into_iter().filter_map(Self::find).max_by_key(|rules| rules.version)
    }

    /// Returns the rules of the newest version of an era.
    pub fn newest(era: Era) -> &'static Self {
        VERSIONS.into_iter().find(|rules| rules.era == era).expect("every era has a version")
    }

    /// Returns whether clients may send the request or notification.
    pub fn has(&self, method: Method) -> bool {
        self.methods.contains(&method) || self.notifications.contains(&method)
    }

    /// Returns whether clients see tasks with this label.
    pub fn sees_task(&self, origin: &str) -> bool {
        self.sees_all_tasks || origin == self.task_origin || self.streams_task(origin)
    }

    /// Returns whether a task with this label sends its content as it grows.
    pub fn streams_task(&self, origin: &str) -> bool {
        self.streaming_task_origin == Some(origin)
    }

    /// Returns whether the version is this one or newer. Only the codecs ask.
    pub(crate) fn since(&self, version: Version) -> bool {
        self.version >= version
    }
}

/// A group of versions that one codec reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a new era is a new codec")]
pub enum Era {
    /// A handshake opens a session, and the session remembers (2024-11-05 to 2025-11-25).
    Legacy,
    /// Every request is complete in itself (since 2026-07-28).
    Modern,
}

/// What happens to a call whose connection is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "every transport must handle each")]
pub enum OnDisconnect {
    /// The server cancels it: clients cancel by closing the stream.
    Cancel,
    /// It continues: the client may come back for the result.
    Continue,
}

/// How an input request reaches the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "every run must handle each")]
pub enum InputMode {
    /// As a request on the stream of the call, while the call waits.
    Stream,
    /// As the result of the call. The client calls again with its input responses.
    RoundTrip,
}

/// How the events of a stream are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "every transport must handle each")]
pub enum EventIdMode {
    /// Not at all: a broken stream is lost.
    None,
    /// Every event has an ID from which a client can resume.
    Ids,
    /// As [`EventIdMode::Ids`], and the stream begins with an empty event that has one.
    Primed,
}

/// How a call becomes a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "every client must handle each")]
pub enum TaskDialect {
    /// The version has no tasks.
    None,
    /// The client requests a task, and fetches its result.
    Requested,
    /// The server creates a task for a client that declares that it accepts one.
    Offered,
}

/// The input requests that a version can express. Roots and plain sampling are in all of them.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a version is a constant with every field")]
pub struct InputSupport {
    /// Forms.
    pub forms: bool,
    /// Fields of a form with several choices.
    pub multi_select: bool,
    /// URLs.
    pub urls: bool,
    /// Audio in a conversation with the client's model.
    pub sampling_audio: bool,
    /// Tools for the client's model, and their results.
    pub sampling_tools: bool,
}

impl InputSupport {
    /// What every version can express.
    pub const NONE: Self = Self {
        forms: false,
        multi_select: false,
        urls: false,
        sampling_audio: false,
        sampling_tools: false,
    };

    /// Everything.
    pub const ALL: Self = Self {
        forms: true,
        multi_select: true,
        urls: true,
        sampling_audio: true,
        sampling_tools: true,
    };
}
