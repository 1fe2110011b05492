//! The rules of each protocol version: data only, one constant per version.
//!
//! To add a version to an existing era, add its constant here and its entry in [`VERSIONS`].
//! Differences that no field expresses are in the codec of the era.
//! Spec: <https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning>

use outlive_wire::{Method, Version};

/// The rules of one protocol version.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "a version is a constant with every field")]
pub struct VersionRules {
    /// The version, for display. Use the other fields instead of comparing it.
    pub version: Version,
    /// The era, which selects the codec.
    pub era: Era,
    /// The requests that clients may send. Any other request is an unknown method.
    pub methods: &'static [Method],
    /// The notifications that clients may send.
    pub notifications: &'static [Method],
    /// Delivery of input requests to the client.
    pub input_mode: InputMode,
    /// Whether a client repeats a request that was answered with a request state and no input
    /// request.
    pub empty_rounds: bool,
    /// The input requests that the version has.
    pub inputs: InputSupport,
    /// Handling of a call whose connection is lost.
    pub on_disconnect: OnDisconnect,
    /// The event IDs of a stream.
    pub event_ids: EventIdMode,
    /// Creation of tasks from calls.
    pub tasks: TaskDialect,
    /// The origin label that the store keeps with tasks of this era.
    pub task_origin: &'static str,
    /// The origin label of tasks with partial responses, if the era has them.
    pub streaming_task_origin: Option<&'static str>,
    /// Whether clients see the tasks of other eras.
    pub sees_all_tasks: bool,
    /// Whether `tasks/cancel` ends the task before the server responds.
    pub cancels_immediately: bool,
    /// Whether clients receive the progress of tasks.
    pub task_progress: bool,
    /// Whether clients may run input requests as tasks.
    pub hosted_tasks: bool,
    /// Whether a handshake opens a session.
    pub sessions: bool,
    /// Whether a message may be a batch.
    pub batches: bool,
    /// Whether clients send the `MCP-Protocol-Version` header.
    pub version_header: bool,
    /// Whether HTTP headers must repeat parts of the body.
    pub mirrored_headers: bool,
}

/// Every version that this crate knows, newest first.
pub static VERSIONS: [&VersionRules; 5] =
    [&V2026_07_28, &V2025_11_25, &V2025_06_18, &V2025_03_26, &V2024_11_05];

/// Every origin label that the store keeps with tasks.
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
    empty_rounds: true,
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
    // Clients of older versions may parse the empty first event as JSON.
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
    empty_rounds: false,
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

    /// Returns the rules of the newest known version among these dates.
    pub fn newest_of<'a>(dates: impl IntoIterator<Item = &'a str>) -> Option<&'static Self> {
        dates.into_iter().filter_map(Self::find).max_by_key(|rules| rules.version)
    }

    /// Returns the rules of the newest version of an era.
    pub fn newest(era: Era) -> &'static Self {
        VERSIONS.into_iter().find(|rules| rules.era == era).expect("every era has a version")
    }

    /// Returns whether clients may send this request or notification.
    pub fn has(&self, method: Method) -> bool {
        self.methods.contains(&method) || self.notifications.contains(&method)
    }

    /// Returns whether clients see tasks with this origin label.
    pub fn sees_task(&self, origin: &str) -> bool {
        self.sees_all_tasks || origin == self.task_origin || self.streams_task(origin)
    }

    /// Returns whether a task with this origin label has partial responses.
    pub fn streams_task(&self, origin: &str) -> bool {
        self.streaming_task_origin == Some(origin)
    }

    /// Returns whether the version is `version` or newer. Only for codecs.
    pub(crate) fn since(&self, version: Version) -> bool {
        self.version >= version
    }
}

/// A group of versions with one codec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a new era is a new codec")]
pub enum Era {
    /// A handshake opens a session, which stores the client's data (2024-11-05 to 2025-11-25).
    Legacy,
    /// Every request is self-contained (since 2026-07-28).
    Modern,
}

/// Handling of a call whose connection is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "every transport must handle each")]
pub enum OnDisconnect {
    /// The server cancels the call: clients cancel by closing the stream.
    Cancel,
    /// The call continues: the client may reconnect for the result.
    Continue,
}

/// Delivery of input requests to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "every run must handle each")]
pub enum InputMode {
    /// As a request on the stream of the call, which waits.
    Stream,
    /// In the result of the call. The client calls again with its input responses.
    RoundTrip,
}

/// The event IDs of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "every transport must handle each")]
pub enum EventIdMode {
    /// No event IDs: a broken stream cannot be resumed.
    None,
    /// Every event has an ID, from which the client can resume.
    Ids,
    /// As [`EventIdMode::Ids`], and the stream starts with an empty event that has an ID.
    Primed,
}

/// Creation of tasks from calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "every client must handle each")]
pub enum TaskDialect {
    /// The version has no tasks.
    None,
    /// The client requests a task, and fetches the result.
    Requested,
    /// The server creates a task if the client declares that it accepts tasks.
    Offered,
}

/// The input requests that a version has. Roots and text sampling are in every version.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a version is a constant with every field")]
pub struct InputSupport {
    /// Form elicitation.
    pub forms: bool,
    /// Multi-select fields in forms.
    pub multi_select: bool,
    /// URL elicitation.
    pub urls: bool,
    /// Audio in sampling messages.
    pub sampling_audio: bool,
    /// Tools and tool results in sampling.
    pub sampling_tools: bool,
}

impl InputSupport {
    /// The minimum that every version has.
    pub const NONE: Self = Self {
        forms: false,
        multi_select: false,
        urls: false,
        sampling_audio: false,
        sampling_tools: false,
    };

    /// All kinds of input requests.
    pub const ALL: Self = Self {
        forms: true,
        multi_select: true,
        urls: true,
        sampling_audio: true,
        sampling_tools: true,
    };
}
