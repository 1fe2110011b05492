//! The state of one upstream: settings, status and counters, without its connections.

use std::{
    collections::HashMap,
    fmt,
    process::ExitStatus,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use outlive::client::{
    Error,
    transport::{TransportError, VersionCache},
};

use super::{
    connection::Connection,
    lease::AcquireError,
    process_limit::{ProcessLimit, ProcessPlace},
    stderr::StderrLines,
    supervisor::Supervisor,
};
use crate::{
    backoff::Backoff,
    credentials::{self, Credentials},
    excerpt::excerpt,
    metrics::Meter,
    settings::{Credential, Endpoint, Upstream},
    status::{Problem, State, UpstreamStatus},
};

/// Principals whose problems are remembered. They are found again when they are forgotten.
const MAX_OF_PRINCIPALS: usize = 1_024;

/// Events of an upstream, for the gateway.
pub(crate) trait UpstreamEvents: Send + Sync {
    /// A connection was opened.
    fn connected(&self, upstream: &UpstreamState, connection: &Arc<Connection>);

    /// The upstream changed its lists.
    fn lists_changed(&self, upstream: &UpstreamState, connection: &Arc<Connection>);

    /// A resource of the upstream changed.
    fn resource_updated(&self, upstream: &UpstreamState, connection: &Arc<Connection>, uri: &str);

    /// The state of the upstream changed.
    fn state_changed(&self);

    /// Stops the process that is idle longest, of any upstream. Returns whether there is one.
    fn stop_idle_process(&self) -> bool;
}

/// The state of one upstream. It lives as long as the connection settings of the upstream.
pub(crate) struct UpstreamState {
    settings: RwLock<Arc<Upstream>>,
    pub(super) events: Arc<dyn UpstreamEvents>,
    limit: Arc<ProcessLimit>,
    /// Present if processes survive the gateway.
    pub(super) supervisor: Option<Arc<Supervisor>>,
    pub(super) versions: VersionCache,
    pub(super) credentials: Arc<Credentials>,
    status: Mutex<StatusCell>,
    /// Problems that concern one principal, by its key.
    of_principals: Mutex<HashMap<Arc<str>, Problem>>,
    lines: StderrLines,
    calls: AtomicU64,
    failed_calls: AtomicU64,
    meter: Arc<Meter>,
}

#[derive(Debug, Default)]
struct StatusCell {
    state: State,
    since: u64,
    problem: Option<Problem>,
    backoff: Backoff,
    next_attempt: Option<u64>,
    last_error: Option<String>,
    /// Last exit of a process: code or signal, and when.
    last_exit: Option<String>,
}

impl fmt::Debug for UpstreamState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamState").field("settings", &self.settings()).finish_non_exhaustive()
    }
}

impl UpstreamState {
    pub(super) fn new(
        settings: Upstream,
        meter: Arc<Meter>,
        events: Arc<dyn UpstreamEvents>,
        limit: &Arc<ProcessLimit>,
        supervisor: Option<&Arc<Supervisor>>,
        credentials: &Arc<Credentials>,
    ) -> Self {
        let mut status = StatusCell { since: unix_millis(), ..StatusCell::default() };
        if let Endpoint::Misconfigured(reason) = &settings.endpoint {
            let remedy = "correct the settings of the upstream";
            let problem = Problem::new(State::Misconfigured, excerpt(reason), remedy);
            status.state = State::Misconfigured;
            status.problem = Some(problem);
        }
        Self {
            settings: RwLock::new(Arc::new(settings)),
            events,
            limit: Arc::clone(limit),
            supervisor: supervisor.cloned(),
            versions: VersionCache::default(),
            credentials: Arc::clone(credentials),
            status: Mutex::new(status),
            of_principals: Mutex::default(),
            lines: StderrLines::default(),
            calls: AtomicU64::new(0),
            failed_calls: AtomicU64::new(0),
            meter,
        }
    }

    /// Returns the counters for metrics.
    pub(crate) fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }

    pub(crate) fn settings(&self) -> Arc<Upstream> {
        Arc::clone(&self.settings.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the settings that need no new connections.
    pub(crate) fn set_settings(&self, settings: Upstream) {
        *self.settings.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
    }

    /// Returns why no connection may be opened now.
    pub(super) fn may_open(&self) -> Result<(), AcquireError> {
        let status = self.status();
        let wait = status.backoff.wait(Instant::now());
        match (&status.problem, wait) {
            (Some(problem), _)
                if matches!(self.settings().endpoint, Endpoint::Misconfigured(_)) =>
            {
                Err(AcquireError::Problem { problem: problem.clone(), retry_after: None })
            }
            (Some(problem), Some(wait)) => {
                let retry_after = Some(wait);
                Err(AcquireError::Problem { problem: problem.clone(), retry_after })
            }
            _ => Ok(()),
        }
    }

    /// Returns the supervisor of the processes of the upstream, if they survive the gateway.
    pub(super) fn process_supervisor(&self) -> Option<&Arc<Supervisor>> {
        self.supervisor.as_ref().filter(|_| self.settings().is_command())
    }

    /// Takes a place for a process that runs already.
    pub(super) fn place_of_survivor(&self) -> ProcessPlace {
        self.limit.enter_anyway()
    }

    /// Takes a place for a process. Stops an idle process if all places are in use.
    pub(super) fn process_place(&self) -> Result<ProcessPlace, AcquireError> {
        if let Some(place) = self.limit.enter() {
            return Ok(place);
        }
        match self.events.stop_idle_process() {
            true => Ok(self.limit.enter_anyway()),
            false => {
                let in_use = self.limit.used();
                Err(AcquireError::Full { limit: "[gateway] max_processes", in_use })
            }
        }
    }

    /// Records that a connection is being opened.
    pub(super) fn starting(&self) {
        if self.state() == State::Idle {
            self.set_state(State::Starting, None);
        }
    }

    /// Records that a connection was opened.
    pub(super) fn opened(&self, connection: &Arc<Connection>) {
        self.meter.started();
        self.recovered_for(connection.key.principal());
        self.set_state(State::Ready, None);
        self.events.connected(self, connection);
    }

    /// Records that the process of a connection has exited, or that its pipe broke. `error` is the
    /// reason if the gateway closed the pipe itself.
    pub(super) fn lost(&self, how: &str, error: Option<TransportError>) {
        self.meter.exited();
        if let Some(error) = error {
            return self.failed(Problem::of_error(&Error::Transport(error)));
        }
        self.status().last_exit = Some(how.to_owned());
        let reason = match self.lines.last() {
            Some(line) => format!("it {how}; its last line was: {line}"),
            None => format!("it {how}"),
        };
        self.failed(Problem::new(State::Failing, reason, "check its command and its log"));
    }

    /// Returns the problem that an error of a connection describes, with the last line of the
    /// process if it exited.
    pub(crate) fn problem_of(&self, error: &Error) -> Problem {
        if let Some(problem) = credentials::problem_of(&self.settings(), error) {
            return problem;
        }
        let problem = Problem::of_error(error);
        let is_lost = matches!(error, Error::Transport(_)) && self.settings().is_command();
        match self.lines.last() {
            Some(line) if is_lost && problem.state == State::Unreachable => {
                let how = self.status().last_exit.clone();
                let how = how.unwrap_or_else(|| "closed its output".to_owned());
                let reason = format!("it {how}; its last line was: {line}");
                Problem::new(State::Failing, reason, "check its command and its log")
            }
            _ => problem,
        }
    }

    /// Records a failure, after which the next attempt waits. A missing login is checked again at
    /// once, because the check needs only the store.
    pub(crate) fn failed(&self, problem: Problem) {
        let is_login = problem.state == State::NeedsLogin
            && matches!(self.settings().credential, Credential::OAuth(_));
        let is_known = self.problem().as_ref() == Some(&problem);
        if !(is_login && is_known) {
            let name = Arc::clone(&self.settings().name);
            tracing::warn!(upstream = &*name, state = %problem.state, reason = problem.reason, "upstream failed");
        }
        {
            let mut status = self.status();
            let delay = (!is_login).then(|| status.backoff.failed(Instant::now()));
            status.last_error = Some(problem.reason.clone());
            status.next_attempt = delay.map(|delay| {
                let delay = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
                unix_millis().saturating_add(delay)
            });
        }
        self.set_state(problem.state, Some(problem));
    }

    /// Records a failure of a connection. One that concerns only a principal has no effect on
    /// others.
    pub(crate) fn failed_for(&self, principal: Option<&str>, problem: Problem) {
        if !problem.is_of_principal {
            return self.failed(problem);
        }
        if self.state() == State::Starting {
            self.set_state(State::Idle, None);
        }
        let Some(principal) = principal else { return };
        let mut known = self.of_principals();
        if known.len() >= MAX_OF_PRINCIPALS {
            known.clear();
        }
        known.insert(principal.into(), problem);
    }

    /// Records that the upstream works again for a principal.
    pub(crate) fn recovered_for(&self, principal: Option<&str>) {
        if let Some(principal) = principal {
            self.of_principals().remove(principal);
        }
    }

    /// Returns the problem of the upstream, or that of a principal there.
    pub(crate) fn problem_for(&self, principal: &str) -> Option<Problem> {
        let own = || self.of_principals().get(principal).cloned();
        self.problem().or_else(own)
    }

    /// Records that the upstream works again.
    pub(crate) fn recovered(&self) {
        self.set_state(State::Ready, None);
    }

    pub(super) fn full(&self, error: &AcquireError) {
        if let AcquireError::Full { limit, in_use } = error {
            let reason = format!("all {in_use} places of `{limit}` are in use");
            let problem = Problem::new(State::Full, reason, "retry later, or raise the limit");
            self.set_state(State::Full, Some(problem));
        }
    }

    pub(super) fn set_state(&self, state: State, problem: Option<Problem>) {
        let mut status = self.status();
        let is_changed = status.state != state || status.problem != problem;
        if status.state != state {
            status.since = unix_millis();
        }
        if problem.is_none() {
            status.next_attempt = None;
        }
        (status.state, status.problem) = (state, problem);
        drop(status);
        if is_changed {
            self.events.state_changed();
        }
    }

    /// Returns the reason why the upstream cannot be used, if there is one.
    pub(crate) fn problem(&self) -> Option<Problem> {
        self.status().problem.clone()
    }

    /// Returns how long the next attempt to connect waits.
    pub(crate) fn wait(&self) -> Option<Duration> {
        self.status().backoff.wait(Instant::now())
    }

    /// Allows the next attempt to connect at once.
    pub(crate) fn retry_now(&self) {
        self.status().backoff.clear();
    }

    pub(super) fn stderr_line(&self, line: &str) {
        let settings = self.settings();
        self.lines.add(&settings.name, settings.log, line);
    }

    pub(crate) fn count_call(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a call that failed between gateway and upstream.
    pub(crate) fn count_failure(&self, reason: &str) {
        self.failed_calls.fetch_add(1, Ordering::Relaxed);
        self.status().last_error = Some(excerpt(reason));
    }

    /// Returns the status, without the numbers of connections and catalogs.
    pub(super) fn report(&self) -> UpstreamStatus {
        let settings = self.settings();
        let status = self.status();
        UpstreamStatus {
            name: settings.name.to_string(),
            target: settings.target(),
            state: status.state,
            since: status.since,
            reason: status.problem.as_ref().map(|problem| problem.reason.clone()),
            next_attempt: status.next_attempt.filter(|next| *next > unix_millis()),
            remedy: status.problem.as_ref().map(|problem| problem.remedy.to_string()),
            calls: self.calls.load(Ordering::Relaxed),
            failed_calls: self.failed_calls.load(Ordering::Relaxed),
            last_error: status.last_error.clone(),
            last_lines: self.lines.all(),
            ..UpstreamStatus::default()
        }
    }

    /// Returns the state for people.
    pub(crate) fn state(&self) -> State {
        self.status().state
    }

    fn of_principals(&self) -> MutexGuard<'_, HashMap<Arc<str>, Problem>> {
        self.of_principals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn status(&self) -> MutexGuard<'_, StatusCell> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Describes how a process that the gateway started itself has exited.
pub(super) fn exit_text(status: Option<ExitStatus>) -> String {
    match status {
        Some(status) => match status.code() {
            Some(code) => format!("exited with code {code}"),
            None => format!("was ended by a signal ({status})"),
        },
        None => "closed its output".to_owned(),
    }
}

pub(crate) fn unix_millis() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
