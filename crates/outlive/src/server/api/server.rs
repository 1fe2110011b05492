//! A running server: its transports, its shutdown, and changes of its items.

use std::{
    fmt,
    future::Future,
    io,
    sync::{Arc, Weak, atomic::Ordering},
    time::Duration,
};

use outlive_protocol::{Change, CompletionOutcome, Endpoint, ExternalEvents, Principal, Service};
use outlive_transport::{lines, memory, stdio};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::server::{
    build_error::BuildError,
    dispatch::core::ServerCore,
    env::environment::Env,
    metrics::Metrics,
    register::{
        catalog_port::CatalogPort,
        prompt::Prompt,
        registry::Entry,
        resource::{Resource, ResourceTemplate},
        tool::Tool,
    },
};

/// An MCP server. Clones share the same server.
#[derive(Clone)]
pub struct Server {
    pub(super) core: Arc<ServerCore>,
}

/// A server that may have been dropped.
pub(crate) struct WeakServer(Weak<ServerCore>);

impl WeakServer {
    pub(crate) fn new(core: Weak<ServerCore>) -> Self {
        Self(core)
    }

    pub(crate) fn upgrade(&self) -> Option<Server> {
        self.0.upgrade().map(Server::of)
    }
}

impl Server {
    pub(crate) fn of(core: Arc<ServerCore>) -> Self {
        Self { core }
    }

    pub(crate) fn env(&self) -> &Arc<Env> {
        &self.core.env
    }

    /// Serves the client that started this process, on standard input and output.
    ///
    /// # Errors
    ///
    /// Returns an error if standard input or output cannot be used.
    pub async fn serve_stdio(&self) -> io::Result<()> {
        self.core.transports.fetch_add(1, Ordering::AcqRel);
        stdio::serve(self.endpoint()).await
    }

    /// Serves one client on a byte stream, one message per line.
    ///
    /// # Errors
    ///
    /// Returns an error if reading or writing fails.
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

    /// Returns an in-memory client connection to the server. Must be called inside a Tokio runtime.
    pub fn connect_in_memory(&self) -> memory::Connection {
        memory::connect(self.endpoint(), Principal::LOCAL)
    }

    /// Releases the tasks that run in this process, then closes client streams so that clients
    /// reconnect to another replica.
    ///
    /// A resumable task is released as soon as none of its steps runs. Other tasks are released
    /// after `timeout`. A running call may become a task after the drain, so drain again when all
    /// calls have ended. The transports of this crate do both when the last of them shuts down. For
    /// a server that is mounted in an application, see [`Server::shutdown`].
    pub async fn drain(&self, timeout: Duration) {
        self.core.env.drain(timeout).await;
    }

    /// Waits for `signal`, then shuts down a server that is mounted in an HTTP application.
    ///
    /// Completes when the application may stop accepting connections: pass the future to
    /// `axum::serve(…).with_graceful_shutdown(…)`. Tasks are released and streams closed, as with
    /// [`Server::drain`]. Running calls may finish until `timeout` after the signal; then they are
    /// aborted, so that no client keeps the process alive. Call [`Server::drain`] when the
    /// application has stopped, to release calls that became tasks meanwhile. Must be called inside
    /// a Tokio runtime.
    pub async fn shutdown(&self, signal: impl Future<Output = ()>, timeout: Duration) {
        signal.await;
        let deadline = tokio::time::Instant::now() + timeout;
        let core = Arc::clone(&self.core);
        // Detached: the task ends at the deadline or with the process.
        tokio::spawn(async move {
            tokio::time::sleep_until(deadline).await;
            core.env.profile.cutoff.close();
        });
        self.core.env.drain(timeout).await;
    }

    /// Delivers the value of an external event to the task that waits for it. `token` comes from
    /// [`ExternalEvent::token`](crate::server::durable::ExternalEvent::token). The first delivery
    /// wins.
    ///
    /// # Errors
    ///
    /// Returns an error if `value` cannot be serialized as JSON.
    pub async fn complete_external_event(
        &self,
        token: &str,
        value: impl serde::Serialize,
    ) -> serde_json::Result<CompletionOutcome> {
        let value = serde_json::value::to_raw_value(&value)?;
        Ok(Arc::clone(&self.core).complete(token, value).await)
    }

    /// Checks with a cheap query that the store is available. A server without tasks is always
    /// ready.
    ///
    /// # Errors
    ///
    /// Returns an error if the store is unavailable.
    pub async fn ready(&self) -> Result<(), outlive_tasks::store::StoreError> {
        match &self.core.env.tasks {
            Some(tasks) => tasks.engine().store().ready().await,
            None => Ok(()),
        }
    }

    /// Returns the metrics of the server. Their `Display` output is the Prometheus text format.
    pub async fn metrics(&self) -> Metrics {
        let census = match &self.core.env.tasks {
            Some(tasks) => tasks.engine().store().stats().await.ok(),
            None => None,
        };
        let mut tools = self.core.registered.tools.map(|tool| tool.meter.read());
        tools.extend(self.core.catalog.iter().flat_map(CatalogPort::metrics));
        self.core.env.counters.read(census, self.core.env.profile.streams.count(), tools)
    }

    /// Returns the endpoint that a custom transport serves.
    pub fn endpoint(&self) -> Endpoint {
        if let (Some(tasks), Ok(_)) = (&self.core.env.tasks, tokio::runtime::Handle::try_current())
        {
            // Starts the engine, so that tasks of an earlier process resume before the first call.
            tasks.engine();
        }
        Endpoint::new(Arc::clone(&self.core) as Arc<dyn Service>)
    }

    /// Adds a tool, or replaces the tool with the same name. Clients receive a change notification.
    ///
    /// # Errors
    ///
    /// Returns an error if the tool is invalid; see
    /// [`ServerBuilder::build`](crate::server::ServerBuilder::build).
    pub fn add_tool(&self, tool: Tool) -> Result<(), BuildError> {
        self.core.registered.tools.insert(tool.register(&self.core.env)?);
        Ok(())
    }

    /// Removes a tool. Returns `false` if the tool does not exist. Running calls continue.
    pub fn remove_tool(&self, name: &str) -> bool {
        self.core.registered.tools.remove(name)
    }

    /// Adds a resource, or replaces the resource with the same URI. Clients receive a change
    /// notification.
    ///
    /// # Errors
    ///
    /// Returns an error if the resource is invalid; see
    /// [`ServerBuilder::build`](crate::server::ServerBuilder::build).
    pub fn add_resource(&self, resource: Resource) -> Result<(), BuildError> {
        self.core.registered.resources.insert(resource.register(&self.core.env)?);
        Ok(())
    }

    /// Removes a resource. Returns `false` if the resource does not exist.
    pub fn remove_resource(&self, uri: &str) -> bool {
        self.core.registered.resources.remove(uri)
    }

    /// Adds a resource template, or replaces the template with the same URI template. Clients
    /// receive a change notification.
    ///
    /// # Errors
    ///
    /// Returns an error if the template is invalid; see
    /// [`ServerBuilder::build`](crate::server::ServerBuilder::build).
    pub fn add_resource_template(&self, template: ResourceTemplate) -> Result<(), BuildError> {
        self.core.registered.templates.insert(template.register(&self.core.env)?);
        Ok(())
    }

    /// Removes a resource template. Returns `false` if the template does not exist.
    pub fn remove_resource_template(&self, template: &str) -> bool {
        self.core.registered.templates.remove(template)
    }

    /// Adds a prompt, or replaces the prompt with the same name. Clients receive a change
    /// notification.
    ///
    /// # Errors
    ///
    /// Returns an error if the prompt is invalid; see
    /// [`ServerBuilder::build`](crate::server::ServerBuilder::build).
    pub fn add_prompt(&self, prompt: Prompt) -> Result<(), BuildError> {
        self.core.registered.prompts.insert(prompt.register(&self.core.env)?);
        Ok(())
    }

    /// Removes a prompt. Returns `false` if the prompt does not exist.
    pub fn remove_prompt(&self, name: &str) -> bool {
        self.core.registered.prompts.remove(name)
    }

    /// Notifies the subscribers of a resource that its contents changed.
    pub fn resource_updated(&self, uri: &str) {
        self.core.env.profile.bus.publish(&Change::Resource(uri.into()));
    }

    pub(crate) fn add_new_tool(&self, tool: Tool) -> Result<(), BuildError> {
        let entry = tool.register(&self.core.env)?;
        match self.core.registered.tools.contains(entry.key()) {
            true => Err(BuildError::tool(entry.key(), &TWICE)),
            false => {
                self.core.registered.tools.place(entry);
                Ok(())
            }
        }
    }

    pub(crate) fn add_new_resource(&self, resource: Resource) -> Result<(), BuildError> {
        let entry = resource.register(&self.core.env)?;
        match self.core.registered.resources.contains(entry.key()) {
            true => Err(BuildError::resource(entry.key(), &TWICE)),
            false => {
                self.core.registered.resources.place(entry);
                Ok(())
            }
        }
    }

    pub(crate) fn add_new_template(&self, template: ResourceTemplate) -> Result<(), BuildError> {
        let entry = template.register(&self.core.env)?;
        match self.core.registered.templates.contains(entry.key()) {
            true => Err(BuildError::resource(entry.key(), &TWICE)),
            false => {
                self.core.registered.templates.place(entry);
                Ok(())
            }
        }
    }

    pub(crate) fn add_new_prompt(&self, prompt: Prompt) -> Result<(), BuildError> {
        let entry = prompt.register(&self.core.env)?;
        match self.core.registered.prompts.contains(entry.key()) {
            true => Err(BuildError::prompt(entry.key(), &TWICE)),
            false => {
                self.core.registered.prompts.place(entry);
                Ok(())
            }
        }
    }
}

const TWICE: &str = "this name is already registered; names must be unique";

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("profile", &self.core.env.profile).finish_non_exhaustive()
    }
}
