//! Input requests of stored tasks: their audience, the sources of responses, and open requests.

use outlive_wire::{InputRequest, RawJson};

use super::id::UnixMillis;
use crate::setters::setters;

/// The parties that may respond to an input request. The store rejects every other source.
///
/// An elicitation through the client and an operator may always respond.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Audience {
    /// The client of the call. Where the server enables it, a fallback tool or the holder of an
    /// answer link may respond too, so a model may decide.
    #[default]
    Client,
    /// The caller: a person must decide. A fallback tool or an answer link in text that a model
    /// reads cannot respond.
    Caller,
    /// People with these names. Each vote counts once per person, and the caller's own never.
    Names(Vec<String>),
    /// People whose credential has this scope.
    Scope(String),
    /// People with one of these names, or whose credential has the scope.
    NamesOrScope(Vec<String>, String),
}

impl Audience {
    /// Returns whether people respond, selected by name or scope. No client and no tool then
    /// responds.
    pub fn is_people(&self) -> bool {
        matches!(self, Self::Names(_) | Self::Scope(_) | Self::NamesOrScope(..))
    }

    /// Returns whether the audience contains a person with these scopes. Contains no person for
    /// [`Client`](Self::Client) and [`Caller`](Self::Caller), whose person is that of the task.
    pub fn contains(&self, person: &str, scopes: &[String]) -> bool {
        let named = |names: &[String]| names.iter().any(|name| name == person);
        match self {
            Self::Client | Self::Caller => false,
            Self::Names(names) => named(names),
            Self::Scope(scope) => scopes.contains(scope),
            Self::NamesOrScope(names, scope) => named(names) || scopes.contains(scope),
        }
    }

    /// Returns the names and the scope of the people; empty for other audiences.
    pub fn addressees(&self) -> (&[String], Option<&str>) {
        match self {
            Self::Client | Self::Caller => (&[], None),
            Self::Names(names) => (names, None),
            Self::Scope(scope) => (&[], Some(scope)),
            Self::NamesOrScope(names, scope) => (names, Some(scope)),
        }
    }

    /// Returns whether a source may respond to input requests with this audience. External events
    /// have no audience.
    pub fn allows(&self, source: InputSource) -> bool {
        source != InputSource::External && self.column() <= source.max_audience()
    }

    /// Returns the name in reports.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Caller => "caller",
            Self::Names(_) | Self::Scope(_) | Self::NamesOrScope(..) => "people",
        }
    }

    /// Returns the number in the database column. Numbers grow with the restriction.
    pub(super) fn column(&self) -> i16 {
        match self {
            Self::Client => 0,
            Self::Caller => 1,
            Self::Names(_) | Self::Scope(_) | Self::NamesOrScope(..) => 2,
        }
    }

    /// Returns the audience of a column; `None` if a newer version of this program has written it.
    #[cfg_attr(
        not(any(feature = "postgres", feature = "sqlite")),
        expect(dead_code, reason = "only the databases have columns")
    )]
    pub(super) fn from_column(column: i16) -> Option<Self> {
        match column {
            0 => Some(Self::Client),
            1 => Some(Self::Caller),
            _ => None,
        }
    }
}

/// Sender of input responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "stores and engines must handle every variant")]
pub enum InputSource {
    /// The client that received the input request, or an operator on its behalf.
    Client,
    /// A fallback tool, which a model may call on its own.
    Tool,
    /// The holder of an answer link, which may be a model with a fetch tool.
    Link,
    /// Another system with a completion token.
    External,
}

impl InputSource {
    /// Returns the column of the most restricted audience that this source may respond for.
    pub(super) fn max_audience(self) -> i16 {
        match self {
            Self::Client => Audience::Caller.column(),
            Self::Tool | Self::Link => Audience::Client.column(),
            // Only external events, which have no audience, accept this source.
            Self::External => i16::MAX,
        }
    }
}

/// An open input request to the client.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OpenInput {
    /// Wire key.
    pub name: String,
    /// Request to the client.
    pub request: InputRequest,
    /// Parties that may respond.
    pub audience: Audience,
    /// When the request times out.
    pub due: Option<UnixMillis>,
}

impl OpenInput {
    /// Creates an open input request to the client without a timeout.
    pub fn new(name: impl Into<String>, request: InputRequest) -> Self {
        Self { name: name.into(), request, audience: Audience::Client, due: None }
    }
}

setters!(OpenInput { audience: Audience, due: Option<UnixMillis> });

/// An open input request with its call, for a person who responds outside the client.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InputDetail {
    /// Name of the tool.
    pub tool: String,
    /// Call that the task executes.
    pub call: RawJson,
    /// Input request.
    pub input: OpenInput,
}

impl InputDetail {
    /// Creates the detail of an input request.
    pub fn new(tool: impl Into<String>, call: RawJson, input: OpenInput) -> Self {
        Self { tool: tool.into(), call, input }
    }
}
