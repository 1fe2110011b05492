//! Lists whose entries stay text.

use std::{collections::HashSet, sync::Arc};

use bytes::Bytes;
use outlive_protocol::era::client::CapabilityClass;
use outlive_wire::{Method, RawJson};
use serde::Deserialize;
use serde_json::Value;

use super::{
    event::{RelayEvent, RelayOutcome},
    request::RelayRequest,
};
use crate::client::{
    core::{Client, Core},
    error::{ClientError, Error, Result, ServerErrorKind},
};

/// A list of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "the lists of the specification")]
pub enum ListKind {
    /// Tools.
    Tools,
    /// Prompts.
    Prompts,
    /// Resources.
    Resources,
    /// Resource templates.
    ResourceTemplates,
}

impl ListKind {
    fn method(self) -> Method {
        match self {
            Self::Tools => Method::ToolsList,
            Self::Prompts => Method::PromptsList,
            Self::Resources => Method::ResourcesList,
            Self::ResourceTemplates => Method::ResourceTemplatesList,
        }
    }
}

impl Client {
    /// Lists what a client of a capability class sees, page by page. The class has an effect on
    /// modern servers; legacy ones know that of the handshake.
    pub fn relay_list(&self, kind: ListKind, class: CapabilityClass) -> RelayPages {
        let client = Self::of(Arc::clone(&self.core));
        let (meta, next, seen) = (String::new(), Next::First, HashSet::new());
        RelayPages { client, kind, class, meta, next, seen, entries: 0 }
    }
}

/// Pages of a list. Ends with an error if the list exceeds the limits or repeats a cursor.
///
/// A server without the capability of the list has no pages.
#[derive(Debug)]
#[must_use = "nothing is requested until the list is read"]
pub struct RelayPages {
    client: Client,
    kind: ListKind,
    class: CapabilityClass,
    meta: String,
    next: Next,
    seen: HashSet<String>,
    entries: usize,
}

#[derive(Debug)]
enum Next {
    First,
    At(String),
    End,
}

/// A page of a list.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RelayPage {
    /// The entries: the JSON texts of objects.
    pub items: Vec<RawJson>,
    /// Time for which the list may be cached, in milliseconds; 2026-07-28.
    pub ttl_ms: Option<u64>,
    /// The result: the JSON text of an object.
    pub result: Bytes,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Read {
    #[serde(alias = "prompts", alias = "resources", alias = "resourceTemplates")]
    tools: Option<Vec<RawJson>>,
    next_cursor: Option<String>,
    ttl_ms: Option<f64>,
}

impl RelayPages {
    /// Sets further members of `_meta`, without braces. They must not be members of the protocol.
    pub fn meta(mut self, members: impl Into<String>) -> Self {
        self.meta = members.into();
        self
    }

    /// Returns the next page, or `None` at the end and after an error.
    pub async fn next(&mut self) -> Option<Result<RelayPage>> {
        let cursor = match std::mem::replace(&mut self.next, Next::End) {
            Next::First => None,
            Next::At(cursor) => Some(cursor),
            Next::End => return None,
        };
        match self.fetch(cursor.as_deref()).await {
            Ok(page) => page.map(Ok),
            Err(error) => Some(Err(error)),
        }
    }

    async fn fetch(&mut self, cursor: Option<&str>) -> Result<Option<RelayPage>> {
        let here = self.client.core.established().await?;
        if here.server.known && !self.is_offered(&here.server.capabilities) {
            return Ok(None);
        }
        let cursor = cursor.map(|cursor| Value::from(cursor).to_string());
        let members = match &cursor {
            Some(cursor) => [r#""cursor":"#, cursor.as_str()],
            None => ["", ""],
        };
        let request = RelayRequest::new(self.kind.method().as_str())
            .params(&members)
            .meta(&self.meta)
            .class(self.class);
        let result = match self.result(&request).await {
            Ok(result) => result,
            Err(error) if cursor.is_none() && is_missing(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let Read { tools, next_cursor, ttl_ms } = serde_json::from_slice(&result)
            .map_err(|error| Error::broke(format!("the list cannot be parsed: {error}")))?;
        let items = tools.unwrap_or_default();
        self.follow(next_cursor, items.len())?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "saturation of values out of range is intended"
        )]
        let ttl_ms = ttl_ms.map(|ttl| ttl.max(0.0) as u64);
        Ok(Some(RelayPage { items, ttl_ms, result }))
    }

    fn is_offered(&self, offered: &outlive_wire::ServerCapabilities) -> bool {
        match self.kind {
            ListKind::Tools => offered.tools.is_some(),
            ListKind::Prompts => offered.prompts.is_some(),
            ListKind::Resources | ListKind::ResourceTemplates => offered.resources.is_some(),
        }
    }

    async fn result(&self, request: &RelayRequest<'_>) -> Result<Bytes> {
        let mut exchange = self.client.relay(request).await?;
        loop {
            match exchange.next().await? {
                RelayEvent::Outcome(RelayOutcome::Complete(result)) => return Ok(result),
                RelayEvent::Outcome(_) => return Err(Error::broke("a list has another outcome")),
                // Dropping an input request rejects it: a list has no user.
                _ => {}
            }
        }
    }

    fn follow(&mut self, next: Option<String>, entries: usize) -> Result<()> {
        let core: &Core = &self.client.core;
        let limits = core.limits();
        self.entries += entries;
        if self.entries > limits.max_entries {
            return Err(ClientError::TooManyPages(limits.max_entries).into());
        }
        let Some(next) = next else { return Ok(()) };
        if !self.seen.insert(next.clone()) {
            return Err(ClientError::CursorLoop.into());
        }
        if self.seen.len() >= limits.max_pages {
            return Err(ClientError::TooManyPages(limits.max_pages).into());
        }
        self.next = Next::At(next);
        Ok(())
    }
}

/// Returns whether the server does not have the list.
fn is_missing(error: &Error) -> bool {
    error.kind() == Some(ServerErrorKind::MethodNotFound)
}
