//! Sealed cursors: positions in lists that only their visitor can use, for a day.

use std::time::Duration;

use outlive_protocol::Seal;
use outlive_tasks::store::{InboxCursor, JournalCursor, ListCursor};
use serde::{Serialize, de::DeserializeOwned};

use super::{error::PeopleError, roles::Visitor, state::People};
use crate::server::millis;

/// Time for which a cursor opens. A page that stays open over night still leads to the next one.
const LIFETIME: Duration = Duration::from_secs(86_400);

/// A position in a list of tasks, input requests, journal entries or audit events.
pub trait Cursor: sealed::Sealed + Serialize + DeserializeOwned {
    /// Name of the list. A cursor of another list does not open.
    const LIST: &'static str;
}

impl Cursor for ListCursor {
    const LIST: &'static str = "tasks";
}

impl Cursor for InboxCursor {
    const LIST: &'static str = "inbox";
}

impl Cursor for JournalCursor {
    const LIST: &'static str = "journal";
}

/// Number of an audit event.
impl Cursor for u64 {
    const LIST: &'static str = "audit";
}

mod sealed {
    use outlive_tasks::store::{InboxCursor, JournalCursor, ListCursor};

    pub trait Sealed {}

    impl Sealed for ListCursor {}
    impl Sealed for InboxCursor {}
    impl Sealed for JournalCursor {}
    impl Sealed for u64 {}
}

impl People {
    /// Seals a cursor for the visitor. Returns `None` if the operating system provides no random
    /// bytes.
    pub fn seal_cursor<C: Cursor>(&self, visitor: &Visitor, cursor: &C) -> Option<String> {
        let mut content = self.now().saturating_add(millis(LIFETIME)).to_le_bytes().to_vec();
        serde_json::to_writer(&mut content, cursor).ok()?;
        self.seal().seal(&content, &context::<C>(visitor))
    }

    /// Opens a cursor of the visitor.
    ///
    /// # Errors
    ///
    /// [`Invalid`](PeopleError::Invalid) for a changed, foreign or expired cursor, and for one of
    /// another list.
    pub fn open_cursor<C: Cursor>(&self, visitor: &Visitor, token: &str) -> Result<C, PeopleError> {
        let content = self.seal().open(token, &context::<C>(visitor));
        let cursor = content.and_then(|content| {
            let (expires_at, cursor) = content.split_first_chunk()?;
            let is_valid = self.now() < u64::from_le_bytes(*expires_at);
            is_valid.then(|| serde_json::from_slice(cursor).ok())?
        });
        cursor.ok_or_else(|| {
            let text = "is not a cursor of this list, or has expired; start again without it";
            PeopleError::field("after", text)
        })
    }
}

fn context<C: Cursor>(visitor: &Visitor) -> [&str; 4] {
    [Seal::CURSOR, "people", visitor.seal_key(), C::LIST]
}
