//! The upstream connections of one upstream, by key: opened on demand, limited, stopped when idle.

use std::{
    collections::HashMap,
    process::ExitStatus,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use outlive::client::relay::RoutedInputs;
use tokio::{
    sync::watch,
    task::{JoinHandle, JoinSet},
};

use super::{
    adopted::Adopted,
    connection::Connection,
    key::{Alive, ConnectionKey},
    lease::{AcquireError, InUse},
    open::open,
    process_limit::ProcessPlace,
    state::{UpstreamState, exit_text},
    supervised::PipeState,
    watch::start_watching,
};
use crate::status::Problem;

/// Interval in which a connection of a drained pool is checked for its last call.
const DRAIN_INTERVAL: Duration = Duration::from_millis(200);

/// A connection for a slot, and its input requests unless a resumed call uses it already.
type Made = (Arc<Connection>, Option<RoutedInputs>);

/// Outcome of opening a connection.
type Opened = Result<Arc<Connection>, Problem>;

/// The upstream connections of one upstream.
#[derive(Debug)]
pub(super) struct Pool {
    state: Arc<UpstreamState>,
    slots: Mutex<Slots>,
    /// Whether new settings replaced this pool, so that its connections close after their calls.
    is_drained: AtomicBool,
    /// Connections to processes of earlier gateways, for their calls alone.
    pub(super) adopted: Adopted,
    /// Connections that are being closed.
    closing: Mutex<JoinSet<()>>,
}

type Slots = HashMap<ConnectionKey, Slot>;

#[derive(Debug)]
enum Slot {
    Opening(Opening),
    Open(Arc<Connection>),
}

impl Slot {
    /// Returns the connection, if it is open.
    fn connection(self) -> Option<Arc<Connection>> {
        match self {
            Self::Open(connection) => Some(connection),
            Self::Opening(_) => None,
        }
    }
}

/// A connection that is being opened.
#[derive(Debug)]
struct Opening {
    done: watch::Receiver<Option<Opened>>,
    /// The task that opens it; `None` when it is done.
    task: Option<JoinHandle<()>>,
}

impl Drop for Opening {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// State of a key in the pool.
pub(super) enum Found {
    Open(InUse),
    Opening(Waiting),
}

/// Waits until a connection is open.
pub(super) struct Waiting(watch::Receiver<Option<Opened>>);

impl Waiting {
    /// Returns the reason if the connection could not be opened.
    pub(super) async fn done(mut self) -> Result<(), Option<Problem>> {
        match self.0.wait_for(Option::is_some).await {
            Ok(opened) => match &*opened {
                Some(Err(problem)) => Err(Some(problem.clone())),
                _ => Ok(()),
            },
            // The pool was closed.
            Err(_) => Err(None),
        }
    }
}

impl Pool {
    pub(super) fn new(state: &Arc<UpstreamState>) -> Arc<Self> {
        Arc::new(Self {
            state: Arc::clone(state),
            slots: Mutex::default(),
            is_drained: AtomicBool::new(false),
            adopted: Adopted::default(),
            closing: Mutex::default(),
        })
    }

    /// Returns the connection of a key, or starts to open one.
    pub(super) fn find(
        self: &Arc<Self>,
        key: &ConnectionKey,
        alive: &Alive,
    ) -> Result<Found, AcquireError> {
        if let Some(found) = known(&mut self.lock(), key) {
            return Ok(found);
        }
        self.state.may_open()?;
        // Before the lock of the pool: stopping a process of another upstream takes its lock.
        let place = match self.state.settings().is_command() {
            true => Some(self.state.process_place()?),
            false => None,
        };
        let mut slots = self.lock();
        if let Some(found) = known(&mut slots, key) {
            return Ok(found);
        }
        if place.is_some() {
            self.make_room(&mut slots)?;
        }
        let place = place.map(ProcessPlace::occupied);
        let (sender, done) = watch::channel(None);
        let (pool, task_key, alive) = (Arc::downgrade(self), key.clone(), alive.clone());
        let task = tokio::spawn(async move {
            if let Some(opened) = fill_slot(&pool, &task_key, alive, place).await {
                let _ = sender.send(Some(opened));
            }
        });
        slots.insert(key.clone(), Slot::Opening(Opening { done: done.clone(), task: Some(task) }));
        drop(slots);
        self.state.starting();
        Ok(Found::Opening(Waiting(done)))
    }

    /// Replaces an opening slot by its outcome.
    fn settle(self: &Arc<Self>, key: &ConnectionKey, made: Result<Made, Problem>) -> Opened {
        let (opened, routed) = match made {
            Ok((connection, routed)) => (Ok(connection), routed),
            Err(problem) => (Err(problem), None),
        };
        let mut slots = self.lock();
        let replaced = match &opened {
            Ok(connection) => slots.insert(key.clone(), Slot::Open(Arc::clone(connection))),
            Err(_) => slots.remove(key),
        };
        drop(slots);
        // The task that opened the connection calls this function, so it must not be aborted.
        if let Some(Slot::Opening(mut opening)) = replaced {
            opening.task = None;
        }
        match &opened {
            Ok(connection) => {
                match routed {
                    Some(routed) => self.watch(connection, routed),
                    None => self.state.recovered(),
                }
                if self.is_drained.load(Ordering::Acquire) {
                    self.close_after_calls(Arc::clone(connection));
                }
            }
            Err(problem) => self.state.failed_for(key.principal(), problem.clone()),
        }
        opened
    }

    /// Starts to watch a connection that was opened.
    pub(super) fn watch(self: &Arc<Self>, connection: &Arc<Connection>, routed: RoutedInputs) {
        let pool = Arc::downgrade(self);
        let on_closed = move |connection: &Arc<Connection>, status| {
            if let Some(pool) = pool.upgrade() {
                pool.lost(connection, status);
            }
        };
        start_watching(&self.state, connection, routed, on_closed);
        self.state.opened(connection);
    }

    /// Puts a connection that was adopted under its key, unless there is one.
    pub(super) fn put(&self, connection: &Arc<Connection>) -> bool {
        let mut slots = self.lock();
        if known(&mut slots, &connection.key).is_some() {
            return false;
        }
        slots.insert(connection.key.clone(), Slot::Open(Arc::clone(connection)));
        true
    }

    pub(super) fn state(&self) -> &Arc<UpstreamState> {
        &self.state
    }

    /// Returns the right to use an open connection with this process.
    pub(super) fn find_process(&self, process: &str) -> Option<InUse> {
        let is_same = |open: &&Arc<Connection>| {
            open.is_open() && open.supervised().is_some_and(|supervised| supervised.id() == process)
        };
        let slots = self.lock();
        open_slots(&slots).find(is_same).map(InUse::new).or_else(|| self.adopted.find(is_same))
    }

    /// Records that a connection has closed, unless the gateway closed it.
    fn lost(&self, connection: &Arc<Connection>, status: Option<ExitStatus>) {
        connection.retire();
        let removed = {
            let mut slots = self.lock();
            is_in_slot(&slots, connection).then(|| slots.remove(&connection.key))
        };
        let was_adopted = self.adopted.remove(connection);
        if removed.is_none() && !was_adopted {
            return;
        }
        let error = connection.client.pipe_error();
        let is_broken = error.is_some();
        let Some(supervised) = connection.supervised() else {
            self.state.lost(&exit_text(status), error);
            // The gateway does not read the output of this process, so the process must end.
            return self.close_later(Arc::clone(connection));
        };
        let state = supervised.state();
        self.state.lost(&state.exit_text(), error);
        if is_broken {
            return self.close_later(Arc::clone(connection));
        }
        if let (PipeState::Lost, Some(supervisor)) = (state, &self.state.supervisor) {
            let (supervisor, id) = (Arc::clone(supervisor), supervised.id().to_owned());
            self.closing().spawn(async move { supervisor.remove(&id).await });
        }
    }

    /// Stops the connections that are idle for `idle_stop`, or whose session has ended. Returns
    /// whether there were any.
    pub(super) fn stop_idle(&self, now: Instant, idle_stop: Duration) -> bool {
        let is_unused = |open: &Connection| {
            let idle = open.idle(now);
            idle.is_some_and(|idle| idle >= idle_stop || !open.alive.is_alive())
        };
        let unused: Vec<Arc<Connection>> = {
            let mut slots = self.lock();
            let keys: Vec<ConnectionKey> = open_slots(&slots)
                .filter(|open| is_unused(open))
                .map(|open| open.key.clone())
                .collect();
            keys.iter().filter_map(|key| take_open(&mut slots, key)).collect()
        };
        let unused: Vec<_> = unused.into_iter().chain(self.adopted.take_unused(now)).collect();
        let mut closing = self.closing();
        while closing.try_join_next().is_some() {}
        drop(closing);
        let was_any = !unused.is_empty();
        unused.into_iter().for_each(|connection| self.close_later(connection));
        was_any
    }

    /// Stops the process that is idle longest. Returns whether there is one.
    pub(super) fn stop_longest_idle(&self) -> bool {
        let idle = take_longest_idle(&mut self.lock());
        idle.map(|connection| self.close_later(connection)).is_some()
    }

    /// Ends all connections: those without calls at once, the others after their last call. One that
    /// is being opened is for calls that wait for it, and ends after them.
    pub(super) fn drain(self: &Arc<Self>) {
        let open: Vec<_> = {
            let mut slots = self.lock();
            self.is_drained.store(true, Ordering::Release);
            let open = slots.extract_if(|_, slot| matches!(slot, Slot::Open(_)));
            open.filter_map(|(_, slot)| slot.connection()).collect()
        };
        for connection in open.into_iter().chain(self.adopted.take_all()) {
            connection.retire();
            let drained = async move {
                while connection.calls() > 0 {
                    tokio::time::sleep(DRAIN_INTERVAL).await;
                }
                connection.close().await;
            };
            self.closing().spawn(drained);
        }
    }

    /// Closes a connection that was opened for the last calls of a drained pool.
    fn close_after_calls(self: &Arc<Self>, connection: Arc<Connection>) {
        let pool = Arc::downgrade(self);
        self.closing().spawn(async move {
            // The calls that wait for it have not found it yet.
            tokio::time::sleep(DRAIN_INTERVAL).await;
            while !pool.upgrade().is_none_or(|pool| pool.take_if_unused(&connection)) {
                tokio::time::sleep(DRAIN_INTERVAL).await;
            }
            connection.close().await;
        });
    }

    /// Takes a connection out of its slot, unless a call uses it. Returns whether no call does.
    fn take_if_unused(&self, connection: &Arc<Connection>) -> bool {
        let mut slots = self.lock();
        if connection.calls() > 0 {
            return false;
        }
        if is_in_slot(&slots, connection) {
            slots.remove(&connection.key);
        }
        connection.retire();
        true
    }

    /// Returns whether connections are being opened or closed. A drained pool has no others.
    pub(super) fn is_busy(&self) -> bool {
        let mut closing = self.closing();
        while closing.try_join_next().is_some() {}
        let is_closing = !closing.is_empty();
        drop(closing);
        let is_opening = |slot: &Slot| matches!(slot, Slot::Opening(_));
        is_closing || self.lock().values().any(is_opening)
    }

    /// Ends all connections at once, and waits for their processes.
    pub(super) async fn shutdown(&self) {
        self.take_all().into_iter().for_each(|connection| self.close_later(connection));
        let mut closing = std::mem::take(&mut *self.closing());
        while closing.join_next().await.is_some() {}
    }

    pub(super) fn open(&self) -> Vec<Arc<Connection>> {
        let open: Vec<_> = open_slots(&self.lock()).cloned().collect();
        open.into_iter().chain(self.adopted.open()).collect()
    }

    /// Makes room for one more process of this upstream, or fails with the limit that is reached.
    fn make_room(&self, slots: &mut Slots) -> Result<(), AcquireError> {
        if slots.len() < self.state.settings().max_processes {
            return Ok(());
        }
        match take_longest_idle(slots) {
            Some(stopped) => {
                self.close_later(stopped);
                Ok(())
            }
            None => Err(AcquireError::Full { limit: "max_processes", in_use: slots.len() }),
        }
    }

    fn take_all(&self) -> Vec<Arc<Connection>> {
        let slots = std::mem::take(&mut *self.lock());
        let open = slots.into_values().filter_map(Slot::connection);
        let open = open.chain(self.adopted.take_all());
        open.inspect(|connection| connection.retire()).collect()
    }

    /// Closes a connection in the background.
    fn close_later(&self, connection: Arc<Connection>) {
        let mut closing = self.closing();
        while closing.try_join_next().is_some() {}
        closing.spawn(async move { connection.close().await });
    }

    fn closing(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.closing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens the connection of a slot, or takes one that a resumed call has opened meanwhile. Returns `None`
/// if the pool no longer exists.
async fn fill_slot(
    pool: &Weak<Pool>,
    key: &ConnectionKey,
    alive: Alive,
    place: Option<ProcessPlace>,
) -> Option<Opened> {
    let (state, adopting) = {
        let pool = pool.upgrade()?;
        let is_supervised = pool.state.process_supervisor().is_some();
        (Arc::clone(&pool.state), is_supervised.then(|| pool.adopted.adopting()))
    };
    let mut adopting = match adopting {
        Some(adopting) => Some(adopting.await),
        None => None,
    };
    let adopted = pool.upgrade()?.adopted.take(key);
    let made = match adopted {
        Some(connection) => Ok((connection, None)),
        None => {
            let opened = open(&state, key.clone(), (alive, place), &mut adopting).await;
            opened.map(|(connection, routed)| (Arc::new(connection), Some(routed)))
        }
    };
    Some(pool.upgrade()?.settle(key, made))
}

/// Returns the state of a key, and forgets a connection that has closed.
fn known(slots: &mut Slots, key: &ConnectionKey) -> Option<Found> {
    match slots.get(key)? {
        Slot::Open(connection) if connection.is_open() => {
            return Some(Found::Open(InUse::new(connection)));
        }
        Slot::Opening(opening) => return Some(Found::Opening(Waiting(opening.done.clone()))),
        Slot::Open(_) => {}
    }
    slots.remove(key);
    None
}

fn open_slots(slots: &Slots) -> impl Iterator<Item = &Arc<Connection>> {
    slots.values().filter_map(|slot| match slot {
        Slot::Open(connection) => Some(connection),
        Slot::Opening(_) => None,
    })
}

/// Returns whether a connection is the one of its key.
fn is_in_slot(slots: &Slots, connection: &Arc<Connection>) -> bool {
    matches!(slots.get(&connection.key), Some(Slot::Open(open)) if Arc::ptr_eq(open, connection))
}

fn take_open(slots: &mut Slots, key: &ConnectionKey) -> Option<Arc<Connection>> {
    match slots.remove(key) {
        Some(Slot::Open(connection)) => {
            connection.retire();
            Some(connection)
        }
        _ => None,
    }
}

fn take_longest_idle(slots: &mut Slots) -> Option<Arc<Connection>> {
    let now = Instant::now();
    let idle = |open: &Arc<Connection>| Some((open.idle(now)?, open.key.clone()));
    let (_, key) = open_slots(slots)
        .filter(|open| open.is_process())
        .filter_map(idle)
        .max_by_key(|idle| idle.0)?;
    take_open(slots, &key)
}
