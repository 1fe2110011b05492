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
    /// A secret has been written.
    Secret,
}

/// A value that may be recorded in a store but never leaves for the client.
///
/// A step that returns one, anywhere in its value, works where the journal stays on the server.
/// Where the journal travels through the client (2026-07-28, without a store) recording it is
/// refused, sealed or not. It is not printed, and cannot be serialised by anything but a journal.
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
    /// Hides a value.
    pub fn new(value: T) -> Self {
        Self(value)
    }

    /// Shows it.
    pub fn expose(&self) -> &T {
        &self.0
    }

    /// Takes it out.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T: Serialize> Serialize for Secret<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if RECORDING.get() == Recording::No {
            return Err(S::Error::custom("a secret is serialised by nothing but a journal"));
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

/// Serialises for the journal, and tells whether there was a secret.
pub(crate) fn record<T>(serialise: impl FnOnce() -> T) -> (T, bool) {
    struct Restore(Recording);

    impl Drop for Restore {
        fn drop(&mut self) {
            RECORDING.set(self.0);
        }
    }

    let _restore = Restore(RECORDING.replace(Recording::Yes));
    let value = serialise();
    (value, RECORDING.get() == Recording::Secret)
}
