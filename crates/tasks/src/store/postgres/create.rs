//! Creation of many tasks in one statement.

use std::collections::BTreeSet;

use tokio::sync::oneshot;
use tokio_postgres::Row;

use super::{
    audit,
    clock::{from_column, millis, to_column},
    column::{array, count, get, name, owned, text, to_json},
    error::PostgresError,
    input_request::Inputs,
    state::Shared,
    statement::{Call, Query, Value, values},
};
use crate::{
    JournalEntry,
    store::{
        CreateOutcome, IdempotencyKey, Lease, NewTask, StoreError, Subscription, TaskId,
        budget::{self, TASK_BYTES},
    },
};

pub(super) const CREATE: &str =
    "SELECT * FROM create_tasks($1, $2, $3, $4, $5, $6, $7, $8, $9, $10,
     $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28,
     $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42, $43)";
pub(super) const MADE: &str =
    "SELECT id, idempotency_fingerprint FROM task WHERE principal = $1 AND idempotency_key = $2";

/// A task to create, and the caller that waits for it.
pub(super) struct Creation {
    pub(super) task: NewTask,
    /// Whether an earlier attempt whose response was lost may have created the task.
    pub(super) again: bool,
    reasked: Option<String>,
    /// Key, whether the entry is an input response, and body.
    entries: Vec<(String, bool, String)>,
    /// Subscriptions, as JSON.
    pub(super) notify: Option<String>,
    /// Audit event of the end, as JSON.
    end_audit: Option<String>,
    inputs: Option<Inputs>,
    tags: BTreeSet<String>,
    answer: oneshot::Sender<Result<CreateOutcome, StoreError>>,
}

impl Creation {
    pub(super) fn new(
        task: NewTask,
        answer: oneshot::Sender<Result<CreateOutcome, StoreError>>,
    ) -> Result<Box<Self>, StoreError> {
        let reasked = match task.journal.reasked.is_empty() {
            true => None,
            false => Some(to_json(&task.journal.reasked)?),
        };
        let entries = task.journal.entries.iter().map(|(key, entry)| {
            Ok((owned(key), matches!(entry, JournalEntry::Answer(_)), to_json(entry)?))
        });
        let entries = entries.collect::<Result<_, StoreError>>()?;
        let inputs = Inputs::new(&task.input_requests)?;
        let tags = budget::stored_tags(&task).into_iter().map(owned).collect();
        let notify = subscriptions(&task)?;
        let end_audit = audit::end_column(task.end_audit.as_ref())?;
        Ok(Box::new(Self {
            task,
            again: false,
            reasked,
            entries,
            notify,
            end_audit,
            inputs,
            tags,
            answer,
        }))
    }

    pub(super) fn answer(self, created: Result<CreateOutcome, StoreError>, place: &str) {
        let created = created.map_err(|error| match place {
            "" => error,
            place => PostgresError::Store(error).with(place),
        });
        // The caller may have been dropped. The task is created in any case.
        let _ = self.answer.send(created);
    }

    /// Returns whether the task has no child rows, no idempotency key, no rare columns and no
    /// earlier attempt.
    pub(super) fn is_plain(&self) -> bool {
        let has_children = !self.entries.is_empty()
            || !self.task.journal.segments.is_empty()
            || self.task.bridge.is_some()
            || self.inputs.is_some()
            || !self.tags.is_empty();
        let has_columns = self.reasked.is_some()
            || self.task.idempotency.is_some()
            || self.task.rerun_of.is_some()
            || self.task.status_message.is_some()
            || self.end_audit.is_some();
        !has_children && !has_columns && !self.again
    }

    /// Returns the bytes of the task without its journal: `row_bytes` of the schema, the input
    /// requests and the tags.
    pub(super) fn bytes(&self) -> i64 {
        let inputs = self.inputs.as_ref().map_or(0, |inputs| inputs.bytes);
        let tags = budget::tags(self.tags.iter().map(String::as_str));
        count(TASK_BYTES + self.task.request.get().len() + inputs + tags)
    }

    /// Returns the outcome for a created task.
    pub(super) fn made(&self, at: i64) -> CreateOutcome {
        CreateOutcome::Created { lease: self.lease(), at: from_column(at) }
    }

    fn lease(&self) -> Option<Lease> {
        let (worker, _) = self.task.worker.as_ref()?;
        Some(Lease { task: self.task.id.clone(), worker: worker.clone(), epoch: 1 })
    }
}

/// Returns the subscriptions of a task as JSON. The schema reads the targets, so they are escaped.
fn subscriptions(task: &NewTask) -> Result<Option<String>, StoreError> {
    let escaped = |one: &Subscription| Subscription::new(one.event, owned(&one.target));
    array(task.notify.iter().map(escaped).collect()).map(|all| to_json(&all)).transpose()
}

/// Returns the statement that creates all of these tasks.
pub(super) fn call<'a>(creations: &'a [Box<Creation>], shared: &Shared) -> Query<'a> {
    let each = || creations.iter().map(|creation| &creation.task);
    let once = || each().map(|task| task.idempotency.as_ref());
    let names =
        |name: fn(&'a NewTask) -> &'a str| each().map(|task| text(name(task))).collect::<Vec<_>>();
    let mut values = values![
        names(|task| task.id.as_str()),
        names(|task| &task.principal),
        names(|task| &task.tool),
        names(|task| &task.origin),
        each().map(|task| task.listed).collect::<Vec<_>>(),
        each().map(|task| task.request.get()).collect::<Vec<_>>(),
        each().map(|task| task.ttl.map(millis)).collect::<Vec<_>>(),
        each().map(|task| millis(task.max_ttl)).collect::<Vec<_>>(),
        each()
            .map(|task| task.worker.as_ref().map(|(worker, _)| text(worker.as_str())))
            .collect::<Vec<_>>(),
        each()
            .map(|task| task.worker.as_ref().map(|(_, lease)| millis(*lease)))
            .collect::<Vec<_>>(),
        once().map(|once| once.map(|once| text(&once.key))).collect::<Vec<_>>(),
        once().map(|once| once.map(|once| text(&once.fingerprint))).collect::<Vec<_>>(),
        each().map(|task| count(task.quota)).collect::<Vec<_>>(),
        creations.iter().map(|creation| creation.bytes()).collect::<Vec<_>>(),
        each().map(|task| to_column(task.max_bytes)).collect::<Vec<_>>(),
        creations.iter().map(|creation| creation.reasked.as_deref()).collect::<Vec<_>>(),
        creations.iter().map(|creation| creation.again).collect::<Vec<_>>(),
        each().map(|task| task.clean_up).collect::<Vec<_>>(),
    ];
    values.extend(rare_values(creations));
    values.extend(child_values(creations));
    values.extend(people_values(creations));
    values.extend(values![shared.lock(), shared.shift.get()]);
    Query::new(CREATE, values)
}

/// Returns the columns that few tasks have. A column that no task has is NULL.
fn rare_values(creations: &[Box<Creation>]) -> Vec<Value<'_>> {
    let each = || creations.iter().map(|creation| &creation.task);
    let any_indexed = each().any(|task| task.indexed);
    values![
        some_of(each().map(|task| task.person.as_deref().map(text))),
        any_indexed.then(|| each().map(|task| task.indexed).collect::<Vec<_>>()),
        some_of(each().map(|task| task.rerun_of.as_ref().map(|of| text(of.as_str())))),
        some_of(creations.iter().map(|creation| creation.notify.as_deref())),
        some_of(each().map(|task| task.status_message.as_deref().map(text))),
        some_of(creations.iter().map(|creation| creation.end_audit.as_deref())),
    ]
}

/// Collects values; `None` if no value is present.
fn some_of<T>(values: impl Iterator<Item = Option<T>> + Clone) -> Option<Vec<Option<T>>> {
    values.clone().any(|value| value.is_some()).then(|| values.collect())
}

/// Returns the input requests and tags of the tasks, with the positions of their tasks.
fn people_values(creations: &[Box<Creation>]) -> Vec<Value<'_>> {
    let each = || (1_i64..).zip(creations);
    let asked = each().filter_map(|(place, creation)| {
        let inputs = &creation.inputs.as_ref()?.json;
        Some(format!(r#"{{"place":{place},"inputs":{inputs}}}"#))
    });
    let asked = array(asked.collect()).map(|asked| format!("[{}]", asked.join(",")));
    let tags =
        || each().flat_map(|(place, creation)| creation.tags.iter().map(move |tag| (place, tag)));
    values![
        asked,
        array(tags().map(|(place, _)| place).collect()),
        array(tags().map(|(_, tag)| tag.as_str()).collect()),
    ]
}

/// Returns the journal entries, segments and bridged calls of the tasks, with the positions of their
/// tasks.
fn child_values(creations: &[Box<Creation>]) -> Vec<Value<'_>> {
    let each = || (1_i64..).zip(creations);
    let entries = || {
        each()
            .flat_map(|(place, creation)| creation.entries.iter().map(move |entry| (place, entry)))
    };
    let segments = || {
        each().flat_map(|(place, creation)| {
            let numbered = (1_i64..).zip(&creation.task.journal.segments);
            numbered.map(move |(number, segment)| (place, number, segment))
        })
    };
    let calls =
        || each().filter_map(|(place, creation)| Some((place, creation.task.bridge.as_ref()?)));
    values![
        array(entries().map(|(place, _)| place).collect()),
        array(entries().map(|(_, entry)| entry.0.as_str()).collect()),
        array(entries().map(|(_, entry)| entry.1).collect()),
        array(entries().map(|(_, entry)| entry.2.as_str()).collect()),
        array(segments().map(|(place, ..)| place).collect()),
        array(segments().map(|(_, number, _)| number).collect()),
        array(segments().map(|(.., segment)| text(&segment.scope)).collect()),
        array(segments().map(|(.., segment)| i64::from(segment.ordinal)).collect()),
        array(segments().map(|(.., segment)| segment.block.get()).collect()),
        array(calls().map(|(place, _)| place).collect()),
        array(calls().map(|(_, call)| call.scope.as_deref().map(text)).collect()),
        array(calls().map(|(_, call)| text(&call.fingerprint)).collect()),
        array(calls().map(|(_, call)| text(call.worker.as_str())).collect()),
        array(calls().map(|(_, call)| millis(call.abandon_timeout)).collect()),
    ]
}

/// Reads the outcome of each task. The first row contains the creation time; the others are the
/// tasks that were not created.
pub(super) fn read(
    creations: &[Box<Creation>],
    rows: &[Row],
) -> Vec<Result<CreateOutcome, StoreError>> {
    let mut rows = rows.iter();
    let at = rows.next().map_or(Err(PostgresError::Silent), |row| get(row, 3));
    let mut created: Vec<_> = creations
        .iter()
        .map(|creation| match &at {
            Ok(at) => Ok(creation.made(*at)),
            Err(problem) => Err(problem.with("")),
        })
        .collect();
    for row in rows {
        let (place, refused) = match refused(row) {
            Ok(refused) => refused,
            Err(problem) => {
                // The function never returns such a row.
                tracing::error!(error = ?problem, "could not read the result of a creation");
                continue;
            }
        };
        let place = usize::try_from(place - 1).unwrap_or(usize::MAX);
        if let (Some(created), Some(refused)) = (created.get_mut(place), refused) {
            *created = refused;
        }
    }
    created
}

/// Reads the position and the outcome of a task that was not created. The outcome is `None` if an
/// earlier attempt created the task.
fn refused(row: &Row) -> Result<(i64, Option<Result<CreateOutcome, StoreError>>), PostgresError> {
    let (place, what): (i64, i32) = (get(row, 0)?, get(row, 1)?);
    let refused = match what {
        0 => None,
        1 => Some(Ok(CreateOutcome::Existing(TaskId::new(name(row, 2)?)))),
        2 => Some(Ok(CreateOutcome::KeyConflict)),
        3 => Some(Ok(CreateOutcome::QuotaExceeded)),
        5 => Some(Ok(CreateOutcome::BytesExceeded)),
        _ => Some(Err(StoreError::Unavailable(
            "the task ID belongs to another principal".to_owned(),
        ))),
    };
    Ok((place, refused))
}

/// Returns the statement that finds a task by its idempotency key. The key exists as long as the
/// task.
pub(super) fn made(principal: &str, once: &IdempotencyKey) -> Call {
    Call::new(MADE, values![owned(principal), owned(&once.key)])
}

pub(super) fn read_made(
    rows: &[Row],
    once: &IdempotencyKey,
) -> Result<Option<CreateOutcome>, PostgresError> {
    let Some(row) = rows.first() else { return Ok(None) };
    Ok(Some(match name(row, 1)? == once.fingerprint {
        true => CreateOutcome::Existing(TaskId::new(name(row, 0)?)),
        false => CreateOutcome::KeyConflict,
    }))
}
