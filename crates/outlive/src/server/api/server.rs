//! A server: it can be served on any number of transports, and changed while it runs.

use std::{
    fmt,
    future::Future,
    io,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use outlive_protocol::{Change, CompletionOutcome, Endpoint, ExternalEvents, Principal, Service};
use outlive_transport::{lines, memory, stdio};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::server::{
    build_error::BuildError,
    dispatch::core::ServerCore,
    metrics::Metrics,
    register::{
        prompt::Prompt,
        registry::Entry,
        resource::{Resource, ResourceTemplate},
        tool::Tool,
    },
};

/// An MCP server. Clones are the same server.
#[derive(Clone)]
pub struct Server {
    pub(super) core: Arc<ServerCore>,
}

impl Server {
    pub(crate) fn of(core: Arc<ServerCore>) -> Self {
        Self { core }
    }

    /// Serves the client that started this process, on standard input and output.
    ///
    /// # Errors
    ///
    /// When the streams cannot be used.
    pub async fn serve_stdio(&self) -> io::Result<()> {
        self.core.transports.fetch_add(1, Ordering::AcqRel);
        stdio::serve(self.endpoint()).await
    }

    /// Serves one client on a byte stream, one message per line.
    ///
    /// # Errors
    ///
    /// When reading or writing fails.
    pub async fn serve_stream<R, W>(
        &self,
        principal: Principal,
        input: R,
        output: W,
    ) -> io::Result<()>
    where
        R: AsyncRead + Unpin + Send,
        W: AsyncWrite + Unpin + Send,
    {
        lines::serve(self.endpoint(), principal, input, output).await
    }

    /// Connects to the server inside this process. Must be called inside a runtime.
    pub fn connect_in_memory(&self) -> memory::Connection {
        memory::connect(self.endpoint(), Principal::LOCAL)
    }

    /// Stops running tasks in this process, then ends the streams on which clients listen, so that they
    /// go on at another replica.
    ///
    /// A task that can continue elsewhere is released as soon as no step of it runs; the others are
    /// released after `timeout`. Transports of this crate do this when the last of them shuts down. For
    /// a server that is mounted in an application, see [`Server::shutdown`].
    pub async fn drain(&self, timeout: Duration) {
        self.core.env.drain(timeout).await;
    }

    /// Waits for `signal`, then shuts down a server that is mounted in an HTTP application. Completes
    /// when the application may stop accepting connections: pass it to
    /// `axum::serve(…).with_graceful_shutdown(…)`.
    ///
    /// Tasks are released and streams end, as with [`Server::drain`]. Calls that still run may end by
    /// themselves; what has not ended `timeout` after the signal is given up, so that no client keeps
    /// the process alive. Must be called inside a runtime.
    pub async fn shutdown(&self, signal: impl Future<Output = ()>, timeout: Duration) {
        signal.await;
        let deadline = tokio::time::Instant::now() + timeout;
        let core = Arc::clone(&self.core);
        // Detached: it ends with the process or at the deadline.
        tokio::spawn(async move {
            tokio::time::sleep_until(deadline).await;
            core.env.profile.cutoff.close();
        });
        self.core.env.drain(timeout).await;
    }

    /// Says what came of something that a task waits for outside; the token is that of
    /// [`ExternalEvent::token`](crate::server::durable::ExternalEvent::token). What is said first counts.
    ///
    /// # Errors
    ///
    /// When the value cannot be written as JSON.
    pub async fn complete_external_event(
        &self,
        token: &str,
        value: impl serde::Serialize,
    ) -> serde_json::Result<CompletionOutcome> {
        let value = serde_json::value::to_raw_value(&value)?;
        Ok(Arc::clone(&self.core).complete(token, value).await)
    }

    /// Asks the store whether it answers, with the cheapest question there is. A server without
    /// tasks is always ready.
    ///
    /// # Errors
    ///
    /// When the store cannot be used.
    pub async fn ready(&self) -> Result<(), outlive_tasks::store::StoreError> {
        match &self.core.env.tasks {
            Some(tasks) => tasks.engine().store().ready().await,
            None => Ok(()),
        }
    }

    /// What the server has done and is doing, in numbers; as text it is what Prometheus reads.
    pub async fn metrics(&self) -> Metrics {
        let census = match &self.core.env.tasks {
            Some(tasks) => tasks.engine().store().stats().await.ok(),
            None => None,
        };
        let tools = self.core.catalog.tools.map(|tool| tool.meter.read());
        self.core.env.counters.read(census, self.core.env.profile.streams.count(), tools)
    }

    /// The server as transports see it, for a transport of your own.
    pub fn endpoint(&self) -> Endpoint {
        if let (Some(tasks), Ok(_)) = (&self.core.env.tasks, tokio::runtime::Handle::try_current())
        {
            // What was left by a process before this one goes on, whether anybody calls or not.
            tasks.engine();
        }
        Endpoint::new(Arc::clone(&self.core) as Arc<dyn Service>)
    }

    /// Adds a tool, or replaces the one of that name. Clients are told.
    ///
    /// # Errors
    ///
    /// When the tool cannot be used; see [`ServerBuilder::build`](crate::server::ServerBuilder::build).
    pub fn add_tool(&self, tool: Tool) -> Result<(), BuildError> {
        self.core.catalog.tools.insert(tool.register(&self.core.env)?);
        Ok(())
    }

    /// Takes a tool away; `false` if there was none. Calls that are running go on.
    pub fn remove_tool(&self, name: &str) -> bool {
        self.core.catalog.tools.remove(name)
    }

    /// Adds a resource, or replaces the one of that URI. Clients are told.
    ///
    /// # Errors
    ///
    /// When the resource cannot be used; see [`ServerBuilder::build`](crate::server::ServerBuilder::build).
    pub fn add_resource(&self, resource: Resource) -> Result<(), BuildError> {
        self.core.catalog.resources.insert(resource.register(&self.core.env)?);
        Ok(())
    }

    /// Takes a resource away; `false` if there was none.
    pub fn remove_resource(&self, uri: &str) -> bool {
        self.core.catalog.resources.remove(uri)
    }

    /// Adds a template, or replaces the same one. Clients are told.
    ///
    /// # Errors
    ///
    /// When the template cannot be used; see [`ServerBuilder::build`](crate::server::ServerBuilder::build).
    pub fn add_resource_template(&self, template: ResourceTemplate) -> Result<(), BuildError> {
        self.core.catalog.templates.insert(template.register(&self.core.env)?);
        Ok(())
    }

    /// Takes a template away; `false` if there was none.
    pub fn remove_resource_template(&self, template: &str) -> bool {
        self.core.catalog.templates.remove(template)
    }

    /// Adds a prompt, or replaces the one of that name. Clients are told.
    ///
    /// # Errors
    ///
    /// When the prompt cannot be used; see [`ServerBuilder::build`](crate::server::ServerBuilder::build).
    pub fn add_prompt(&self, prompt: Prompt) -> Result<(), BuildError> {
        self.core.catalog.prompts.insert(prompt.register(&self.core.env)?);
        Ok(())
    }

    /// Takes a prompt away; `false` if there was none.
    pub fn remove_prompt(&self, name: &str) -> bool {
        self.core.catalog.prompts.remove(name)
    }

    /// Tells those who subscribed to a resource that its contents have changed.
    pub fn resource_updated(&self, uri: &str) {
        self.core.env.profile.bus.publish(&Change::Resource(uri.into()));
    }

    pub(crate) fn add_new_tool(&self, tool: Tool) -> Result<(), BuildError> {
        let entry = tool.register(&self.core.env)?;
        match self.core.catalog.tools.contains(entry.key()) {
            true => Err(BuildError::tool(entry.key(), &TWICE)),
            false => {
                self.core.catalog.tools.place(entry);
                Ok(())
            }
        }
    }

    pub(crate) fn add_new_resource(&self, resource: Resource) -> Result<(), BuildError> {
        let entry = resource.register(&self.core.env)?;
        match self.core.catalog.resources.contains(entry.key()) {
            true => Err(BuildError::resource(entry.key(), &TWICE)),
            false => {
                self.core.catalog.resources.place(entry);
                Ok(())
            }
        }
    }

    pub(crate) fn add_new_template(&self, template: ResourceTemplate) -> Result<(), BuildError> {
        let entry = template.register(&self.core.env)?;
        match self.core.catalog.templates.contains(entry.key()) {
            true => Err(BuildError::resource(entry.key(), &TWICE)),
            false => {
                self.core.catalog.templates.place(entry);
                Ok(())
            }
        }
    }

    pub(crate) fn add_new_prompt(&self, prompt: Prompt) -> Result<(), BuildError> {
        let entry = prompt.register(&self.core.env)?;
        match self.core.catalog.prompts.contains(entry.key()) {
            true => Err(BuildError::prompt(entry.key(), &TWICE)),
            false => {
                self.core.catalog.prompts.place(entry);
                Ok(())
            }
        }
    }
}

const TWICE: &str = "there is another one of that name; names are unique";

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("profile", &self.core.env.profile).finish_non_exhaustive()
    }
}
