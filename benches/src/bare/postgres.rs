//! Bare commits to PostgreSQL: each connection sends its queue as one pipelined transaction. It
//! writes the rows that our store has to write: the task and the count of its principal. There are
//! only primary keys and no checks.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::{Client, NoTls, Statement, types::ToSql};

use super::{BATCH, DAY, QUEUE, Queued, Write, now};
use crate::place::{self, Place};

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS task (id text COLLATE \"C\" PRIMARY KEY, number bigint, principal text,
    kind text, origin text, listed boolean, phase smallint, epoch bigint, owner text,
    owner_lock bigint, due bigint, created bigint, updated bigint, ttl bigint, max_ttl bigint,
    lasts bigint, expires bigint, purge bigint, begun boolean, crashes integer, clean_up boolean,
    request text, outcome text);
CREATE TABLE IF NOT EXISTS open_tasks (principal text COLLATE \"C\" PRIMARY KEY, count bigint)
    WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS entry (task text COLLATE \"C\", key text, answer boolean, body text,
    PRIMARY KEY (task, key));";
const CREATE: &str =
    "INSERT INTO task (id, principal, kind, origin, request, number, listed, phase,
    epoch, owner, owner_lock, due, created, updated, ttl, max_ttl, lasts, expires, begun, crashes,
    clean_up)
    SELECT w.*, 1, false, 1, 1, 'bench', 1, $6::bigint, $6, $6, $7::bigint, $7, $7, $6 + $7, true, 0,
    false
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) AS w";
const COUNT: &str = "INSERT INTO open_tasks AS o SELECT * FROM unnest($1::text[], $2::bigint[])
    ON CONFLICT (principal) DO UPDATE SET count = o.count + excluded.count";
const ENTRY: &str = "INSERT INTO entry SELECT e.task, e.key, false, e.body
    FROM unnest($1::text[], $2::text[], $3::text[]) AS e (task, key, body)";
const END: &str = "UPDATE task SET outcome = ended.outcome, phase = 3, owner = NULL,
    owner_lock = NULL, due = NULL, expires = NULL, updated = $3::bigint,
    purge = $3 + $4::bigint
    FROM unnest($1::text[], $2::text[]) AS ended (id, outcome) WHERE task.id = ended.id";

/// Opens the connections, on separate tables for this place.
pub(super) async fn start(place: &Place, lanes: usize) -> Result<Vec<mpsc::Sender<Queued>>> {
    let schema = place.schema().context("a PostgreSQL place is required")?;
    let mut queues = Vec::new();
    for _ in 0..lanes {
        let (client, connection) = tokio_postgres::connect(&place::url()?, NoTls).await?;
        tokio::spawn(connection);
        client
            .batch_execute(&format!(
                "CREATE SCHEMA IF NOT EXISTS {schema}; SET search_path = {schema}; {TABLES}"
            ))
            .await?;
        let lane = Lane {
            count: client.prepare(COUNT).await?,
            create: client.prepare(CREATE).await?,
            entry: client.prepare(ENTRY).await?,
            end: client.prepare(END).await?,
            client,
        };
        let (queue, queued) = mpsc::channel(QUEUE);
        tokio::spawn(async move {
            if let Err(error) = lane.serve(queued).await {
                eprintln!("a bare writer failed: {error}");
            }
        });
        queues.push(queue);
    }
    Ok(queues)
}

struct Lane {
    client: Client,
    count: Statement,
    create: Statement,
    entry: Statement,
    end: Statement,
}

/// The writes of one transaction, as columns.
#[derive(Default)]
struct Batch {
    counts: BTreeMap<String, i64>,
    created: [Vec<String>; 5],
    entries: [Vec<String>; 3],
    ended: [Vec<String>; 2],
    replies: Vec<oneshot::Sender<()>>,
}

impl Batch {
    fn push(&mut self, (write, reply): Queued) {
        match write {
            Write::Create { id, principal, kind, origin, request } => {
                *self.counts.entry(principal.clone()).or_default() += 1;
                append(&mut self.created, [id, principal, kind, origin, request]);
            }
            Write::Entry { task, key, body } => append(&mut self.entries, [task, key, body]),
            Write::End { task, outcome } => append(&mut self.ended, [task, outcome]),
            // This control keeps no audit log.
            Write::Event { .. } => {}
        }
        self.replies.push(reply);
    }

    /// Whether the batch needs several statements.
    fn is_whole(&self) -> bool {
        !self.created[0].is_empty() || (!self.entries[0].is_empty() && !self.ended[0].is_empty())
    }
}

fn append<const N: usize>(columns: &mut [Vec<String>; N], row: [String; N]) {
    columns.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
}

impl Lane {
    async fn serve(self, mut queued: mpsc::Receiver<Queued>) -> Result<(), tokio_postgres::Error> {
        while let Some(first) = queued.recv().await {
            let mut batch = Batch::default();
            batch.push(first);
            while batch.replies.len() < BATCH
                && let Ok(next) = queued.try_recv()
            {
                batch.push(next);
            }
            self.commit(&batch).await?;
            batch.replies.into_iter().for_each(|reply| _ = reply.send(()));
        }
        Ok(())
    }

    async fn commit(&self, batch: &Batch) -> Result<(), tokio_postgres::Error> {
        let whole = batch.is_whole();
        let times = [now(), DAY];
        // All futures send when they are first polled, in this order.
        tokio::try_join!(
            self.command(whole.then_some("BEGIN")),
            self.count(&batch.counts),
            self.run(&self.create, &batch.created, &times),
            self.run(&self.entry, &batch.entries, &[]),
            self.run(&self.end, &batch.ended, &times),
            self.command(whole.then_some("COMMIT")),
        )?;
        Ok(())
    }

    async fn command(&self, sql: Option<&str>) -> Result<(), tokio_postgres::Error> {
        match sql {
            Some(sql) => self.client.batch_execute(sql).await,
            None => Ok(()),
        }
    }

    async fn count(&self, counts: &BTreeMap<String, i64>) -> Result<(), tokio_postgres::Error> {
        if counts.is_empty() {
            return Ok(());
        }
        let principals: Vec<&str> = counts.keys().map(String::as_str).collect();
        let counts: Vec<i64> = counts.values().copied().collect();
        self.client.execute(&self.count, &[&principals, &counts]).await?;
        Ok(())
    }

    async fn run(
        &self,
        statement: &Statement,
        columns: &[Vec<String>],
        times: &[i64],
    ) -> Result<(), tokio_postgres::Error> {
        if columns[0].is_empty() {
            return Ok(());
        }
        let columns = columns.iter().map(|column| column as &(dyn ToSql + Sync));
        let values: Vec<_> = columns.chain(times.iter().map(|time| time as _)).collect();
        self.client.execute(statement, &values).await?;
        Ok(())
    }
}
