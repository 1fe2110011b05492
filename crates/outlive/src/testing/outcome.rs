//! Outcomes of calls that tests make.

use std::fmt;

use outlive_wire::{
    CallToolResult, ContentBlock, GetPromptResult, ReadResourceResult, ResourceContents,
};
use serde::de::DeserializeOwned;

/// A result that a test can ask for: of a tool, a resource or a prompt.
pub trait TestResult: sealed::Sealed {}

impl TestResult for CallToolResult {}
impl TestResult for GetPromptResult {}
impl TestResult for ReadResourceResult {}

pub(super) mod sealed {
    use outlive_protocol::MethodResult;
    use outlive_wire::{CallToolResult, GetPromptResult, ReadResourceResult};

    /// How a result is recognized.
    pub trait Sealed: Sized {
        fn read(result: MethodResult) -> Option<Self>;
    }

    impl Sealed for CallToolResult {
        fn read(result: MethodResult) -> Option<Self> {
            match result {
                MethodResult::Tool(result) => Some(result),
                _ => None,
            }
        }
    }

    impl Sealed for GetPromptResult {
        fn read(result: MethodResult) -> Option<Self> {
            match result {
                MethodResult::Prompt(result) => Some(result),
                _ => None,
            }
        }
    }

    impl Sealed for ReadResourceResult {
        fn read(result: MethodResult) -> Option<Self> {
            match result {
                MethodResult::Resource(result, _) => Some(result),
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
    /// The keys of the input requests, in the order of the requests.
    pub input_requests: Vec<String>,
    /// Number of times that the client came back with responses.
    pub rounds: usize,
}

impl TestOutcome<CallToolResult> {
    /// Returns all texts of the result, joined by line ends.
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
    /// If the tool failed, if it has no structured content, or if the content is not a `T`.
    pub fn structured<T: DeserializeOwned>(&self) -> Result<T, TestFailure> {
        if self.result.is_error == Some(true) {
            return Err(TestFailure(format!("the tool failed: {}", self.text())));
        }
        let content = self.result.structured_content.as_ref().ok_or_else(|| {
            TestFailure("the result has no structured content; return `Json<T>`".to_owned())
        })?;
        serde_json::from_str(content.get()).map_err(|error| {
            TestFailure(format!("the structured content is another type: {error}: {content}"))
        })
    }
}

impl TestOutcome<ReadResourceResult> {
    /// Returns all texts of the resource, joined by line ends.
    pub fn text(&self) -> String {
        let texts = self.result.contents.iter().filter_map(|contents| match contents {
            ResourceContents::Text(text) => Some(text.text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}

impl TestOutcome<GetPromptResult> {
    /// Returns all texts of the prompt's messages, joined by line ends.
    pub fn text(&self) -> String {
        let texts = self.result.messages.iter().filter_map(|message| match &message.content {
            ContentBlock::Text(text) => Some(text.text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}

/// Outcome of a call that was cancelled as a task is; see [`TestCall::cancel_after`].
///
/// [`TestCall::cancel_after`]: super::TestCall::cancel_after
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TestCancellation {
    /// What the handler returned after it was asked to stop. Only a result without error reaches the
    /// client.
    pub outcome: TestOutcome,
    /// Whether the task ends as `cancelled`. A handler that returns a result without error completes
    /// its task.
    pub is_cancelled: bool,
    /// How the cleanup ended; `None` if there was none, because the tool has none or its task
    /// completed.
    pub cleanup: Option<Result<(), String>>,
}

/// Why a call did not come to the end that a test can accept. The text says what to change.
#[derive(Debug)]
pub struct TestFailure(pub(super) String);

impl fmt::Display for TestFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TestFailure {}
