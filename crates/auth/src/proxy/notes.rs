//! Where logins are kept: small texts under keys, each for some time. Whoever keeps them learns
//! nothing from them: they are sealed.

use std::{
    collections::HashMap,
    error::Error,
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use outlive_protocol::Clock;
use outlive_transport::TokioClock;

/// Keeps texts under keys. Replicas share what is kept.
pub trait Notes: Send + Sync + 'static {
    /// Keeps a note unless there is one under this key. Of several who do that at once, exactly one
    /// is told `true`, wherever they are.
    fn keep<'a>(&'a self, key: &'a str, note: String, ttl: Duration) -> Noting<'a, bool>;

    /// Puts a note in the place of whatever is under a key.
    fn replace<'a>(&'a self, key: &'a str, note: String, ttl: Duration) -> Noting<'a, ()>;

    /// The note under a key, unless its time is over.
    fn kept<'a>(&'a self, key: &'a str) -> Noting<'a, Option<String>>;

    /// Forgets the note under a key.
    fn forget<'a>(&'a self, key: &'a str) -> Noting<'a, ()>;
}

/// What [`Notes`] are asked, while it is being done.
pub type Noting<'a, T> = Pin<Box<dyn Future<Output = Result<T, NotesError>> + Send + 'a>>;

/// Nothing could be kept or looked up. The same may well work later.
#[derive(Debug)]
pub struct NotesError(Box<dyn Error + Send + Sync>);

impl NotesError {
    /// What was wrong.
    pub fn new(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(error.into())
    }
}

impl fmt::Display for NotesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "logins cannot be kept: {}", self.0)
    }
}

impl Error for NotesError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.0)
    }
}

impl<N: Notes + ?Sized> Notes for Arc<N> {
    fn keep<'a>(&'a self, key: &'a str, note: String, ttl: Duration) -> Noting<'a, bool> {
        (**self).keep(key, note, ttl)
    }

    fn replace<'a>(&'a self, key: &'a str, note: String, ttl: Duration) -> Noting<'a, ()> {
        (**self).replace(key, note, ttl)
    }

    fn kept<'a>(&'a self, key: &'a str) -> Noting<'a, Option<String>> {
        (**self).kept(key)
    }

    fn forget<'a>(&'a self, key: &'a str) -> Noting<'a, ()> {
        (**self).forget(key)
    }
}

/// Notes in memory: for one process, and for as long as it lives.
pub struct MemoryNotes {
    most: usize,
    clock: Arc<dyn Clock>,
    // A std mutex: nothing awaits while it is held.
    notes: Mutex<HashMap<String, (String, Instant)>>,
}

impl MemoryNotes {
    /// Room for so many notes. A login has about three.
    pub fn new(most: usize) -> Self {
        Self::with_clock(most, Arc::new(TokioClock::new()))
    }

    /// The same, with time from elsewhere.
    pub fn with_clock(most: usize, clock: Arc<dyn Clock>) -> Self {
        Self { most, clock, notes: Mutex::default() }
    }

    /// Puts a note, or says that one is there which is not to be replaced.
    fn put(&self, key: &str, note: String, ttl: Duration, over: bool) -> Result<bool, NotesError> {
        let now = self.clock.now();
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        let there = notes.get(key).is_some_and(|(_, until)| now < *until);
        if there && !over {
            return Ok(false);
        }
        if notes.len() >= self.most && !notes.contains_key(key) {
            notes.retain(|_, (_, until)| now < *until);
            // Nobody who is logged in makes room for somebody who is not.
            if notes.len() >= self.most {
                return Err(NotesError::new("there is no room for more; raise `max_notes`"));
            }
        }
        notes.insert(key.to_owned(), (note, now + ttl));
        Ok(true)
    }
}

impl Notes for MemoryNotes {
    fn keep<'a>(&'a self, key: &'a str, note: String, ttl: Duration) -> Noting<'a, bool> {
        Box::pin(async move { self.put(key, note, ttl, false) })
    }

    fn replace<'a>(&'a self, key: &'a str, note: String, ttl: Duration) -> Noting<'a, ()> {
        Box::pin(async move { self.put(key, note, ttl, true).map(drop) })
    }

    fn kept<'a>(&'a self, key: &'a str) -> Noting<'a, Option<String>> {
        Box::pin(async move {
            let notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
            let note = notes.get(key).filter(|(_, until)| self.clock.now() < *until);
            Ok(note.map(|(note, _)| note.clone()))
        })
    }

    fn forget<'a>(&'a self, key: &'a str) -> Noting<'a, ()> {
        Box::pin(async move {
            self.notes.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
            Ok(())
        })
    }
}

impl fmt::Debug for MemoryNotes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryNotes").field("most", &self.most).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{MemoryNotes, Notes};

    #[tokio::test(start_paused = true)]
    async fn a_note_is_kept_once_for_its_time_and_within_bounds() {
        let notes = MemoryNotes::new(2);
        let second = Duration::from_secs(1);
        assert!(notes.keep("a", "1".into(), second).await.unwrap());
        assert!(!notes.keep("a", "2".into(), second).await.unwrap());
        assert_eq!(notes.kept("a").await.unwrap().as_deref(), Some("1"));
        notes.replace("b", "3".into(), 5 * second).await.unwrap();
        assert!(notes.keep("c", "4".into(), second).await.is_err(), "there is no room");
        notes.replace("b", "5".into(), 5 * second).await.unwrap();
        tokio::time::advance(2 * second).await;
        assert_eq!(notes.kept("a").await.unwrap(), None);
        assert!(notes.keep("c", "4".into(), second).await.unwrap());
        notes.forget("b").await.unwrap();
        assert_eq!(notes.kept("b").await.unwrap(), None);
    }
}
