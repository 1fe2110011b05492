//! The lines that start a call or a cleanup: its arguments and its journal, in pieces.

use outlive::{
    server::{
        Principal,
        durable::{Key, StepOutcome, StepRecord},
    },
    wire::RawJson,
};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::from_server::{MAX_LINE, RunNumber, line};

/// Bytes of journal entries in one line, unless an entry is longer.
const MAX_PIECE: usize = 256 << 10;

/// Start of a call or a cleanup.
#[derive(Debug)]
pub(crate) struct Start<'a> {
    pub(crate) run: RunNumber,
    pub(crate) tool: &'a str,
    pub(crate) arguments: &'a RawValue,
    pub(crate) records: &'a [StepRecord],
    /// Input responses, of a cleanup.
    pub(crate) responses: &'a [(Key, RawJson)],
    /// Number of the attempt, of a call.
    pub(crate) attempt: Option<u32>,
    pub(crate) idempotency_key: &'a str,
    /// Reason of a cleanup.
    pub(crate) reason: Option<&'a str>,
    /// Caller, of a call.
    pub(crate) principal: Option<&'a Principal>,
}

/// The arguments of a call are too long for a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ArgumentsTooLong;

/// The line that starts a run.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cleanup: Option<u64>,
    tool: &'a str,
    arguments: &'a RawValue,
    journal: Journal<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<u32>,
    idempotency_key: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    principal: Option<Caller<'a>>,
}

/// A line with a part of the journal, before the run starts.
#[derive(Serialize)]
struct Piece<J> {
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cleanup: Option<u64>,
    journal: J,
    more: bool,
}

/// The caller of a call.
#[derive(Serialize)]
struct Caller<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    scopes: Vec<&'a str>,
}

/// A journal entry on the wire.
#[derive(Default, Serialize)]
struct Entry<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    v: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    x: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    f: Option<Failure<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    a: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    r: Option<&'a str>,
}

#[derive(Serialize)]
struct Failure<'a> {
    message: &'a str,
}

/// A part of a journal.
struct Journal<'a>(&'a [StepRecord]);

impl Serialize for Journal<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|record| (record.key.as_str(), entry(record))))
    }
}

/// A journal with one input response.
struct ResponseEntry<'a>(&'a (Key, RawJson));

impl Serialize for ResponseEntry<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (key, response) = self.0;
        let entry = Entry { a: Some(response), ..Entry::default() };
        serializer.collect_map([(key.as_str(), entry)])
    }
}

fn entry(record: &StepRecord) -> Entry<'_> {
    let empty = Entry { r: record.revision.as_deref(), ..Entry::default() };
    match &record.outcome {
        StepOutcome::Value(value) => Entry { v: Some(value), ..empty },
        StepOutcome::Secret(value) => Entry { x: Some(value), ..empty },
        StepOutcome::Failed(message) => Entry { f: Some(Failure { message }), ..empty },
        _ => empty,
    }
}

fn size(record: &StepRecord) -> usize {
    let value = match &record.outcome {
        StepOutcome::Value(value) | StepOutcome::Secret(value) => value.get().len(),
        StepOutcome::Failed(message) => message.len(),
        _ => 0,
    };
    record.key.as_str().len() + value
}

impl<'a> Start<'a> {
    /// Returns the lines, in order. The last one starts the run.
    ///
    /// # Errors
    ///
    /// Returns an error if the arguments do not fit a line.
    pub(crate) fn lines(&self) -> Result<Vec<String>, ArgumentsTooLong> {
        let mut pieces = pieces(self.records);
        let mut lines: Vec<String> =
            self.responses.iter().map(|response| self.piece(ResponseEntry(response))).collect();
        // The last line has the arguments too, so a long entry precedes it.
        let fits = |piece: &mut &[StepRecord]| piece.iter().map(size).sum::<usize>() <= MAX_PIECE;
        let records = pieces.pop_if(fits).unwrap_or_default();
        lines.extend(pieces.into_iter().map(|records| self.piece(Journal(records))));
        let mut last = self.last(records);
        if last.len() > MAX_LINE && !records.is_empty() {
            lines.push(self.piece(Journal(records)));
            last = self.last(&[]);
        }
        if last.len() > MAX_LINE {
            return Err(ArgumentsTooLong);
        }
        lines.push(last);
        Ok(lines)
    }

    /// Returns a line with a part of the journal.
    fn piece(&self, journal: impl Serialize) -> String {
        line(&Piece { call: self.run.call(), cleanup: self.run.cleanup(), journal, more: true })
    }

    fn last(&self, records: &[StepRecord]) -> String {
        let caller = |principal: &'a Principal| {
            Some(Caller { name: principal.name()?, scopes: principal.scopes().iter().collect() })
        };
        line(&Line {
            call: self.run.call(),
            cleanup: self.run.cleanup(),
            tool: self.tool,
            arguments: self.arguments,
            journal: Journal(records),
            reason: self.reason,
            attempt: self.attempt,
            idempotency_key: self.idempotency_key,
            principal: self.principal.and_then(caller),
        })
    }
}

/// Splits a journal into pieces of at most [`MAX_PIECE`] bytes. A longer entry is alone.
fn pieces(records: &[StepRecord]) -> Vec<&[StepRecord]> {
    let mut pieces = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (at, record) in records.iter().enumerate() {
        let size = size(record);
        if at > start && bytes + size > MAX_PIECE {
            pieces.push(&records[start..at]);
            (start, bytes) = (at, 0);
        }
        bytes += size;
    }
    pieces.push(&records[start..]);
    pieces
}
