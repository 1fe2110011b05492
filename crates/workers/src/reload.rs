//! Reload: new processes with the changed code replace those that run, and the server's tools follow.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use outlive::server::{Server, ServerBuilder};
use tokio::time::{MissedTickBehavior, interval};

use crate::{
    error::WorkerError,
    line::declared::DeclaredTool,
    names::ToolNames,
    pool::Pool,
    tools::build,
    watch::{self, Stamps},
};

/// Interval at which the watched files are read. A change counts when it is seen twice, so that a file
/// is not read while an editor writes it.
const LOOK: Duration = Duration::from_millis(200);

/// Tools of a tool worker that its server serves.
pub(crate) struct ServedTools {
    pool: Arc<Pool>,
    names: ToolNames,
    // A std mutex: no code awaits while it is held.
    served: Mutex<BTreeMap<String, Arc<DeclaredTool>>>,
    /// The watched files as they were before the newest processes read them. One reload at a time.
    loaded: tokio::sync::Mutex<Stamps>,
}

/// Changes of the tools after a reload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolChanges {
    /// New tools.
    pub added: Vec<String>,
    /// Tools with another definition.
    pub replaced: Vec<String>,
    /// Tools that no longer exist.
    pub removed: Vec<String>,
}

impl ServedTools {
    /// Creates the tools of a tool worker that has started.
    ///
    /// # Errors
    ///
    /// Returns an error if another tool of the server has the name of one of them.
    pub(crate) fn new(
        pool: &Arc<Pool>,
        names: ToolNames,
        tools: Vec<DeclaredTool>,
        loaded: Stamps,
    ) -> Result<Self, WorkerError> {
        let served = Self {
            pool: Arc::clone(pool),
            names,
            served: Mutex::default(),
            loaded: tokio::sync::Mutex::new(loaded),
        };
        for tool in tools {
            served.claim(&tool.name)?;
            served.lock().insert(tool.name.clone(), Arc::new(tool));
        }
        Ok(served)
    }

    fn claim(&self, tool: &str) -> Result<(), WorkerError> {
        let own = &*self.pool.settings.name;
        self.names.claim(tool, own).map_err(|other| WorkerError::NameTaken {
            tool_worker: own.to_owned(),
            tool: tool.to_owned(),
            other: other.to_string(),
        })
    }

    /// Returns the names of the tools.
    pub(crate) fn tool_names(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
    }

    /// Adds the tools to a server that is being built.
    pub(crate) fn attach(&self, builder: ServerBuilder) -> ServerBuilder {
        let served = self.lock();
        let tools = served.values().map(|declared| build(&self.pool, declared));
        tools.fold(builder, ServerBuilder::tool)
    }

    /// Starts processes with the code as it is now. If the first one does not declare valid tools,
    /// nothing changes.
    pub(crate) async fn reload(&self, server: &Server) -> Result<ToolChanges, WorkerError> {
        let mut loaded = self.loaded.lock().await;
        *loaded = watch::read(&self.pool.settings).await;
        let started = self
            .pool
            .prepare()
            .await
            .map_err(|error| self.not_started(error.reason, error.stderr))?;
        let changes = match self.update(server, &started.hello.tools) {
            Ok(changes) => changes,
            Err(error) => {
                // The process has no calls, so it exits at once.
                started.process.retire();
                self.pool.run(started.attendant);
                return Err(error);
            }
        };
        self.pool.switch_to(started);
        Ok(changes)
    }

    fn not_started(&self, reason: String, stderr: String) -> WorkerError {
        WorkerError::NotStarted { tool_worker: self.pool.settings.name.to_string(), reason, stderr }
    }

    /// Updates the tools of a server. After an error, the tools are as before.
    pub(crate) fn update(
        &self,
        server: &Server,
        tools: &[DeclaredTool],
    ) -> Result<ToolChanges, WorkerError> {
        let mut changes = ToolChanges::default();
        let mut before = self.lock().clone();
        let mut added: Vec<(String, Option<Arc<DeclaredTool>>)> = Vec::new();
        for tool in tools {
            let known = before.remove(&tool.name);
            let is_same = known.as_ref().is_some_and(|known| known.definition == tool.definition);
            if is_same {
                continue;
            }
            let list = if known.is_some() { &mut changes.replaced } else { &mut changes.added };
            list.push(tool.name.clone());
            let result = self.add(server, tool);
            added.push((tool.name.clone(), known));
            if let Err(error) = result {
                self.revert(server, added);
                return Err(error);
            }
        }
        let own = &*self.pool.settings.name;
        for name in before.into_keys() {
            server.remove_tool(&name);
            self.names.release(&name, own);
            self.lock().remove(&name);
            changes.removed.push(name);
        }
        Ok(changes)
    }

    fn add(&self, server: &Server, tool: &DeclaredTool) -> Result<(), WorkerError> {
        self.claim(&tool.name)?;
        let declared = Arc::new(tool.clone());
        let built = server.add_tool(build(&self.pool, &declared));
        built.map_err(|error| self.not_started(error.to_string(), String::new()))?;
        self.lock().insert(tool.name.clone(), declared);
        Ok(())
    }

    /// Restores the tools from before an update. The last of them may not have been added.
    fn revert(&self, server: &Server, added: Vec<(String, Option<Arc<DeclaredTool>>)>) {
        let own = &*self.pool.settings.name;
        for (name, known) in added {
            match known {
                // It was valid before.
                Some(known) => {
                    let _ = server.add_tool(build(&self.pool, &known));
                    self.lock().insert(name, known);
                }
                None if self.lock().remove(&name).is_some() => {
                    server.remove_tool(&name);
                    self.names.release(&name, own);
                }
                None => {}
            }
        }
    }

    /// Keeps the tools of a server in sync with the processes and the watched files, until the tool
    /// worker stops.
    pub(crate) async fn follow(self: Arc<Self>, server: Server) {
        let mut declared = self.pool.declared();
        let settings = &self.pool.settings;
        let mut pending: Option<Stamps> = None;
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = self.pool.stopped() => return,
                Ok(()) = declared.changed() => {
                    let tools = declared.borrow_and_update().clone();
                    let tools = tools.unwrap_or_default();
                    self.report(self.update(&server, &tools), "the tools of a tool worker changed");
                }
                _ = looks.tick(), if !settings.watch.is_empty() => {
                    let now = watch::read(settings).await;
                    if now == *self.loaded.lock().await {
                        pending = None;
                    } else if pending.as_ref() == Some(&now) {
                        pending = None;
                        self.report(self.reload(&server).await, "reloaded a tool worker");
                    } else {
                        pending = Some(now);
                    }
                }
            }
        }
    }

    fn report(&self, result: Result<ToolChanges, WorkerError>, done: &str) {
        let tool_worker = &*self.pool.settings.name;
        match result {
            Ok(ToolChanges { added, replaced, removed }) => {
                tracing::info!(target: "outlive::tool_worker", tool_worker, ?added, ?replaced, ?removed, "{done}");
            }
            Err(error) => {
                let stderr = error.stderr();
                tracing::error!(tool_worker, %error, stderr, "a reload failed; the old code stays");
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<DeclaredTool>>> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
