//! The public API: one tool worker of a server.

use std::{fmt, sync::Arc};

use outlive::server::{Server, ServerBuilder};

use crate::{
    counters::WorkerMetrics,
    error::WorkerError,
    names::ToolNames,
    pool::Pool,
    reload::{ServedTools, ToolChanges},
    settings::WorkerSettings,
    watch,
};

/// A tool worker whose processes run.
///
/// Dropping the value lets the processes exit; [`ToolWorker::shutdown`] waits for them.
pub struct ToolWorker {
    pool: Arc<Pool>,
    tools: Arc<ServedTools>,
    app_name: Option<String>,
}

impl ToolWorker {
    /// Starts the processes, and waits until the first one has declared its tools. Must be called
    /// inside a Tokio runtime. `names` are the names of the server's tools.
    ///
    /// # Errors
    ///
    /// Returns an error if the process cannot be started, exits, or declares no valid tools in time.
    pub async fn start(settings: WorkerSettings, names: ToolNames) -> Result<Self, WorkerError> {
        let tool_worker = settings.name.to_string();
        let settings = Arc::new(settings);
        // Before the process reads them, so that no change is missed.
        let loaded = watch::read(&settings).await;
        let pool = Pool::new(settings).map_err(|error| WorkerError::Folder {
            tool_worker: tool_worker.clone(),
            reason: error.to_string(),
        })?;
        let hello = pool.start().await.map_err(|error| WorkerError::NotStarted {
            tool_worker,
            reason: error.reason,
            stderr: error.stderr,
        });
        let hello = hello?;
        let tools = match ServedTools::new(&pool, names, hello.tools, loaded) {
            Ok(tools) => Arc::new(tools),
            Err(error) => {
                pool.shutdown().await;
                return Err(error);
            }
        };
        Ok(Self { pool, tools, app_name: hello.name })
    }

    /// Returns the name of the tool worker.
    pub fn name(&self) -> &str {
        &self.pool.settings.name
    }

    /// Returns the name that the application declares for itself.
    pub fn app_name(&self) -> Option<&str> {
        self.app_name.as_deref()
    }

    /// Returns the names of the tools, in alphabetical order.
    pub fn tool_names(&self) -> Vec<String> {
        self.tools.tool_names()
    }

    /// Adds the tools to a server that is being built.
    pub fn attach(&self, builder: ServerBuilder) -> ServerBuilder {
        self.tools.attach(builder)
    }

    /// Keeps the tools of the server in sync with the processes, and reloads the code when a watched
    /// file changes. Must be called inside a Tokio runtime.
    pub fn serve(&self, server: &Server) {
        self.pool.run(Arc::clone(&self.tools).follow(server.clone()));
    }

    /// Starts processes with the code as it is now. They replace those that run: durable calls move to
    /// them between two steps, and other calls end in the old processes.
    ///
    /// # Errors
    ///
    /// Returns an error if the first process does not declare valid tools. The old processes and tools
    /// stay.
    pub async fn reload(&self, server: &Server) -> Result<ToolChanges, WorkerError> {
        self.tools.reload(server).await
    }

    /// Returns the numbers of the tool worker.
    pub fn metrics(&self) -> WorkerMetrics {
        self.pool.metrics()
    }

    /// Ends the processes: those without calls at once, and the others after `kill_grace`.
    pub async fn shutdown(&self) {
        self.pool.shutdown().await;
    }
}

impl Drop for ToolWorker {
    fn drop(&mut self) {
        self.pool.stop();
    }
}

impl fmt::Debug for ToolWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolWorker").field("name", &self.name()).finish_non_exhaustive()
    }
}
