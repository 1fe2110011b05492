//! Bare commits to PostgreSQL: each lane sends what is queued as one transaction, without waiting in
//! between.

use anyhow::{Context, Result};
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::{Client, NoTls, Statement};

use super::{BATCH, QUEUE, Queued, Write};
use crate::place::{self, Place};

const CREATE: &str = "INSERT INTO task (id, principal, kind, origin, request)
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[])";
const ENTRY: &str = "INSERT INTO entry SELECT * FROM unnest($1::text[], $2::text[], $3::text[])";
const END: &str = "UPDATE task SET outcome = ended.outcome
    FROM unnest($1::text[], $2::text[]) AS ended (id, outcome) WHERE task.id = ended.id";

/// Opens the connections, on tables of this place's own.
pub(super) async fn start(place: &Place, lanes: usize) -> Result<Vec<mpsc::Sender<Queued>>> {
    let schema = place.schema().context("this place is no database")?;
    let mut queues = Vec::new();
    for _ in 0..lanes {
        let (client, connection) = tokio_postgres::connect(&place::url()?, NoTls).await?;
        tokio::spawn(connection);
        client
            .batch_execute(&format!(
                "CREATE SCHEMA IF NOT EXISTS {schema}; SET search_path = {schema};
                 CREATE TABLE IF NOT EXISTS task (id text COLLATE \"C\" PRIMARY KEY, principal text,
                     kind text, origin text, request text, outcome text);
                 CREATE TABLE IF NOT EXISTS entry (task text COLLATE \"C\", key text, body text,
                     PRIMARY KEY (task, key));"
            ))
            .await?;
        let lane = Lane {
            create: client.prepare(CREATE).await?,
            entry: client.prepare(ENTRY).await?,
            end: client.prepare(END).await?,
            client,
        };
        let (queue, queued) = mpsc::channel(QUEUE);
        tokio::spawn(async move {
            if let Err(error) = lane.serve(queued).await {
                eprintln!("a bare writer has ended: {error}");
            }
        });
        queues.push(queue);
    }
    Ok(queues)
}

struct Lane {
    client: Client,
    create: Statement,
    entry: Statement,
    end: Statement,
}

/// What shares a transaction, as columns.
#[derive(Default)]
struct Batch {
    created: [Vec<String>; 5],
    entries: [Vec<String>; 3],
    ended: [Vec<String>; 2],
    replies: Vec<oneshot::Sender<()>>,
}

impl Batch {
    fn push(&mut self, (write, reply): Queued) {
        match write {
            Write::Create { id, principal, kind, origin, request } => {
                append(&mut self.created, [id, principal, kind, origin, request]);
            }
            Write::Entry { task, key, body } => append(&mut self.entries, [task, key, body]),
            Write::End { task, outcome } => append(&mut self.ended, [task, outcome]),
        }
        self.replies.push(reply);
    }

    /// How many statements it takes.
    fn statements(&self) -> usize {
        [&self.created[0], &self.entries[0], &self.ended[0]]
            .iter()
            .filter(|column| !column.is_empty())
            .count()
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
        let whole = batch.statements() > 1;
        // All are sent when they are first polled, in this order.
        tokio::try_join!(
            self.command(whole.then_some("BEGIN")),
            self.run(&self.create, &batch.created),
            self.run(&self.entry, &batch.entries),
            self.run(&self.end, &batch.ended),
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

    async fn run(
        &self,
        statement: &Statement,
        columns: &[Vec<String>],
    ) -> Result<(), tokio_postgres::Error> {
        if columns[0].is_empty() {
            return Ok(());
        }
        let columns: Vec<_> = columns.iter().map(|column| column as _).collect();
        self.client.execute(statement, &columns).await?;
        Ok(())
    }
}
