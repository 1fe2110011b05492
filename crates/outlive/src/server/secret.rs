//! Values that must not leave the server.

use std::{cell::Cell, fmt};

use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::Error};

thread_local! {
    static RECORDING: Cell<Recording> = const { Cell::new(Recording::No) };
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Recording {
    No,
    Yes,
    /// The recorded value contains a secret.
    Secret,
}

/// A value that a journal can record but that is never sent to the client.
///
/// A step that returns a value with a secret works if the journal stays on the server. If a request
/// state would carry the journal (2026-07-28 without a store), the step fails. `Debug` hides the
/// value, and only a journal can serialize it.
///
/// ```
/// use outlive::server::durable::Secret;
///
/// let token = Secret::new("hunter2".to_owned());
/// assert_eq!(format!("{token:?}"), "Secret(…)");
/// assert!(serde_json::to_string(&token).is_err());
/// assert_eq!(token.expose(), "hunter2");
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret<T>(T);

impl<T> Secret<T> {
    /// Wraps a value.
    pub fn new(value: T) -> Self {
        Self(value)
    }

    /// Returns a reference to the value.
    pub fn expose(&self) -> &T {
        &self.0
    }

    /// Returns the value.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T: Serialize> Serialize for Secret<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if RECORDING.get() == Recording::No {
            return Err(S::Error::custom("a secret can be serialized only by a journal"));
        }
        RECORDING.set(Recording::Secret);
        self.0.serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Secret<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Self)
    }
}

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Serializes for the journal, and returns whether the value contains a secret.
pub(crate) fn record<T>(serialize: impl FnOnce() -> T) -> (T, bool) {
    struct Restore(Recording);

    impl Drop for Restore {
        fn drop(&mut self) {
            RECORDING.set(self.0);
        }
    }

    let _restore = Restore(RECORDING.replace(Recording::Yes));
    let value = serialize();
    (value, RECORDING.get() == Recording::Secret)
}
