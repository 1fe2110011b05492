//! Open streams of HTTP+SSE.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{caller::Caller, pipe::Pipe, shares::Shares};

/// Open streams, by the ID in the URL for messages.
pub(super) struct SseStreams {
    open: Mutex<HashMap<Arc<str>, Arc<Pipe>>>,
    pub(super) per_caller: Arc<Shares<Caller>>,
}

impl SseStreams {
    pub(super) fn new(max_per_caller: usize) -> Self {
        Self { open: Mutex::default(), per_caller: Shares::new(max_per_caller) }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<Pipe>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes all streams.
    pub(super) fn close_all(&self) {
        let pipes: Vec<_> = self.lock().drain().map(|(_, pipe)| pipe).collect();
        pipes.iter().for_each(|pipe| pipe.close());
    }
}

impl fmt::Debug for SseStreams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SseStreams").field("open", &self.lock().len()).finish()
    }
}
