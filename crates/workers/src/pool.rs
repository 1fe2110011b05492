//! The processes of one tool worker, and the places of calls in them.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use outlive::server::durable::Capacity;
use outlive_jobs::Children;
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot, watch},
    task::JoinSet,
    time::{Instant, sleep, timeout, timeout_at},
};

use crate::{
    backoff::Backoff,
    counters::{Counters, WorkerMetrics},
    line::{
        declared::{DeclaredTool, Hello},
        from_worker::RunEnd,
    },
    losses::Losses,
    mailbox::Mailbox,
    output::OutputLog,
    process::Process,
    settings::WorkerSettings,
    spawn::{self, SpawnError, Started, Surroundings},
};

/// Time that a call waits for a process in memory.
const PATIENCE: Duration = Duration::from_secs(10);

/// Maximum number of calls that have a process to themselves at the same time.
const MAX_ALONE: usize = 4;

/// The processes of one tool worker.
pub(crate) struct Pool {
    pub(crate) settings: Arc<WorkerSettings>,
    /// Places of calls in all processes.
    pub(crate) capacity: Capacity,
    pub(crate) losses: Losses,
    pub(crate) counters: Counters,
    surroundings: Surroundings,
    freed: Arc<Notify>,
    // A std mutex: no code awaits while it is held.
    state: Mutex<State>,
    alone: Arc<Semaphore>,
    tasks: Mutex<JoinSet<()>>,
    stopping: watch::Sender<bool>,
    /// The newest entries that a process declared after its `hello`.
    declared: watch::Sender<Option<Arc<[DeclaredTool]>>>,
}

#[derive(Default)]
struct State {
    processes: Vec<Arc<Process>>,
    generation: u64,
    /// Reason why the last process did not start.
    problem: Option<String>,
}

/// Number of the next call or cleanup. Numbers are unique in this server process.
static NUMBERS: AtomicU64 = AtomicU64::new(1);

/// A place of a call in a process.
pub(crate) struct Place {
    pub(crate) process: Arc<Process>,
    pub(crate) number: u64,
    /// Whether the process serves only this call.
    pub(crate) is_alone: bool,
}

/// Reason why a call gets no place.
#[derive(Debug)]
pub(crate) enum PlaceError {
    /// No process accepts calls at the moment, for this reason.
    Unavailable(String),
    /// The processes no longer have the tool.
    UnknownTool,
}

impl Pool {
    /// Creates a pool without processes.
    ///
    /// # Errors
    ///
    /// Returns an error if the data folder cannot be used.
    pub(crate) fn new(settings: Arc<WorkerSettings>) -> Result<Arc<Self>, outlive_jobs::Error> {
        let children = settings.data_dir.as_ref();
        let children =
            children.map(|folder| Children::open(&folder.join("tool-workers"))).transpose()?;
        let freed = Arc::new(Notify::new());
        let name = format!("workers.{}.max_concurrent", settings.name);
        Ok(Arc::new(Self {
            capacity: Capacity::new(name, settings.places()),
            losses: Losses::default(),
            counters: Counters::default(),
            surroundings: Surroundings {
                settings: Arc::clone(&settings),
                children,
                log: Arc::new(OutputLog::new(&settings.name)),
                freed: Arc::clone(&freed),
            },
            settings,
            freed,
            state: Mutex::default(),
            alone: Arc::new(Semaphore::new(MAX_ALONE)),
            tasks: Mutex::default(),
            stopping: watch::Sender::new(false),
            declared: watch::Sender::new(None),
        }))
    }

    /// Ends the processes of a killed server, and starts the first generation.
    ///
    /// # Errors
    ///
    /// Returns an error if the first process does not declare its tools.
    pub(crate) async fn start(self: &Arc<Self>) -> Result<Hello, SpawnError> {
        if let Some(children) = &self.surroundings.children {
            let tool_worker = &*self.settings.name;
            match children.end_orphans(self.settings.kill_grace).await {
                Ok(0) => {}
                Ok(ended) => {
                    tracing::info!(tool_worker, ended, "ended processes of a killed server")
                }
                Err(error) => tracing::warn!(tool_worker, %error, "cannot end orphaned processes"),
            }
        }
        let started = self.prepare().await?;
        let hello = started.hello.clone();
        self.switch_to(started);
        Ok(hello)
    }

    /// Starts a process of the next generation, which gets no calls yet.
    ///
    /// # Errors
    ///
    /// Returns an error if the process does not declare its tools.
    pub(crate) async fn prepare(&self) -> Result<Started, SpawnError> {
        let generation = self.lock().generation + 1;
        self.start_process(generation).await
    }

    /// Makes a prepared process the first one of the current generation. Durable calls of older
    /// processes move to it between two steps.
    pub(crate) fn switch_to(self: &Arc<Self>, started: Started) {
        let generation = started.process.generation;
        self.lock().generation = generation;
        let first = self.adopt(started);
        let old: Vec<Arc<Process>> = {
            let state = self.lock();
            let is_old = |process: &&Arc<Process>| process.generation < generation;
            state.processes.iter().filter(is_old).cloned().collect()
        };
        old.iter().for_each(|process| process.retire());
        let mut current = Some(first);
        for _ in 0..self.settings.processes {
            self.run(Arc::clone(self).keep(generation, current.take()));
        }
    }

    /// Restarts a process whenever it exits, until the generation is old.
    async fn keep(self: Arc<Self>, generation: u64, mut current: Option<Arc<Process>>) {
        let mut backoff = Backoff::default();
        loop {
            let process = match current.take() {
                Some(process) => Ok(process),
                None => self.start_process(generation).await.map(|started| self.adopt(started)),
            };
            match process {
                Ok(process) => {
                    self.follow(&process).await;
                    self.lock().processes.retain(|known| !Arc::ptr_eq(known, &process));
                    if process.is_useful() {
                        backoff.clear();
                    }
                }
                Err(error) => self.report(generation, &error),
            }
            if !self.pause(generation, backoff.failed()).await {
                return;
            }
        }
    }

    /// Waits until a process is gone. Records tools that it declares meanwhile.
    async fn follow(&self, process: &Process) {
        let mut declared = process.declared();
        loop {
            tokio::select! {
                _ = process.ended() => return,
                Ok(()) = declared.changed() => {
                    let tools = declared.borrow_and_update().clone();
                    if let Some(tools) = tools {
                        process.set_tools(&tools);
                        self.declared.send_replace(Some(tools));
                    }
                }
            }
        }
    }

    /// Waits before the next start. Returns `false` if the generation gets no more processes.
    async fn pause(&self, generation: u64, delay: Duration) -> bool {
        let mut stopping = self.stopping.subscribe();
        tokio::select! {
            biased;
            _ = stopping.wait_for(|stopping| *stopping) => false,
            () = sleep(delay) => self.lock().generation == generation,
        }
    }

    async fn start_process(&self, generation: u64) -> Result<Started, SpawnError> {
        let started = spawn::start(&self.surroundings, generation).await?;
        Counters::add(&self.counters.starts);
        Ok(started)
    }

    /// Gives a process calls, and attends it in the background.
    fn adopt(self: &Arc<Self>, started: Started) -> Arc<Process> {
        let Started { process, hello, attendant } = started;
        tracing::debug!(tool_worker = &*self.settings.name, sdk = hello.sdk, "process started");
        self.run(attendant);
        {
            let mut state = self.lock();
            state.problem = None;
            state.processes.push(Arc::clone(&process));
        }
        // The generation may be old by now.
        if self.lock().generation != process.generation {
            process.retire();
        }
        self.capacity.set_max(self.settings.places());
        self.freed.notify_waiters();
        process
    }

    /// Reports a process that did not start. While no process runs, tasks wait in the store.
    fn report(&self, generation: u64, error: &SpawnError) {
        let tool_worker = &*self.settings.name;
        let stderr = &*error.stderr;
        tracing::error!(tool_worker, %error, stderr, "a process of a tool worker did not start");
        let is_down = {
            let mut state = self.lock();
            if state.generation == generation {
                state.problem = Some(error.reason.clone());
            }
            state.processes.iter().all(|process| process.load().is_none())
        };
        if is_down {
            self.capacity.set_max(0);
        }
    }

    /// Returns a place for a call, in a separate process if `is_alone`.
    ///
    /// # Errors
    ///
    /// Returns an error if no process accepts the call within some seconds.
    pub(crate) async fn place(
        self: &Arc<Self>,
        tool: &str,
        mailbox: &Arc<Mailbox>,
        is_alone: bool,
    ) -> Result<Place, PlaceError> {
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        Counters::add(&self.counters.calls);
        if is_alone {
            let process = self.process_alone(tool).await?;
            process.add_call(number, mailbox, usize::MAX);
            return Ok(Place { process, number, is_alone });
        }
        let max = self.settings.max_concurrent;
        let enter = |process: &Process| process.add_call(number, mailbox, max);
        let process = self.enter(tool, enter).await?;
        Ok(Place { process, number, is_alone })
    }

    /// Returns a place for a cleanup, and the receiver of its last line.
    ///
    /// # Errors
    ///
    /// Returns an error if no process accepts the cleanup within some seconds.
    pub(crate) async fn cleanup_place(
        &self,
        tool: &str,
    ) -> Result<(Place, oneshot::Receiver<RunEnd>), PlaceError> {
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        // Cleanups have no permit, so they may exceed the places of calls.
        let max = self.settings.max_concurrent.saturating_mul(2);
        let mut received = None;
        let enter = |process: &Process| {
            received = process.add_cleanup(number, max);
            received.is_some()
        };
        let process = self.enter(tool, enter).await?;
        let received = received.ok_or(PlaceError::UnknownTool)?;
        Ok((Place { process, number, is_alone: false }, received))
    }

    /// Waits until `enter` has added a run to a process.
    async fn enter(
        &self,
        tool: &str,
        mut enter: impl FnMut(&Process) -> bool,
    ) -> Result<Arc<Process>, PlaceError> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let freed = self.freed.notified();
            let mut candidates: Vec<(usize, Arc<Process>)> = {
                let state = self.lock();
                let of = |process: &Arc<Process>| Some((process.load()?, Arc::clone(process)));
                state.processes.iter().filter_map(of).collect()
            };
            let is_running = !candidates.is_empty();
            candidates.retain(|(_, process)| process.tool(tool).is_some());
            if is_running && candidates.is_empty() {
                return Err(PlaceError::UnknownTool);
            }
            candidates.sort_by_key(|(load, _)| *load);
            if let Some((_, process)) = candidates.into_iter().find(|(_, process)| enter(process)) {
                return Ok(process);
            }
            if timeout_at(deadline, freed).await.is_err() {
                return Err(PlaceError::Unavailable(self.problem(is_running)));
            }
        }
    }

    /// Starts a process for one call.
    async fn process_alone(self: &Arc<Self>, tool: &str) -> Result<Arc<Process>, PlaceError> {
        let unavailable = |reason: &str| PlaceError::Unavailable(reason.to_owned());
        let turn = Arc::clone(&self.alone).acquire_owned();
        let turn: OwnedSemaphorePermit = match timeout(PATIENCE, turn).await {
            Ok(Ok(turn)) => turn,
            _ => return Err(unavailable("other calls have lost their process repeatedly")),
        };
        let generation = self.lock().generation;
        let started = self.start_process(generation).await;
        let started = started.map_err(|error| PlaceError::Unavailable(error.reason))?;
        if started.process.tool(tool).is_none() {
            return Err(PlaceError::UnknownTool);
        }
        let Started { process, attendant, .. } = started;
        self.run(async move {
            attendant.await;
            drop(turn);
        });
        Ok(process)
    }

    /// Returns whether a process that accepts calls has this tool, as a durable one.
    pub(crate) fn has_durable(&self, tool: &str) -> bool {
        let state = self.lock();
        let accepts = |process: &Arc<Process>| process.load().is_some();
        let mut accepting = state.processes.iter().filter(|process| accepts(process));
        accepting.any(|process| process.tool(tool) == Some(true))
    }

    /// Returns the reason why no process accepts calls.
    fn problem(&self, is_running: bool) -> String {
        match (is_running, &self.lock().problem) {
            (true, _) => "all its processes are busy with calls that were dropped".to_owned(),
            (false, Some(problem)) => problem.clone(),
            (false, None) => "its process is restarting".to_owned(),
        }
    }

    /// Returns the receiver of entries that processes declare after their `hello`.
    pub(crate) fn declared(&self) -> watch::Receiver<Option<Arc<[DeclaredTool]>>> {
        self.declared.subscribe()
    }

    /// Returns the numbers of this tool worker.
    pub(crate) fn metrics(&self) -> WorkerMetrics {
        let state = self.lock();
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        WorkerMetrics {
            tool_worker: self.settings.name.to_string(),
            processes: state.processes.iter().filter(|process| process.load().is_some()).count(),
            running: state.processes.iter().map(|process| process.running()).sum(),
            waiting: self.capacity.waiting(),
            calls: read(&self.counters.calls),
            losses: read(&self.counters.losses),
            starts: read(&self.counters.starts),
        }
    }

    /// Runs background work, which ends with the pool.
    pub(crate) fn run(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(work);
    }

    /// Completes when the pool stops.
    pub(crate) async fn stopped(&self) {
        // The sender lives as long as the pool.
        let _ = self.stopping.subscribe().wait_for(|stopping| *stopping).await;
    }

    /// Lets all processes exit after their calls. No process is restarted.
    pub(crate) fn stop(&self) -> Vec<Arc<Process>> {
        self.stopping.send_replace(true);
        let processes = self.lock().processes.clone();
        processes.iter().for_each(|process| process.retire());
        processes
    }

    /// Ends all processes: waits for their calls, and kills them after a grace period.
    pub(crate) async fn shutdown(&self) {
        let processes = self.stop();
        let ends = async {
            for process in &processes {
                process.ended().await;
            }
        };
        if timeout(self.settings.kill_grace, ends).await.is_err() {
            processes.iter().for_each(|process| process.kill());
        }
        let mut tasks = {
            let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *tasks)
        };
        let rest = async { while tasks.join_next().await.is_some() {} };
        // Dropping the rest kills its processes.
        let _ = timeout(self.settings.kill_grace, rest).await;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
