//! Sealed cursors: positions in lists that only their visitor can use.

use outlive_protocol::Seal;
use outlive_tasks::store::{InboxCursor, JournalCursor, ListCursor};
use serde::{Serialize, de::DeserializeOwned};

use super::{error::PeopleError, roles::Visitor, state::People};

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
        self.seal().seal(&serde_json::to_vec(cursor).ok()?, &context::<C>(visitor))
    }

    /// Opens a cursor of the visitor.
    ///
    /// # Errors
    ///
    /// [`Invalid`](PeopleError::Invalid) for a changed or foreign cursor, and for one of another
    /// list.
    pub fn open_cursor<C: Cursor>(&self, visitor: &Visitor, token: &str) -> Result<C, PeopleError> {
        let content = self.seal().open(token, &context::<C>(visitor));
        let cursor = content.and_then(|content| serde_json::from_slice(&content).ok());
        cursor.ok_or_else(|| {
            PeopleError::field("after", "is not a cursor of this list; start again without it")
        })
    }
}

fn context<C: Cursor>(visitor: &Visitor) -> [&str; 4] {
    [Seal::CURSOR, "people", visitor.seal_key(), C::LIST]
}
