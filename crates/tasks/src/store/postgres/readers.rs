//! Connections that read. Each read is one statement, so it sees one consistent state with all
//! acknowledged writes.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::{sync::RwLock, time::timeout};
use tokio_postgres::Row;

use super::{
    connect::{LONGEST, Session},
    error::{PostgresError, Reach},
    state::Shared,
    statement::Call,
};
use crate::store::StoreError;

/// Connections on which reads are pipelined: a read does not wait for the response to another.
pub(super) struct Readers {
    sessions: Vec<RwLock<Option<Session>>>,
    next: AtomicUsize,
}

impl Readers {
    /// Creates `count` connections, each of which is opened at its first use.
    pub(super) fn new(count: usize) -> Self {
        let sessions = (0..count).map(|_| RwLock::new(None)).collect();
        Self { sessions, next: AtomicUsize::new(0) }
    }

    /// Executes a read.
    pub(super) async fn read<T>(
        &self,
        shared: &Arc<Shared>,
        call: Call,
        read: impl FnOnce(Vec<Row>) -> Result<T, PostgresError>,
    ) -> Result<T, StoreError> {
        let place = &shared.database.place;
        let mut rows = self.look(shared, &call).await;
        // Retries on a new connection if the connection is lost. A repeated read is harmless.
        if rows.as_ref().is_err_and(|problem| problem.reach() == Reach::Connection) {
            rows = self.look(shared, &call).await;
        }
        rows.and_then(read).map_err(|problem| problem.with(place))
    }

    async fn look(&self, shared: &Shared, call: &Call) -> Result<Vec<Row>, PostgresError> {
        let number = self.next.fetch_add(1, Ordering::Relaxed) % self.sessions.len();
        let slot = &self.sessions[number];
        let patience = shared.database.patience();
        loop {
            let ready = slot.read().await;
            let session = ready.as_ref().filter(|session| !session.is_closed());
            if let Some(session) = session.filter(|session| session.prepared(call.sql).is_ok()) {
                return match timeout(patience, call.send(session)).await {
                    Ok(rows) => rows,
                    Err(_) => {
                        drop(ready);
                        // The connection does not respond.
                        slot.write().await.take().into_iter().for_each(Session::abort);
                        Err(PostgresError::Silent)
                    }
                };
            }
            drop(ready);
            prepare(shared, &mut *slot.write().await, call.sql).await?;
        }
    }
}

/// Opens the connection if necessary, and prepares a statement. Other reads on the connection wait.
async fn prepare(
    shared: &Shared,
    slot: &mut Option<Session>,
    sql: &'static str,
) -> Result<(), PostgresError> {
    if slot.as_ref().is_none_or(Session::is_closed) {
        *slot = None;
        *slot = Some(shared.database.reopen(LONGEST, |_| {}).await?);
    }
    match slot {
        Some(session) => session.prepare(sql).await,
        None => Ok(()),
    }
}
