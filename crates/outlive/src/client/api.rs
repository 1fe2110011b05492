//! The client: what a program asks a server.

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
    link::ServerInfo,
    lists::Paginated,
    notices::Notifications,
    request_builder::{Complete, GetPrompt, RawRequest, ReadResource, RequestBuilder},
    send::send,
    stream::StreamTool,
    subscription::{ListenFilter, Subscription},
    tools::{StartTool, ToolCall},
};

impl Client {
    /// Begins a client with this program's name and version.
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> ClientBuilder {
        ClientBuilder::new(name, version)
    }

    /// Connects with everything at its default.
    ///
    /// # Errors
    ///
    /// As [`ClientBuilder::connect`].
    pub async fn connect(target: impl Into<super::Target>) -> Result<Self> {
        Self::builder("outlive", env!("CARGO_PKG_VERSION")).connect(target).await
    }

    /// What the server said of itself.
    ///
    /// # Errors
    ///
    /// When it cannot be reached.
    pub async fn server_info(&self) -> Result<ServerInfo> {
        Ok(self.core.established().await?.server.clone())
    }

    /// The revision that is spoken.
    ///
    /// # Errors
    ///
    /// When the server cannot be reached.
    pub async fn protocol_version(&self) -> Result<Version> {
        Ok(self.core.established().await?.rules.version)
    }

    /// Whether the server was met with a handshake, as before 2026-07-28. Another process can then say
    /// [`ClientBuilder::older_first`].
    ///
    /// # Errors
    ///
    /// When the server cannot be reached.
    pub async fn is_older(&self) -> Result<bool> {
        Ok(self.core.established().await?.rules.sessions)
    }

    /// Calls a tool and waits for its result, whatever happens in between: questions, a task.
    /// A tool that ran and failed is a result too.
    pub fn call_tool(
        &self,
        name: impl Into<String>,
        arguments: impl Serialize,
    ) -> RequestBuilder<ToolCall> {
        RequestBuilder::new(self, ToolCall::new(name.into(), &arguments))
    }

    /// Begins a tool call and gives a handle on it, which can be saved and taken up again.
    pub fn start_tool(
        &self,
        name: impl Into<String>,
        arguments: impl Serialize,
    ) -> RequestBuilder<StartTool> {
        RequestBuilder::new(self, StartTool(ToolCall::new(name.into(), &arguments)))
    }

    /// Calls a tool and gives what it has so far, while it works: a stream of segments, and the whole
    /// result at its end. Says [`ClientBuilder::partial_results`] beforehand.
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

    /// Gets a prompt, without arguments until they are added.
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

    /// Calls any method, with parameters as they are; the result as it comes. Questions of the
    /// server are answered where the method can have some.
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
    /// When it cannot be sent.
    pub async fn notify(&self, method: impl AsRef<str>, params: impl Serialize) -> Result<()> {
        let params = serde_json::to_string(&params)
            .map_err(|error| super::ClientError::BadArguments(error.to_string()))?;
        let here = self.core.established().await?;
        let method = serde_json::Value::from(method.as_ref());
        let message = format!(r#"{{"jsonrpc":"2.0","method":{method},"params":{params}}}"#);
        here.tell(message.into()).await
    }

    /// All tools, page by page.
    pub fn list_tools(&self) -> Paginated<Tool> {
        Paginated::new(&self.core, Method::ToolsList)
    }

    /// All resources, page by page.
    pub fn list_resources(&self) -> Paginated<Resource> {
        Paginated::new(&self.core, Method::ResourcesList)
    }

    /// All resource templates, page by page.
    pub fn list_resource_templates(&self) -> Paginated<ResourceTemplate> {
        Paginated::new(&self.core, Method::ResourceTemplatesList)
    }

    /// All prompts, page by page.
    pub fn list_prompts(&self) -> Paginated<Prompt> {
        Paginated::new(&self.core, Method::PromptsList)
    }

    /// Listens for changes. The subscription is taken up again when the connection is.
    ///
    /// # Errors
    ///
    /// When the server does not offer any of what is wanted, or cannot be reached.
    pub async fn listen(&self, filter: ListenFilter) -> Result<Subscription> {
        Subscription::open(&self.core, filter).await
    }

    /// Everything that the server tells outside of calls, from now on: log messages, changes.
    pub fn notifications(&self) -> Notifications {
        Notifications::new(self.core.dispatch.notices())
    }

    /// Says which log messages the server should send, before 2026-07-28. Since then each call says
    /// so: [`RequestBuilder::log_level`].
    ///
    /// # Errors
    ///
    /// When the server does not offer it, or the revision has no words for it.
    pub async fn set_log_level(&self, level: LoggingLevel) -> Result<()> {
        let here = self.core.established().await?;
        if !here.rules.has(Method::SetLevel) {
            let why = "the agreed revision sets the level of each call; use `.log_level(…)`";
            return Err(Error::not_offered(why));
        }
        let params = serde_json::to_string(&SetLevelRequestParams { level, meta: None })
            .map_err(|error| super::ClientError::BadArguments(error.to_string()))?;
        send(&self.core, &Wanted::new(&self.core, Method::SetLevel, params)).await?.result()?;
        Ok(())
    }

    /// Asks whether the server is there: `ping` where there is one, `server/discover` otherwise.
    ///
    /// # Errors
    ///
    /// When it is not.
    pub async fn ping(&self) -> Result<()> {
        let here = self.core.established().await?;
        let method = if here.rules.has(Method::Ping) { Method::Ping } else { Method::Discover };
        send(&self.core, &Wanted::new(&self.core, method, "{}")).await?.result()?;
        Ok(())
    }

    /// Says that the roots have changed, where servers are told.
    ///
    /// # Errors
    ///
    /// When it cannot be sent.
    pub async fn notify_roots_changed(&self) -> Result<()> {
        let here = self.core.established().await?;
        match here.rules.has(Method::RootsListChanged) {
            true => here.notify(Method::RootsListChanged, "").await,
            // Where every request says what the client can do, servers ask when they need to.
            false => Ok(()),
        }
    }

    /// Ends the connection properly: a session is deleted, a process is given time to end. Tasks go
    /// on. Dropping all clones ends it too, but without waiting for anything.
    pub async fn close(&self) {
        self.core.close().await;
    }
}
