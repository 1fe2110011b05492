//! One transaction that copies new tasks into the task table.

use std::{future::poll_fn, pin::pin};

use bytes::{Bytes, BytesMut};
use futures_sink::Sink;
use tokio::sync::oneshot;
use tokio_postgres::CopyInSink;

use super::super::{
    clock::{millis, to_column},
    column::{count, get, text},
    connect::Session,
    create::Creation,
    error::PostgresError,
    state::Shared,
    statement::{Query, values},
    writer::command,
};
pub(super) const COUNT: &str = "SELECT * FROM count_tasks($1, $2, $3, $4, $5, $6, $7)";
pub(super) const COPY: &str =
    "COPY task (id, principal, tool, origin, listed, request, phase, epoch, worker_id, worker_lock, due_at,
     created_at, updated_at, ttl, max_ttl, effective_ttl, started, crash_count, has_cleanup,
     acknowledged_at, person, indexed, notify) FROM STDIN (FORMAT binary)";

/// Number of columns in `COPY`.
const COLUMNS: i16 = 23;

/// Header of the binary copy format: signature, flags and extension length.
const HEAD: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// Estimated bytes of a row without its texts and its request.
const ROW: usize = 256;

/// Returns the statement that counts the tasks. Each principal occurs once, in order.
fn counting<'a>(creations: &'a [Box<Creation>], shared: &Shared) -> Query<'a> {
    let principals = || creations.chunk_by(|one, next| one.task.principal == next.task.principal);
    let least = |same: &[Box<Creation>]| same.iter().map(|one| count(one.task.quota)).min();
    let bytes = |same: &[Box<Creation>]| same.iter().map(|one| one.bytes()).sum::<i64>();
    let most = |same: &[Box<Creation>]| same.iter().map(|one| to_column(one.task.max_bytes)).min();
    Query::new(
        COUNT,
        values![
            principals().map(|same| text(&same[0].task.principal)).collect::<Vec<_>>(),
            principals().map(|same| count(same.len())).collect::<Vec<_>>(),
            principals().map(|same| least(same).unwrap_or(0)).collect::<Vec<_>>(),
            principals().map(bytes).collect::<Vec<_>>(),
            principals().map(|same| most(same).unwrap_or(0)).collect::<Vec<_>>(),
            count(creations.iter().filter(|one| one.task.worker.is_some()).count()),
            shared.shift.get(),
        ],
    )
}

/// A started copy: the tasks are counted, and the rows can be sent.
pub(super) struct Begun {
    /// When the tasks are created.
    pub(super) at: i64,
    sink: CopyInSink<Bytes>,
}

/// Starts a transaction that creates tasks. Returns `None` if a quota is exceeded. Without a
/// `Begun` value, the caller must roll back the transaction.
pub(super) async fn begin(
    session: &Session,
    creations: &[Box<Creation>],
    shared: &Shared,
) -> Result<Option<Begun>, PostgresError> {
    let counting = counting(creations, shared);
    let copy = session.prepared(COPY)?;
    let (begun, counted, sink) = tokio::join!(
        biased;
        command(session, "BEGIN"),
        counting.send(session),
        session.client.copy_in::<_, Bytes>(copy),
    );
    begun?;
    let counted = counted?;
    let counted = counted.first().ok_or(PostgresError::Silent)?;
    let (at, is_terminal): (i64, bool) = (get(counted, 0)?, get(counted, 1)?);
    let sink = sink?;
    Ok((!is_terminal).then_some(Begun { at, sink }))
}

/// Sends the rows and commits. `sent` fires when only the commit is outstanding.
pub(super) async fn finish(
    session: &Session,
    begun: Begun,
    rows: Bytes,
    sent: oneshot::Sender<()>,
) -> Result<(), PostgresError> {
    let (written, committed) = tokio::join!(
        biased;
        async {
            let written = write(begun.sink, rows).await;
            // The receiver may have been dropped.
            let _ = sent.send(());
            written
        },
        command(session, "COMMIT"),
    );
    written?;
    committed?;
    Ok(())
}

async fn write(sink: CopyInSink<Bytes>, rows: Bytes) -> Result<(), PostgresError> {
    let mut sink = pin!(sink);
    poll_fn(|cx| sink.as_mut().poll_ready(cx)).await?;
    sink.as_mut().start_send(rows)?;
    sink.finish().await?;
    Ok(())
}

/// Returns the tasks in the binary copy format.
pub(super) fn rows(creations: &[Box<Creation>], begun: &Begun, shared: &Shared) -> Bytes {
    let (at, lock) = (begun.at, shared.lock());
    let requests = creations.iter().map(|creation| creation.task.request.get().len());
    let mut rows = Rows(BytesMut::with_capacity(requests.sum::<usize>() + creations.len() * ROW));
    rows.0.extend_from_slice(HEAD);
    creations.iter().for_each(|creation| rows.push(creation, at, lock));
    rows.0.extend_from_slice(&(-1_i16).to_be_bytes());
    rows.0.freeze()
}

/// Rows in the binary copy format. Each value follows its length; the length -1 means NULL.
struct Rows(BytesMut);

impl Rows {
    fn push(&mut self, creation: &Creation, at: i64, lock: i64) {
        let task = &creation.task;
        let worker = task.worker.as_ref();
        let is_running = worker.is_some();
        let lease = worker.map_or(0, |(_, lease)| millis(*lease));
        let ttl = task.ttl.map(millis);
        self.0.extend_from_slice(&COLUMNS.to_be_bytes());
        self.text(task.id.as_str());
        self.text(&task.principal);
        self.text(&task.tool);
        self.text(&task.origin);
        self.value(&[u8::from(task.listed)]);
        self.value(task.request.get().as_bytes());
        self.value(&i16::from(is_running).to_be_bytes());
        self.number(i64::from(is_running));
        self.maybe_text(worker.map(|(worker, _)| worker.as_str()));
        self.maybe(is_running.then_some(lock));
        self.number(at + lease);
        self.number(at);
        self.number(at);
        self.maybe(ttl);
        self.number(millis(task.max_ttl));
        self.maybe(ttl);
        self.value(&[u8::from(is_running)]);
        self.value(&0_i32.to_be_bytes());
        self.value(&[u8::from(task.clean_up)]);
        // Tasks with a bridge are not copied, so every copied task is acknowledged.
        self.number(at);
        self.maybe_text(task.person.as_deref());
        self.value(&[u8::from(task.indexed)]);
        match &creation.notify {
            // JSON, whose texts are escaped already.
            Some(notify) => self.value(notify.as_bytes()),
            None => self.nothing(),
        }
    }

    fn value(&mut self, value: &[u8]) {
        // A value that is too long for this length is also too long for a message, which fails as a
        // whole.
        let len = i32::try_from(value.len()).unwrap_or(i32::MAX);
        self.0.extend_from_slice(&len.to_be_bytes());
        self.0.extend_from_slice(value);
    }

    fn text(&mut self, name: &str) {
        self.value(text(name).as_bytes());
    }

    fn maybe_text(&mut self, name: Option<&str>) {
        match name {
            Some(name) => self.text(name),
            None => self.nothing(),
        }
    }

    fn number(&mut self, number: i64) {
        self.value(&number.to_be_bytes());
    }

    fn maybe(&mut self, number: Option<i64>) {
        match number {
            Some(number) => self.number(number),
            None => self.nothing(),
        }
    }

    fn nothing(&mut self) {
        self.0.extend_from_slice(&(-1_i32).to_be_bytes());
    }
}
