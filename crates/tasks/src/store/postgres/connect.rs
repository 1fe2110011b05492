//! Opens connections, and opens them again when they are lost.

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

/// How long to wait before a connection is tried again, at first; and at most, where nobody minds.
const PAUSE: Duration = Duration::from_millis(20);
pub(super) const LONGEST: Duration = Duration::from_secs(1);

/// Peers that are gone without a word are noticed after half a minute, on both sides.
const IDLE: Duration = Duration::from_secs(10);
const PROBE: Duration = Duration::from_secs(5);
const PROBES: u32 = 4;

/// Where connections are made to, and how.
pub(super) struct Database {
    config: tokio_postgres::Config,
    tls: Tls,
    pub(super) place: String,
    pub(super) options: PostgresOptions,
}

/// A connection that is set up.
pub(super) struct Session {
    pub(super) client: Client,
    /// Reads and writes; ends with the connection.
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

    /// The schema, as it is written in statements.
    pub(super) fn schema(&self) -> String {
        format!("\"{}\"", self.options.schema.replace('"', "\"\""))
    }

    /// Where replicas tell each other what has changed.
    pub(super) fn channel(&self) -> String {
        format!("outlive_{}", self.options.schema)
    }

    /// Opens a connection. What others tell is given to `hear`.
    pub(super) async fn open(
        &self,
        hear: impl Fn(&Notification) + Send + 'static,
    ) -> Result<Session, PostgresError> {
        let opened = async {
            let (client, mut connection) = self.config.connect(self.tls.clone()).await?;
            let driver = tokio::spawn(async move {
                // It ends with an error or without; whoever uses the client hears of it.
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

    /// Opens a connection, and tries again for a while if that does not work, with pauses that grow
    /// up to the longest.
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

    /// What holds for every connection. Each statement finds its rows by an index, also when the
    /// database knows nothing of its tables yet, or what it knows is old; so there is one plan for it,
    /// whatever its values, and to make another each time would cost more than to run it.
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

    /// How long to wait for an answer. The database gives up first, and says why.
    pub(super) fn patience(&self) -> Duration {
        self.options.statement_timeout + self.options.connect_timeout
    }
}

impl Session {
    /// A statement, prepared once.
    pub(super) async fn prepare(&mut self, sql: &'static str) -> Result<(), PostgresError> {
        if !self.statements.contains_key(sql) {
            let prepared = timeout(self.patience, self.client.prepare(sql)).await;
            let statement = prepared.map_err(|_| PostgresError::Silent)??;
            self.statements.insert(sql, statement);
        }
        Ok(())
    }

    /// A statement that was prepared.
    pub(super) fn prepared(&self, sql: &'static str) -> Result<&Statement, PostgresError> {
        self.statements.get(sql).ok_or(PostgresError::Silent)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Waits until the connection is lost.
    pub(super) async fn closed(&mut self) {
        let _ = (&mut self.driver).await;
    }

    /// Gives up a connection on which nobody answers.
    pub(super) fn abort(self) {
        self.driver.abort();
    }
}
