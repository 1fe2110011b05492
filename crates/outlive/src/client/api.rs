//! Requests and notifications that a program sends through [`Client`].

use std::sync::Arc;

use outlive_wire::{
    CompletionReference, LoggingLevel, Method, Prompt, PromptReference, Resource, ResourceTemplate,
    ResourceTemplateReference, SetLevelRequestParams, Tool, Version,
};
use serde::Serialize;

use super::{
    attempt::Wanted,
    builder::ClientBuilder,
    core::Client,
    error::{Error, Result},
    lists::Paginated,
    notices::Notifications,
    request_builder::{Complete, GetPrompt, RawRequest, ReadResource, RequestBuilder},
    send::send,
    server_info::ServerInfo,
    stream::StreamTool,
    subscription::{ListenFilter, Subscription},
    tools::{StartTool, ToolCall},
};

impl Client {
    /// Starts a builder for a client with this program's name and version.
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> ClientBuilder {
        ClientBuilder::new(name, version)
    }

    /// Connects with default settings.
    ///
    /// # Errors
    ///
    /// Same as [`ClientBuilder::connect`].
    pub async fn connect(target: impl Into<super::Target>) -> Result<Self> {
        Self::builder("outlive", env!("CARGO_PKG_VERSION")).connect(target).await
    }

    /// Returns the server's name, capabilities and instructions.
    ///
    /// # Errors
    ///
    /// If the server is unreachable.
    pub async fn server_info(&self) -> Result<ServerInfo> {
        Ok(self.core.established().await?.server.clone())
    }

    /// Returns the negotiated protocol version.
    ///
    /// # Errors
    ///
    /// If the server is unreachable.
    pub async fn protocol_version(&self) -> Result<Version> {
        Ok(self.core.established().await?.rules.version)
    }

    /// Returns whether the server is legacy (before 2026-07-28) and needed a handshake. Another
    /// process can then use [`ClientBuilder::older_first`].
    ///
    /// # Errors
    ///
    /// If the server is unreachable.
    pub async fn is_older(&self) -> Result<bool> {
        Ok(self.core.established().await?.rules.sessions)
    }

    /// Calls a tool and waits for its result. Input requests go to the input handler, and a task is
    /// polled until it ends. A tool error is a result, not an [`Error`].
    pub fn call_tool(
        &self,
        name: impl Into<String>,
        arguments: impl Serialize,
    ) -> RequestBuilder<ToolCall> {
        RequestBuilder::new(self, ToolCall::new(name.into(), &arguments))
    }

    /// Starts a tool call and returns its handle. Another process can resume a saved handle.
    pub fn start_tool(
        &self,
        name: impl Into<String>,
        arguments: impl Serialize,
    ) -> RequestBuilder<StartTool> {
        RequestBuilder::new(self, StartTool(ToolCall::new(name.into(), &arguments)))
    }

    /// Calls a tool and streams its partial results. The stream ends with the complete result.
    /// Requires [`ClientBuilder::partial_results`].
    pub fn stream_tool(
        &self,
        name: impl Into<String>,
        arguments: impl Serialize,
    ) -> RequestBuilder<StreamTool> {
        RequestBuilder::new(self, StreamTool(ToolCall::new(name.into(), &arguments)))
    }

    /// Reads a resource.
    pub fn read_resource(&self, uri: impl Into<String>) -> RequestBuilder<ReadResource> {
        RequestBuilder::new(self, ReadResource(uri.into()))
    }

    /// Gets a prompt. [`RequestBuilder`] adds its arguments.
    pub fn get_prompt(&self, name: impl Into<String>) -> RequestBuilder<GetPrompt> {
        RequestBuilder::new(self, GetPrompt::new(name.into()))
    }

    /// Completes an argument of a prompt.
    pub fn complete_prompt(
        &self,
        prompt: impl Into<String>,
        argument: impl Into<String>,
        typed: impl Into<String>,
    ) -> RequestBuilder<Complete> {
        let prompt = PromptReference { name: prompt.into(), title: None };
        let reference = CompletionReference::Prompt(prompt);
        RequestBuilder::new(self, Complete::new(reference, argument.into(), typed.into()))
    }

    /// Completes a variable of a resource template.
    pub fn complete_resource(
        &self,
        template: impl Into<String>,
        variable: impl Into<String>,
        typed: impl Into<String>,
    ) -> RequestBuilder<Complete> {
        let reference =
            CompletionReference::Resource(ResourceTemplateReference { uri: template.into() });
        RequestBuilder::new(self, Complete::new(reference, variable.into(), typed.into()))
    }

    /// Calls any method and returns its result as raw JSON. `params` is sent unchanged. Input
    /// requests go to the input handler if the method allows them.
    pub fn request(
        &self,
        method: impl Into<String>,
        params: impl Serialize,
    ) -> RequestBuilder<RawRequest> {
        RequestBuilder::new(self, RawRequest::new(method.into(), &params))
    }

    /// Sends a notification.
    ///
    /// # Errors
    ///
    /// If the notification cannot be sent.
    pub async fn notify(&self, method: impl AsRef<str>, params: impl Serialize) -> Result<()> {
        let params = serde_json::to_string(&params)
            .map_err(|error| super::ClientError::BadArguments(error.to_string()))?;
        let here = self.core.established().await?;
        let method = serde_json::Value::from(method.as_ref());
        let message = format!(r#"{{"jsonrpc":"2.0","method":{method},"params":{params}}}"#);
        here.tell(message.into()).await
    }

    /// Lists all tools, page by page.
    pub fn list_tools(&self) -> Paginated<Tool> {
        Paginated::new(&self.core, Method::ToolsList)
    }

    /// Lists all resources, page by page.
    pub fn list_resources(&self) -> Paginated<Resource> {
        Paginated::new(&self.core, Method::ResourcesList)
    }

    /// Lists all resource templates, page by page.
    pub fn list_resource_templates(&self) -> Paginated<ResourceTemplate> {
        Paginated::new(&self.core, Method::ResourceTemplatesList)
    }

    /// Lists all prompts, page by page.
    pub fn list_prompts(&self) -> Paginated<Prompt> {
        Paginated::new(&self.core, Method::PromptsList)
    }

    /// Subscribes to changes. The client renews the subscription after a reconnect.
    ///
    /// # Errors
    ///
    /// If the server offers none of the requested changes, or is unreachable.
    pub async fn listen(&self, filter: ListenFilter) -> Result<Subscription> {
        Subscription::open(&self.core, filter).await
    }

    /// Returns the notifications that arrive outside of calls from now on, such as log messages.
    pub fn notifications(&self) -> Notifications {
        Notifications::new(self.core.dispatch.notices(), Arc::clone(&self.core.dispatch.unexpected))
    }

    /// Sets the minimum level of the server's log messages, before 2026-07-28. Newer versions set
    /// it per call: [`RequestBuilder::log_level`].
    ///
    /// # Errors
    ///
    /// If the server or its protocol version does not support it.
    pub async fn set_log_level(&self, level: LoggingLevel) -> Result<()> {
        let here = self.core.established().await?;
        if !here.rules.has(Method::SetLevel) {
            let why =
                "the negotiated protocol version sets the log level per call; use `.log_level(…)`";
            return Err(Error::not_offered(why));
        }
        let params = serde_json::to_string(&SetLevelRequestParams { level, meta: None })
            .map_err(|error| super::ClientError::BadArguments(error.to_string()))?;
        send(&self.core, &Wanted::new(&self.core, Method::SetLevel, params)).await?.result()?;
        Ok(())
    }

    /// Checks that the server responds. Sends `ping`, or `server/discover` since 2026-07-28.
    ///
    /// # Errors
    ///
    /// If the server does not respond.
    pub async fn ping(&self) -> Result<()> {
        let here = self.core.established().await?;
        let method = if here.rules.has(Method::Ping) { Method::Ping } else { Method::Discover };
        send(&self.core, &Wanted::new(&self.core, method, "{}")).await?.result()?;
        Ok(())
    }

    /// Notifies a legacy server that the roots changed. Has no effect since 2026-07-28.
    ///
    /// # Errors
    ///
    /// If the notification cannot be sent.
    pub async fn notify_roots_changed(&self) -> Result<()> {
        let here = self.core.established().await?;
        match here.rules.has(Method::RootsListChanged) {
            true => here.notify(Method::RootsListChanged, "").await,
            // Modern servers request the roots whenever they need them.
            false => Ok(()),
        }
    }

    /// Closes the connection: deletes the session, or waits for the server process to exit. Tasks
    /// keep running. Dropping all clones closes the connection without waiting.
    pub async fn close(&self) {
        self.core.close(true).await;
    }
}
