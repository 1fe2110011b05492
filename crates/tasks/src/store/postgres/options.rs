//! Options of the PostgreSQL store.

use std::time::Duration;

/// Options of a PostgreSQL store.
#[derive(Clone, Debug)]
pub struct PostgresOptions {
    pub(super) schema: String,
    pub(super) write_connections: usize,
    pub(super) connect_timeout: Duration,
    pub(super) statement_timeout: Duration,
}

impl PostgresOptions {
    /// Returns the default options.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the database schema of the store. The default is `outlive`. The store creates a missing
    /// schema.
    #[must_use]
    pub fn with_schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = schema.into();
        self
    }

    /// Sets the number of connections that write tasks. The default is two. With fewer connections,
    /// more callers share a statement and a commit. More connections help if commits are slow. The
    /// store opens up to the same number of connections to create tasks, and four for everything
    /// else. All but two are opened at their first use.
    #[must_use]
    pub fn write_connections(mut self, write_connections: usize) -> Self {
        self.write_connections = write_connections.max(1);
        self
    }

    /// Sets the timeout of connection attempts, at the start and after a lost connection. The
    /// default is five seconds.
    #[must_use]
    pub fn with_connect_timeout(mut self, connect_timeout: Duration) -> Self {
        self.connect_timeout = connect_timeout;
        self
    }

    /// Sets the statement timeout of the database. The default is ten seconds.
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
