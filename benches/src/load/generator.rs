//! What a load generator sends, and what it has to get back.

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

/// Whoever asks a server.
pub(crate) trait Generator {
    /// Asks for a while; says how much was done. Nothing is under way afterwards.
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

    /// As a peer is, whose helpers are no strangers.
    pub(crate) fn of(self, peer: &Peer) -> Self {
        self.with_helpers(peer.has_helpers)
    }

    /// As one that works with a database.
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

/// What every answer of a server must be.
#[derive(Debug)]
pub(super) enum Expected {
    /// These bytes, but for the id.
    Same(Numbered),
    /// A stream of events, or JSON that is written in another way: with this id, this text and so
    /// many notifications.
    Having { id: u32, text: Vec<u8>, notifications: usize, first: Vec<u8> },
}

impl Expected {
    /// Reads the first answer of a server, and what the later ones must be from it.
    pub(super) fn read(answer: &[u8], text: &str, notifications: usize) -> Result<Self> {
        if notifications == 0
            && let Ok(same) = template(answer, text)
        {
            return Ok(Self::Same(same));
        }
        let (text, first) = (text.as_bytes().to_vec(), answer.to_vec());
        let expected = Self::Having { id: FIRST_ID, text, notifications, first };
        let shown = String::from_utf8_lossy(&answer[..answer.len().min(2_000)]);
        ensure!(expected.is(answer), "not the answer to our call: {shown}");
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

    /// The first answer.
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Same(same) => same.bytes(),
            Self::Having { first, .. } => first,
        }
    }
}

/// Checks the first answer of a server by what it says; from then on it is compared as bytes.
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
        .with_context(|| format!("not the answer to a call: {shown}"))?;
    let [Content { text }] = read.result.content;
    // There are servers that say a text as JSON.
    let is_told = text.trim_matches('"') == expected;
    ensure!(read.id == FIRST_ID && is_told, "not the answer to our call: {shown}");
    Numbered::new(answer).with_context(|| format!("the id was written in another way: {shown}"))
}
