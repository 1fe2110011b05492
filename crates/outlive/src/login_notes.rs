//! The logins of an authorization proxy as notes of the task store, so that they outlive the process
//! and all replicas know them.

use std::{fmt, sync::Arc, time::Duration};

use outlive_auth::proxy::{Notes, NotesError, Noting};
use outlive_tasks::store::Store;
use outlive_wire::RawJson;
use serde_json::value::to_raw_value;

/// Keeps the logins of a [`Proxy`](outlive_auth::proxy::Proxy) in a store. What is kept is sealed:
/// the store learns nothing from it.
///
/// ```no_run
/// use outlive::{auth::proxy::{Proxy, Upstream}, tasks::{LoginNotes, open}};
///
/// # async fn run(secret: [u8; 32]) -> Result<(), Box<dyn std::error::Error>> {
/// let store = open("sqlite:/var/lib/files/tasks.db").await?;
/// let upstream = Upstream::discovered("https://id.example.com", "client-id");
/// let proxy = Proxy::builder("https://mcp.example.com/mcp", upstream)
///     .notes(LoginNotes::new(store))
///     .secret(secret)
///     .build()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct LoginNotes(Arc<dyn Store>);

impl LoginNotes {
    /// Keeps them in this store. Whoever sweeps its tasks sweeps what is over of these: a server that
    /// runs tasks on it does.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self(store)
    }
}

impl Notes for LoginNotes {
    fn keep<'a>(&'a self, key: &'a str, note: String, ttl: Duration) -> Noting<'a, bool> {
        Box::pin(async move {
            let there = self.0.keep(key, json(&note)?, ttl, None).await.map_err(NotesError::new)?;
            Ok(there.is_none())
        })
    }

    fn replace<'a>(&'a self, key: &'a str, note: String, ttl: Duration) -> Noting<'a, ()> {
        Box::pin(async move {
            self.0.replace(key, json(&note)?, ttl, None).await.map_err(NotesError::new)
        })
    }

    fn kept<'a>(&'a self, key: &'a str) -> Noting<'a, Option<String>> {
        Box::pin(async move {
            let note = self.0.kept(key).await.map_err(NotesError::new)?;
            let read = note.map(|note| serde_json::from_str(note.get())).transpose();
            read.map_err(NotesError::new)
        })
    }

    fn forget<'a>(&'a self, key: &'a str) -> Noting<'a, ()> {
        Box::pin(async move { self.0.forget(key).await.map_err(NotesError::new) })
    }
}

fn json(note: &str) -> Result<RawJson, NotesError> {
    to_raw_value(note).map_err(NotesError::new)
}

impl fmt::Debug for LoginNotes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LoginNotes(…)")
    }
}
