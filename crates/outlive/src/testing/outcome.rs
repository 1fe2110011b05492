//! Outcomes of test calls.

use std::fmt;

use outlive_wire::{
    CallToolResult, ContentBlock, GetPromptResult, ReadResourceResult, ResourceContents,
};
use serde::de::DeserializeOwned;

/// Result of a test call: of a tool, a resource or a prompt. Sealed.
pub trait TestResult: sealed::Sealed {}

impl TestResult for CallToolResult {}
impl TestResult for GetPromptResult {}
impl TestResult for ReadResourceResult {}

pub(super) mod sealed {
    use outlive_protocol::MethodResult;
    use outlive_wire::{CallToolResult, GetPromptResult, ReadResourceResult};

    /// Conversion from the result of any method.
    pub trait Sealed: Sized {
        fn read(result: MethodResult) -> Option<Self>;
    }

    impl Sealed for CallToolResult {
        fn read(result: MethodResult) -> Option<Self> {
            match result {
                MethodResult::Tool(result) => Some(result),
                MethodResult::Relayed(result, _) => result.to_typed().ok(),
                _ => None,
            }
        }
    }

    impl Sealed for GetPromptResult {
        fn read(result: MethodResult) -> Option<Self> {
            match result {
                MethodResult::Prompt(result) => Some(result),
                MethodResult::Relayed(result, _) => result.to_typed().ok(),
                _ => None,
            }
        }
    }

    impl Sealed for ReadResourceResult {
        fn read(result: MethodResult) -> Option<Self> {
            match result {
                MethodResult::Resource(result, _) => Some(result),
                MethodResult::Relayed(result, _) => result.to_typed().ok(),
                _ => None,
            }
        }
    }
}

/// Outcome of a call.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TestOutcome<R = CallToolResult> {
    /// The result.
    pub result: R,
    /// Keys of the input requests, in order.
    pub input_requests: Vec<String>,
    /// Number of rounds with input responses.
    pub rounds: usize,
}

impl TestOutcome<CallToolResult> {
    /// Returns all texts of the result, joined by newlines.
    pub fn text(&self) -> String {
        self.result.texts().collect::<Vec<_>>().join("\n")
    }

    /// Returns the structured content of the result.
    ///
    /// ```
    /// use outlive::{server::{Json, Server}, testing::TestServer, tool};
    /// use serde_json::{Value, json};
    ///
    /// #[tool]
    /// async fn sizes() -> Json<Vec<u32>> {
    ///     Json(vec![38, 40])
    /// }
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// let server = TestServer::new(Server::builder("test", "1").tool(sizes::tool()))?;
    /// let outcome = server.call_tool("sizes", json!({})).run().await?;
    /// assert_eq!(outcome.structured::<Value>()?, json!([38, 40]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If the tool returned an error, if the result has no structured content, or if the content is not a
    /// `T`.
    pub fn structured<T: DeserializeOwned>(&self) -> Result<T, TestFailure> {
        if self.result.is_error == Some(true) {
            return Err(TestFailure(format!("the tool failed: {}", self.text())));
        }
        let content = self.result.structured_content.as_ref().ok_or_else(|| {
            TestFailure("the result has no structured content; return `Json<T>`".to_owned())
        })?;
        serde_json::from_str(content.get()).map_err(|error| {
            TestFailure(format!(
                "the structured content cannot be deserialized: {error}: {content}"
            ))
        })
    }
}

impl TestOutcome<ReadResourceResult> {
    /// Returns all texts of the resource, joined by newlines.
    pub fn text(&self) -> String {
        let texts = self.result.contents.iter().filter_map(|contents| match contents {
            ResourceContents::Text(text) => Some(text.text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}

impl TestOutcome<GetPromptResult> {
    /// Returns all texts of the prompt's messages, joined by newlines.
    pub fn text(&self) -> String {
        let texts = self.result.messages.iter().filter_map(|message| match &message.content {
            ContentBlock::Text(text) => Some(text.text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}

/// Outcome of a cancelled call; see [`TestCall::cancel_after`].
///
/// [`TestCall::cancel_after`]: super::TestCall::cancel_after
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TestCancellation {
    /// Outcome of the handler after the cancellation. The client receives only a result without
    /// error.
    pub outcome: TestOutcome,
    /// Whether the task ends as `cancelled`. The task completes if the handler returns a result
    /// without error.
    pub is_cancelled: bool,
    /// Result of the cleanup. `None` if the tool has no cleanup or its task completed.
    pub cleanup: Option<Result<(), String>>,
}

/// Failure of a test call. The text contains a remedy.
#[derive(Debug)]
pub struct TestFailure(pub(super) String);

impl fmt::Display for TestFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TestFailure {}
