//! The supervised processes of all upstreams: starts them, and finds those of an earlier gateway.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fmt, io,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use outlive::{
    client::relay::{CapabilityClass, Handshake},
    store::{TaskId, TaskStore},
};
use outlive_jobs::{Pipe, PipeSpec, Pipes, SlotState};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use sha2::{Digest, Sha256};
use tokio::task::JoinSet;

use super::{
    key::{ConnectionKey, Owner},
    supervised::cancel_message,
};
use crate::settings::{Endpoint, Supervision, Upstream};

/// Bytes of a message around its result.
const ENVELOPE: usize = 64 << 10;

/// Time that a call of a task that the store does not know may be unattended. Its commit may be on
/// the way.
const UNKNOWN_TASK_TIMEOUT: Duration = Duration::from_secs(30);

/// Interval at which an ending process is checked.
const ENDING_INTERVAL: Duration = Duration::from_millis(20);

/// Time for the last calls to be closed when the gateway ends.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(2);

/// The supervised processes of all upstreams.
pub(crate) struct Supervisor {
    pipes: Pipes,
    settings: Supervision,
    /// Calls whose tasks are about to end.
    finishing: Mutex<JoinSet<()>>,
}

impl fmt::Debug for Supervisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Supervisor").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Description of a process, which is stored with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PipeLabel {
    pub(crate) upstream: String,
    owner: OwnerLabel,
    class: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum OwnerLabel {
    Shared,
    Principal(String),
    /// One session of a principal, which no later gateway has.
    Session(String),
}

/// Task of a call, which is stored with its request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TaskLabel {
    pub(crate) principal: String,
    pub(crate) task: String,
}

/// Text for later gateways, which is in the memory of the supervisor.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PipeGreeting {
    pub(crate) handshake: Handshake,
    /// Hash of all settings of the connection, also of the values of variables.
    pub(super) fingerprint: String,
}

impl PipeLabel {
    pub(crate) fn new(upstream: &str, key: &ConnectionKey) -> Self {
        let owner = match &key.owner {
            Owner::Shared => OwnerLabel::Shared,
            Owner::Principal(principal) => OwnerLabel::Principal(principal.to_string()),
            Owner::Session(principal, _) => OwnerLabel::Session(principal.to_string()),
        };
        Self { upstream: upstream.to_owned(), owner, class: key.class.bits() }
    }

    /// Returns the key of the connection. The session of an earlier gateway has none.
    pub(crate) fn key(&self) -> Option<ConnectionKey> {
        let owner = match &self.owner {
            OwnerLabel::Shared => Owner::Shared,
            OwnerLabel::Principal(principal) => Owner::Principal(principal.as_str().into()),
            OwnerLabel::Session(_) => return None,
        };
        Some(ConnectionKey::of_process(owner, CapabilityClass::from_bits(self.class)?))
    }

    /// Returns a key of the connection that no new call has.
    pub(crate) fn own_key(&self) -> Option<ConnectionKey> {
        match &self.owner {
            OwnerLabel::Session(principal) => {
                let class = CapabilityClass::from_bits(self.class)?;
                Some(ConnectionKey::of_ended_session(principal, class))
            }
            _ => self.key(),
        }
    }

    pub(crate) fn read(label: &str) -> Option<Self> {
        serde_json::from_str(label).ok()
    }
}

impl TaskLabel {
    pub(crate) fn text(&self) -> String {
        // Two strings are always valid JSON.
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl PipeGreeting {
    pub(crate) fn new(handshake: Handshake, fingerprint: String) -> Self {
        Self { handshake, fingerprint }
    }

    pub(crate) fn text(&self) -> Option<Box<RawValue>> {
        to_raw_value(self).ok()
    }

    pub(crate) fn of(pipe: &Pipe) -> Option<Self> {
        serde_json::from_str(pipe.hello().greeting.as_ref()?.get()).ok()
    }
}

impl Supervisor {
    /// Opens the folder of processes. Returns `None` if processes cannot be supervised.
    pub(crate) fn open(settings: Supervision) -> Option<Arc<Self>> {
        if settings.program.is_none() && !outlive_jobs::can_supervise() {
            return None;
        }
        let pipes = match Pipes::open(&settings.folder) {
            Ok(pipes) => pipes,
            Err(error) => {
                tracing::warn!(%error, "processes of upstreams end with this server");
                return None;
            }
        };
        let pipes = match &settings.program {
            Some(program) => pipes.supervisor_program(program),
            None => pipes,
        };
        Some(Arc::new(Self { pipes, settings, finishing: Mutex::default() }))
    }

    /// Returns the ID of this machine.
    pub(crate) fn machine(&self) -> &str {
        &self.settings.machine
    }

    /// Returns whether another machine is alive, so that its processes may be too.
    pub(crate) async fn is_alive(&self, machine: &str) -> bool {
        match &self.settings.is_machine_alive {
            Some(is_alive) => is_alive(machine.to_owned()).await,
            None => false,
        }
    }

    /// Starts a process.
    pub(super) async fn start(
        &self,
        label: &PipeLabel,
        settings: &Upstream,
        variables: &[(OsString, OsString)],
    ) -> io::Result<Pipe> {
        let Endpoint::Command(words) = &settings.endpoint else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        let mut spec = PipeSpec::new(words);
        spec.label = serde_json::to_string(label)?;
        spec.working_dir.clone_from(&settings.working_dir);
        spec.max_message_bytes = settings.max_message().saturating_add(ENVELOPE);
        spec.cancel = cancel_message();
        spec.orphan_timeout = self.settings.orphan_timeout;
        self.pipes.start(&new_id(), &spec, variables).await.map_err(io::Error::other)
    }

    /// Connects to a process of an upstream. Returns `None` if it has ended.
    pub(super) async fn find(&self, id: &str, upstream: &str) -> Option<(Pipe, PipeLabel)> {
        let listed = self.pipes.list().ok()?;
        let label = PipeLabel::read(&listed.into_iter().find(|info| info.id == id)?.label)?;
        if label.upstream != upstream {
            return None;
        }
        match self.pipes.find(id).await {
            Ok(pipe) => pipe.map(|pipe| (pipe, label)),
            Err(error) => {
                tracing::warn!(upstream, %error, "cannot connect to a process of an upstream");
                None
            }
        }
    }

    /// Connects to a process of an earlier gateway that a new connection can use: it has the same
    /// label and settings, and no other gateway uses it.
    pub(super) async fn survivor(&self, label: &PipeLabel, fingerprint: &str) -> Option<Pipe> {
        label.key()?;
        let listed = self.pipes.list().ok()?;
        for info in listed.into_iter().filter(|info| info.is_running) {
            if PipeLabel::read(&info.label).as_ref() != Some(label) {
                continue;
            }
            let Ok(Some(pipe)) = self.pipes.find(&info.id).await else { continue };
            let hello = pipe.hello();
            let greeting = PipeGreeting::of(&pipe);
            let is_same = greeting.is_some_and(|greeting| greeting.fingerprint == fingerprint);
            if is_same && hello.gateways == 0 && hello.exit.is_none() {
                return Some(pipe);
            }
        }
        None
    }

    /// Removes what a process left whose supervisor was killed.
    pub(super) async fn remove(&self, id: &str) {
        if let Err(error) = self.pipes.remove(id).await {
            tracing::warn!(%error, "cannot remove an ended process of an upstream");
        }
    }

    /// Removes ended processes, and closes the requests of tasks that have ended.
    pub(crate) async fn tidy(&self) {
        let listed = match self.pipes.list() {
            Ok(listed) => listed,
            Err(error) => {
                tracing::warn!(%error, "cannot check the processes of upstreams");
                return;
            }
        };
        for info in listed {
            match info.is_running {
                true => self.close_ended(&info.id).await,
                false => self.remove(&info.id).await,
            }
        }
    }

    /// Removes ended processes as [`Supervisor::tidy`] does, and waits for those that are ending.
    pub(crate) async fn tidy_all(&self) {
        loop {
            self.tidy().await;
            if !self.is_any_ending().await {
                return;
            }
            tokio::time::sleep(ENDING_INTERVAL).await;
        }
    }

    /// Returns whether a process has ended whose supervisor still runs, and no request needs it.
    async fn is_any_ending(&self) -> bool {
        for info in self.pipes.list().unwrap_or_default() {
            let is_ending = match self.pipes.observe(&info.id).await {
                Ok(Some(pipe)) => pipe.hello().exit.is_some() && pipe.hello().slots.is_empty(),
                Ok(None) => info.is_running,
                Err(_) => false,
            };
            if is_ending {
                return true;
            }
        }
        false
    }

    /// Closes the requests of a process whose tasks have ended while no gateway owned them.
    async fn close_ended(&self, id: &str) {
        let Ok(Some(pipe)) = self.pipes.observe(id).await else { return };
        let sender = pipe.sender();
        for slot in &pipe.hello().slots {
            let label = slot.label.as_deref().filter(|_| !slot.is_owned);
            let Some(task) = label.and_then(|label| serde_json::from_str(label).ok()) else {
                continue;
            };
            if !self.has_ended(&task, slot).await {
                continue;
            }
            match slot.has_response {
                true => sender.done(slot.id),
                false => {
                    let (before, after) = cancel_message();
                    sender.cancel(slot.id, format!("{before}{}{after}", slot.id).into());
                }
            }
        }
    }

    async fn has_ended(&self, task: &TaskLabel, slot: &SlotState) -> bool {
        match is_over(&*self.settings.tasks, task).await {
            Some(is_over) => is_over,
            None => Duration::from_millis(slot.unowned_ms) >= UNKNOWN_TASK_TIMEOUT,
        }
    }

    /// Calls `done` when a task has ended, so that its result is stored.
    pub(crate) fn finish(self: &Arc<Self>, task: TaskLabel, done: impl FnOnce() + Send + 'static) {
        let supervisor = Arc::clone(self);
        let finishing = async move {
            let mut delay = Duration::from_millis(10);
            while is_over(&*supervisor.settings.tasks, &task).await == Some(false) {
                tokio::time::sleep(delay).await;
                delay = (delay * 2).min(Duration::from_secs(2));
            }
            done();
        };
        let mut set = self.finishing.lock().unwrap_or_else(PoisonError::into_inner);
        while set.try_join_next().is_some() {}
        set.spawn(finishing);
    }

    /// Waits until the calls of ended tasks are closed, but not long: a task may have been released.
    pub(crate) async fn settle(&self) {
        let mut set =
            std::mem::take(&mut *self.finishing.lock().unwrap_or_else(PoisonError::into_inner));
        let all = async { while set.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(SETTLE_TIMEOUT, all).await;
    }
}

/// Returns whether a task has ended; `None` if the store does not know it. A store that does not
/// respond counts as a task that runs.
async fn is_over(store: &dyn TaskStore, label: &TaskLabel) -> Option<bool> {
    match store.get(&label.principal, &TaskId::new(label.task.as_str())).await {
        Ok(record) => record.map(|record| record.outcome.is_some()),
        Err(_) => Some(false),
    }
}

fn new_id() -> String {
    let random = || getrandom::u64().unwrap_or_default();
    format!("{:016x}{:016x}", random(), random())
}

/// Returns the hash of the settings of a connection.
pub(super) fn fingerprint(settings: &Upstream, variables: &[(OsString, OsString)]) -> String {
    let mut hash = Sha256::new();
    let mut add = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    add(&settings.identity());
    add(settings.working_dir.as_ref().map_or(&[], |dir| dir.as_os_str().as_encoded_bytes()));
    let version = settings.version.map(|version| version.to_string());
    let limits = (settings.max_concurrent, settings.max_result, settings.input);
    add(format!("{version:?} {limits:?}").as_bytes());
    // Sorted: the environment of a process has no order.
    let variables: BTreeMap<_, _> = variables.iter().map(|(name, value)| (name, value)).collect();
    for (name, value) in variables {
        add(name.as_encoded_bytes());
        add(value.as_encoded_bytes());
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_of_session_is_not_key_of_new_calls() {
        let class = CapabilityClass::FORM;
        let keys = [
            (ConnectionKey::of_process(Owner::Shared, class), true),
            (ConnectionKey::of_process(Owner::Principal("p".into()), class), true),
            (ConnectionKey::of_process(Owner::Session("p".into(), 3), class), false),
        ];
        for (key, is_reused) in keys {
            let label = PipeLabel::new("files", &key);
            let label = PipeLabel::read(&serde_json::to_string(&label).unwrap()).unwrap();
            assert_eq!(label.key(), Some(key.clone()).filter(|_| is_reused));
            let own = label.own_key().unwrap();
            assert_eq!(own.principal(), key.principal());
            assert_eq!(own == key, is_reused, "{own:?}");
        }
    }

    #[test]
    fn fingerprint_depends_on_values_and_not_on_order_of_variables() {
        let upstream = Upstream::command("files", ["x"]);
        let variables = |values: &[(&str, &str)]| -> Vec<(OsString, OsString)> {
            values.iter().map(|(name, value)| (name.into(), value.into())).collect()
        };
        let print = |values: &[(&str, &str)]| fingerprint(&upstream, &variables(values));
        assert_eq!(print(&[("A", "1"), ("B", "2")]), print(&[("B", "2"), ("A", "1")]));
        assert_ne!(print(&[("A", "1")]), print(&[("A", "2")]));
        assert_ne!(print(&[("A", "1")]), print(&[("A1", "")]));
        let other = Upstream::command("files", ["y"]);
        assert_ne!(fingerprint(&other, &[]), fingerprint(&upstream, &[]));
    }
}
