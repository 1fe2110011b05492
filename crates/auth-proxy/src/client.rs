//! Who a client is: what it calls itself, and where its answers may go.
//!
//! A client that has registered has its registration for an id, sealed: nothing is remembered for it,
//! so that registering costs nothing and anybody may. One that publishes a document about itself has
//! that document's address for an id.

use serde::{Deserialize, Serialize};

use super::{
    keys::{Keys, digest},
    redirect_uri::RedirectUri,
};

/// What holds for all ids that were given out here.
const REGISTERED: &[&str] = &["client"];

/// The longest id that is looked at.
const LONGEST: usize = 8 << 10;

/// What is known of a client.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Client {
    pub(super) name: Option<String>,
    pub(super) redirect_uris: Vec<String>,
}

impl Client {
    /// The id of a client that registers.
    pub(super) fn seal(&self, keys: &Keys) -> Option<String> {
        keys.seal(self, REGISTERED)
    }

    /// The client with an id that was given out here.
    pub(super) fn open(keys: &Keys, id: &str) -> Option<Self> {
        if id.len() > LONGEST { None } else { keys.open(id, REGISTERED) }
    }

    /// Where an answer may go, of what was asked for.
    pub(super) fn redirect<'a>(&self, asked: &'a str) -> Option<RedirectUri<'a>> {
        let asked = RedirectUri::parse(asked)?;
        let mut known = self.redirect_uris.iter().filter_map(|known| RedirectUri::parse(known));
        known.any(|known| known.admits(&asked)).then_some(asked)
    }
}

/// Whether an id is the address of a document.
pub(super) fn is_document(id: &str) -> bool {
    id.contains("://")
}

/// What a client is called in tokens and in the names of callers. An id that was given out here is too
/// long for that.
pub(super) fn short_name(id: &str) -> String {
    if is_document(id) { id.to_owned() } else { digest(id)[..22].to_owned() }
}
