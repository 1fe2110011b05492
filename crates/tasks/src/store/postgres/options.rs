//! Options of the store in PostgreSQL.

use std::time::Duration;

/// How a database is used.
#[derive(Clone, Debug)]
pub struct PostgresOptions {
    pub(super) schema: String,
    pub(super) write_connections: usize,
    pub(super) connect_timeout: Duration,
    pub(super) statement_timeout: Duration,
}

impl PostgresOptions {
    /// What is right for most.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// In which schema of the database tasks are kept: `outlive`, unless another is named. It is
    /// made if it is not there.
    #[must_use]
    pub fn with_schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = schema.into();
        self
    }

    /// Sets how many connections write tasks: two by default. With fewer connections, more callers share
    /// a statement and a commit; more are worth it where commits take long. The store opens up to as many
    /// again to create tasks, and four for everything else. All but two are opened at their first use.
    #[must_use]
    pub fn write_connections(mut self, write_connections: usize) -> Self {
        self.write_connections = write_connections.max(1);
        self
    }

    /// How long to try to reach the database, at first and when it was lost. Five seconds by
    /// default.
    #[must_use]
    pub fn with_connect_timeout(mut self, connect_timeout: Duration) -> Self {
        self.connect_timeout = connect_timeout;
        self
    }

    /// After which time the database gives up on a statement. Ten seconds by default.
    #[must_use]
    pub fn with_statement_timeout(mut self, statement_timeout: Duration) -> Self {
        self.statement_timeout = statement_timeout;
        self
    }
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            schema: "outlive".to_owned(),
            write_connections: 2,
            connect_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(10),
        }
    }
}
