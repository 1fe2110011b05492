//! Opens connections, and reopens lost ones.

use std::{collections::HashMap, future::poll_fn, time::Duration};

use tokio::{
    task::JoinHandle,
    time::{Instant, sleep, timeout, timeout_at},
};
use tokio_postgres::{AsyncMessage, Client, Notification, Statement, config::SslMode};

use super::{
    error::{PostgresError, Reach},
    options::PostgresOptions,
    tls::Tls,
    url::{Address, Mode},
};
use crate::store::StoreError;

/// First delay before a connection attempt is repeated, and the maximum for connections that are
/// not urgent.
const PAUSE: Duration = Duration::from_millis(20);
pub(super) const LONGEST: Duration = Duration::from_secs(1);

/// Both sides detect a silently lost peer after half a minute.
const IDLE: Duration = Duration::from_secs(10);
const PROBE: Duration = Duration::from_secs(5);
const PROBES: u32 = 4;

/// Address and options of the database.
pub(super) struct Database {
    config: tokio_postgres::Config,
    tls: Tls,
    pub(super) place: String,
    pub(super) options: PostgresOptions,
}

/// A configured connection.
pub(super) struct Session {
    pub(super) client: Client,
    /// Task that reads and writes the connection, and ends with it.
    driver: JoinHandle<()>,
    statements: HashMap<&'static str, Statement>,
    patience: Duration,
}

impl Database {
    pub(super) fn new(url: &str, options: PostgresOptions) -> Result<Self, StoreError> {
        let Address { mut config, security, place } = Address::read(url)?;
        config.ssl_mode(match security.mode {
            Mode::Disable => SslMode::Disable,
            Mode::Prefer => SslMode::Prefer,
            Mode::Require | Mode::VerifyCa | Mode::VerifyFull => SslMode::Require,
        });
        if config.get_application_name().is_none() {
            config.application_name("outlive");
        }
        config.keepalives_idle(IDLE).keepalives_interval(PROBE).keepalives_retries(PROBES);
        Ok(Self { config, tls: Tls::new(&security)?, place, options })
    }

    /// Returns the schema name, quoted for statements.
    pub(super) fn schema(&self) -> String {
        format!("\"{}\"", self.options.schema.replace('"', "\"\""))
    }

    /// Returns the channel for change notifications between replicas.
    pub(super) fn channel(&self) -> String {
        format!("outlive_{}", self.options.schema)
    }

    /// Opens a connection. `hear` receives the notifications of other processes.
    pub(super) async fn open(
        &self,
        hear: impl Fn(&Notification) + Send + 'static,
    ) -> Result<Session, PostgresError> {
        let opened = async {
            let (client, mut connection) = self.config.connect(self.tls.clone()).await?;
            let driver = tokio::spawn(async move {
                // An error ends the loop. Users of the client observe the closed connection.
                while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
                    if let AsyncMessage::Notification(told) = message {
                        hear(&told);
                    }
                }
            });
            let (statements, patience) = (HashMap::new(), self.patience());
            let session = Session { client, driver, statements, patience };
            session.client.batch_execute(&self.set_up()).await?;
            Ok(session)
        };
        timeout(self.options.connect_timeout, opened).await.unwrap_or(Err(PostgresError::Silent))
    }

    /// Opens a connection. Retries until the connect timeout, with a delay that grows up to
    /// `longest`.
    pub(super) async fn reopen(
        &self,
        longest: Duration,
        hear: impl Fn(&Notification) + Clone + Send + 'static,
    ) -> Result<Session, PostgresError> {
        let deadline = Instant::now() + self.options.connect_timeout;
        let mut pause = PAUSE;
        loop {
            let problem = match timeout_at(deadline, self.open(hear.clone())).await {
                Ok(Ok(session)) => return Ok(session),
                Ok(Err(problem)) => problem,
                Err(_) => return Err(PostgresError::Silent),
            };
            if problem.reach() == Reach::One || Instant::now() + pause >= deadline {
                return Err(problem);
            }
            sleep(pause).await;
            pause = (pause * 2).min(longest);
        }
    }

    /// Returns the settings of every connection. Each statement finds its rows by an index, even
    /// without statistics or with old ones. So one generic plan suffices, and planning for each
    /// execution would cost more than the execution.
    fn set_up(&self) -> String {
        format!(
            "SET search_path = {schema};
             SET statement_timeout = {timeout};
             SET idle_in_transaction_session_timeout = {timeout};
             SET client_min_messages = warning;
             SET enable_seqscan = off;
             SET enable_bitmapscan = off;
             SET enable_hashjoin = off;
             SET enable_mergejoin = off;
             SET plan_cache_mode = force_generic_plan;
             SET jit = off;
             SET tcp_keepalives_idle = {idle};
             SET tcp_keepalives_interval = {probe};
             SET tcp_keepalives_count = {PROBES};
             SELECT set_config('synchronous_commit', 'on', false)
                 WHERE current_setting('synchronous_commit') = 'off'",
            schema = self.schema(),
            timeout = self.options.statement_timeout.as_millis(),
            idle = IDLE.as_secs(),
            probe = PROBE.as_secs(),
        )
    }

    /// Returns the timeout for a response. The statement timeout of the database is shorter, so its
    /// error with the cause arrives first.
    pub(super) fn patience(&self) -> Duration {
        self.options.statement_timeout + self.options.connect_timeout
    }
}

impl Session {
    /// Prepares a statement once.
    pub(super) async fn prepare(&mut self, sql: &'static str) -> Result<(), PostgresError> {
        if !self.statements.contains_key(sql) {
            let prepared = timeout(self.patience, self.client.prepare(sql)).await;
            let statement = prepared.map_err(|_| PostgresError::Silent)??;
            self.statements.insert(sql, statement);
        }
        Ok(())
    }

    /// Returns a prepared statement.
    pub(super) fn prepared(&self, sql: &'static str) -> Result<&Statement, PostgresError> {
        self.statements.get(sql).ok_or(PostgresError::Silent)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Waits until the connection is closed.
    pub(super) async fn closed(&mut self) {
        let _ = (&mut self.driver).await;
    }

    /// Closes a connection that does not respond.
    pub(super) fn abort(self) {
        self.driver.abort();
    }
}
