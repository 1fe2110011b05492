//! [`ResultReader`]: the parts of a result, in the store or in memory.

use std::{collections::HashMap, sync::Arc};

use outlive_tasks::store::{
    LargeResult, PART_BYTES, ResultPart, ResultStore, SplitResult, StoredBlock, TaskId,
    TaskOutcome, split,
};
use outlive_wire::RawJson;

use crate::server::results::error::ReadError;

/// Reads the bodies of one result. A read loads only the parts that it needs.
pub(crate) struct ResultReader<'a> {
    result: LargeResult,
    source: Source<'a>,
}

enum Source<'a> {
    Store { store: &'a dyn ResultStore, principal: &'a str, task: &'a TaskId },
    Memory(HashMap<(u32, u32), Arc<[u8]>>),
}

impl<'a> ResultReader<'a> {
    /// Creates a reader for the outcome of a task. Returns `None` if the outcome is not a result.
    pub(crate) fn from_outcome(
        store: &'a dyn ResultStore,
        principal: &'a str,
        task: &'a TaskId,
        outcome: &TaskOutcome,
    ) -> Option<Self> {
        match outcome {
            TaskOutcome::Result(raw) => Some(Self::from_whole(raw)),
            TaskOutcome::LargeResult(large) => Some(Self {
                result: (**large).clone(),
                source: Source::Store { store, principal, task },
            }),
            TaskOutcome::Error(_) | TaskOutcome::Cancelled | TaskOutcome::Expired => None,
        }
    }

    /// Creates a reader for a result in memory. Its blocks have the same numbers as in the store.
    pub(crate) fn from_whole(raw: &RawJson) -> Self {
        match split(raw) {
            Some(SplitResult { result, parts, .. }) => {
                let parts = parts.into_iter().map(|part| ((part.block, part.number), part.body));
                Self { result, source: Source::Memory(parts.collect()) }
            }
            None => Self {
                result: LargeResult::from_whole(raw.clone()),
                source: Source::Memory(HashMap::new()),
            },
        }
    }

    /// Creates a reader for an outcome whose parts are in memory. Returns `None` if the outcome is
    /// not a result.
    pub(crate) fn from_parts(outcome: &TaskOutcome, parts: &[ResultPart]) -> Option<Self> {
        match outcome {
            TaskOutcome::Result(raw) => Some(Self::from_whole(raw)),
            TaskOutcome::LargeResult(large) => {
                let parts = parts.iter();
                let parts = parts.map(|part| ((part.block, part.number), Arc::clone(&part.body)));
                Some(Self { result: (**large).clone(), source: Source::Memory(parts.collect()) })
            }
            TaskOutcome::Error(_) | TaskOutcome::Cancelled | TaskOutcome::Expired => None,
        }
    }

    pub(crate) fn result(&self) -> &LargeResult {
        &self.result
    }

    /// Returns a block by its number in the URI.
    pub(crate) fn block(&self, number: usize) -> Result<&StoredBlock, ReadError> {
        self.result.blocks.get(number).ok_or(ReadError::Unknown)
    }

    /// Returns a part of a body.
    pub(crate) async fn part(&self, body: u32, part: u32) -> Result<Arc<[u8]>, ReadError> {
        let read = match &self.source {
            Source::Memory(parts) => parts.get(&(body, part)).cloned(),
            Source::Store { store, principal, task } => {
                store.read_part(principal, task, body, part).await?
            }
        };
        read.ok_or(ReadError::Unknown)
    }

    /// Returns the bytes of a body from `from` up to `to`.
    pub(crate) async fn bytes(&self, body: u32, from: u64, to: u64) -> Result<Vec<u8>, ReadError> {
        let mut bytes = Vec::with_capacity(usize::try_from(to - from.min(to)).unwrap_or_default());
        let mut at = from;
        while at < to {
            let part = self.part(body, part_of(at)).await?;
            let start = usize::try_from(at % PART_BYTES as u64).unwrap_or_default();
            let wanted = usize::try_from(to - at).unwrap_or(usize::MAX);
            let end = part.len().min(start.saturating_add(wanted));
            let piece = part.get(start..end).filter(|piece| !piece.is_empty());
            let piece = piece.ok_or(ReadError::Unknown)?;
            bytes.extend_from_slice(piece);
            at += piece.len() as u64;
        }
        Ok(bytes)
    }

    /// Returns a whole body as text.
    pub(crate) async fn text(&self, body: u32, bytes: u64) -> Result<String, ReadError> {
        let bytes = self.bytes(body, 0, bytes).await?;
        String::from_utf8(bytes).map_err(|_| ReadError::Unknown)
    }
}

/// Returns the number of the part that contains a byte.
fn part_of(at: u64) -> u32 {
    u32::try_from(at / PART_BYTES as u64).unwrap_or(u32::MAX)
}
