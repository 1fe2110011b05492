//! The server of a test.

use std::sync::Arc;

use outlive_wire::{CallToolResult, GetPromptResult, Method, ReadResourceResult};
use serde_json::{Value, json};

use super::call::TestCall;
use crate::server::{BuildError, Server, ServerBuilder, TestHooks};

/// A server whose handlers are called by a test, one call at a time.
#[derive(Debug)]
pub struct TestServer {
    pub(super) server: Server,
    pub(super) hooks: Arc<TestHooks>,
}

impl TestServer {
    /// Builds the server.
    ///
    /// # Errors
    ///
    /// As [`ServerBuilder::build`].
    pub fn new(mut builder: ServerBuilder) -> Result<Self, BuildError> {
        let hooks = TestHooks::install(&mut builder.clock);
        builder.test_hooks = Some(Arc::clone(&hooks));
        Ok(Self { server: builder.build()?, hooks })
    }

    /// Prepares a call of a tool. The client declares every capability.
    pub fn call_tool(
        &self,
        name: impl Into<String>,
        arguments: Value,
    ) -> TestCall<'_, CallToolResult> {
        let params = json!({"name": name.into(), "arguments": arguments});
        TestCall::new(self, Method::ToolsCall, params)
    }

    /// Prepares to read a resource, or one of a template.
    ///
    /// ```
    /// use outlive::{resource, server::Server, testing::TestServer};
    ///
    /// #[resource("users://{id}")]
    /// async fn user(id: u64) -> String {
    ///     format!("user {id}")
    /// }
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// let server = TestServer::new(Server::builder("test", "1").resource_template(user::resource_template()))?;
    /// let outcome = server.read_resource("users://7").run().await?;
    /// assert_eq!(outcome.text(), "user 7");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn read_resource(&self, uri: impl Into<String>) -> TestCall<'_, ReadResourceResult> {
        TestCall::new(self, Method::ResourcesRead, json!({"uri": uri.into()}))
    }

    /// Prepares to get a prompt with its arguments, which are texts.
    pub fn get_prompt(
        &self,
        name: impl Into<String>,
        arguments: Value,
    ) -> TestCall<'_, GetPromptResult> {
        let params = json!({"name": name.into(), "arguments": arguments});
        TestCall::new(self, Method::PromptsGet, params)
    }
}
