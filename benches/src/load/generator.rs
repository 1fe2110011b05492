//! The requests of a load generator and the responses it expects.

use crate::{
    child::Server,
    messages::{FIRST_ID, Numbered},
    peers::Peer,
    slices::Target,
};
use anyhow::{Context, Result, ensure};
use memchr::memmem;
use serde::Deserialize;
use std::time::Duration;

/// A load generator.
pub(crate) trait Generator {
    /// Sends load for `time` and returns the amount of completed work. Nothing is in flight
    /// afterwards.
    fn run(&mut self, time: Duration) -> Result<u64>;
}

/// A server under load.
pub(crate) struct Loaded<G> {
    name: String,
    pid: u32,
    pub(crate) load: G,
    has_helpers: bool,
}

impl<G: Generator> Loaded<G> {
    pub(crate) fn new(name: &str, server: &Server, load: G) -> Self {
        Self { name: name.to_owned(), pid: server.pid(), load, has_helpers: false }
    }

    /// Marks a peer with helper processes.
    pub(crate) fn of(self, peer: &Peer) -> Self {
        self.with_helpers(peer.has_helpers)
    }

    /// Marks a target that uses a database.
    pub(crate) fn with_helpers(mut self, has_helpers: bool) -> Self {
        self.has_helpers = has_helpers;
        self
    }
}

impl<G: Generator> Target for Loaded<G> {
    fn name(&self) -> &str {
        &self.name
    }

    fn pid(&self) -> u32 {
        self.pid
    }

    fn has_helpers(&self) -> bool {
        self.has_helpers
    }

    fn load(&mut self, time: Duration) -> Result<u64> {
        self.load.run(time)
    }
}

/// The expected responses of a server.
#[derive(Debug)]
pub(super) enum Expected {
    /// These bytes except for the ID.
    Same(Numbered),
    /// An event stream, or JSON in another form: with this ID, this text and this many
    /// notifications.
    Having { id: u32, text: Vec<u8>, notifications: usize, first: Vec<u8> },
}

impl Expected {
    /// Derives the expected responses from the first response of a server.
    pub(super) fn read(answer: &[u8], text: &str, notifications: usize) -> Result<Self> {
        if notifications == 0
            && let Ok(same) = template(answer, text)
        {
            return Ok(Self::Same(same));
        }
        let (text, first) = (text.as_bytes().to_vec(), answer.to_vec());
        let expected = Self::Having { id: FIRST_ID, text, notifications, first };
        let shown = String::from_utf8_lossy(&answer[..answer.len().min(2_000)]);
        ensure!(expected.is(answer), "not the response to our call: {shown}");
        Ok(expected)
    }

    pub(super) fn set(&mut self, new: u32) {
        match self {
            Self::Same(answer) => answer.set(new),
            Self::Having { id, .. } => *id = new,
        }
    }

    pub(super) fn is(&self, answer: &[u8]) -> bool {
        match self {
            Self::Same(same) => answer == same.bytes(),
            Self::Having { id, text, notifications, .. } => {
                let has = |part: &[u8]| memmem::find(answer, part).is_some();
                let id = [format!(r#""id":{id}"#), format!(r#""id": {id}"#)];
                let told = memmem::find_iter(answer, b"notifications/progress").count();
                has(text) && id.iter().any(|id| has(id.as_bytes())) && told == *notifications
            }
        }
    }

    /// The first response.
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Same(same) => same.bytes(),
            Self::Having { first, .. } => first,
        }
    }
}

/// Checks the content of the first response. Later responses are compared as bytes.
pub(super) fn template(answer: &[u8], expected: &str) -> Result<Numbered> {
    #[derive(Deserialize)]
    struct Answer {
        id: u32,
        result: CallResult,
    }
    #[derive(Deserialize)]
    struct CallResult {
        content: [Content; 1],
    }
    #[derive(Deserialize)]
    struct Content {
        text: String,
    }
    let shown = String::from_utf8_lossy(answer);
    let read: Answer = serde_json::from_slice(answer)
        .with_context(|| format!("not the response to a call: {shown}"))?;
    let [Content { text }] = read.result.content;
    // Some servers return the text as a JSON string.
    let is_told = text.trim_matches('"') == expected;
    ensure!(read.id == FIRST_ID && is_told, "not the response to our call: {shown}");
    Numbered::new(answer).with_context(|| format!("the ID has another form: {shown}"))
}
