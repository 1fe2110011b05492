//! For tests of your own handlers: run them in memory, script the answers, lose their runs.
//!
//! ```
//! use outlive::{Form, server::{Durable, Result, Server}, testing::TestServer, tool};
//! use serde_json::json;
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema, Form)]
//! struct Approval { yes: bool }
//!
//! #[tool]
//! async fn deploy(cx: Durable, repo: String) -> Result<String> {
//!     let image: String = cx.step("build", async || Ok(format!("{repo}:1"))).await?;
//!     let approval: Approval = cx.elicit("approve", "Deploy?").await?;
//!     Ok(format!("{image}: {}", approval.yes))
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
//! let server = TestServer::new(Server::builder("test", "1").tool(deploy::tool()))?;
//! let played = server
//!     .call_tool("deploy", json!({"repo": "shop"}))
//!     .accept("approve", json!({"yes": true}))
//!     .crash_after_each()
//!     .await?;
//! assert_eq!(played.text(), "shop:1: true");
//! assert_eq!(played.input_requests, ["approve"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::{collections::BTreeMap, fmt, sync::Arc};

use bytes::Bytes;
use outlive_protocol::{
    Accepted, InputRequired, Message, MessageContext, MethodResult, Outcome, Principal,
};
use outlive_tasks::{CrashPoint, IntoKey};
use outlive_wire::{CallToolResult, ContentBlock, InputRequest, Method, Version};
use serde_json::{Value, json};

use crate::server::{BuildError, Server, ServerBuilder, TestHooks};

/// A server whose tools are called by a test.
#[derive(Debug)]
pub struct TestServer {
    server: Server,
    rehearsed: Arc<TestHooks>,
}

impl TestServer {
    /// Builds the server.
    ///
    /// # Errors
    ///
    /// As [`ServerBuilder::build`].
    pub fn new(builder: ServerBuilder) -> Result<Self, BuildError> {
        let rehearsed = Arc::<TestHooks>::default();
        let server = builder.test_hooks(&rehearsed).build()?;
        Ok(Self { server, rehearsed })
    }

    /// A call of a tool, with its arguments. The client can do everything that may be asked of it.
    pub fn call_tool(&self, name: impl Into<String>, arguments: Value) -> TestCall<'_> {
        let capabilities = json!({
            "elicitation": {"form": {}, "url": {}},
            "sampling": {"tools": {}, "context": {}},
            "roots": {},
        });
        TestCall {
            rehearsal: self,
            name: name.into(),
            arguments,
            capabilities,
            answers: BTreeMap::new(),
        }
    }
}

/// A call that a test makes, and what its client will answer.
#[derive(Clone, Debug)]
#[must_use]
pub struct TestCall<'a> {
    rehearsal: &'a TestServer,
    name: String,
    arguments: Value,
    capabilities: Value,
    /// By the key of the question: one for each time it is asked.
    answers: BTreeMap<String, Vec<Value>>,
}

/// What came of a call.
#[derive(Debug)]
#[non_exhaustive]
pub struct TestOutcome {
    /// The result.
    pub result: CallToolResult,
    /// The questions, in the order in which they were asked.
    pub input_requests: Vec<String>,
    /// How often the client came back.
    pub rounds: usize,
}

impl TestOutcome {
    /// All texts of the result, joined by line ends.
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self
            .result
            .content
            .iter()
            .filter_map(|block| match block {
                ContentBlock::Text(text) => Some(text.text.as_str()),
                _ => None,
            })
            .collect();
        texts.join("\n")
    }
}

/// Why a call did not come to the end that a test can accept. The text says what to change.
#[derive(Debug)]
pub struct TestFailure(String);

impl fmt::Display for TestFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TestFailure {}

impl TestCall<'_> {
    /// The user fills in a form, or agrees to open a URL.
    #[expect(clippy::needless_pass_by_value, reason = "tests write a `json!` where they need it")]
    pub fn accept(self, key: impl IntoKey, content: Value) -> Self {
        self.respond(key, json!({"action": "accept", "content": content}))
    }

    /// The user says no.
    pub fn decline(self, key: impl IntoKey) -> Self {
        self.respond(key, json!({"action": "decline"}))
    }

    /// The user closes the question without a word.
    pub fn cancel(self, key: impl IntoKey) -> Self {
        self.respond(key, json!({"action": "cancel"}))
    }

    /// The client answers as the protocol has it: for models and roots. Said more than once for a
    /// key, the answers are given one after the other, as often as the question is asked again.
    pub fn respond(mut self, key: impl IntoKey, answer: Value) -> Self {
        self.answers.entry(key.into_key().into_string()).or_default().push(answer);
        self
    }

    /// What the client can be asked, as a `ClientCapabilities` object; everything by default.
    pub fn capabilities(mut self, capabilities: Value) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Plays the call to its end.
    ///
    /// # Errors
    ///
    /// When a question has no answer in the script, the call is refused, or the handler does not
    /// come to something that it has recorded.
    pub async fn run(self) -> Result<TestOutcome, TestFailure> {
        self.play_with(None).await.map(|(played, ..)| played)
    }

    /// Plays the call, and loses the run right after this key is recorded, as a crash would.
    ///
    /// # Errors
    ///
    /// As [`TestCall::run`], and when the key is never recorded.
    pub async fn crash_after(self, key: impl IntoKey) -> Result<TestOutcome, TestFailure> {
        let key = key.into_key().into_string();
        let scene = self.clone();
        let (played, _, happened) = scene.play_with(Some(CrashPoint::After(key.clone()))).await?;
        match happened {
            true => Ok(played),
            false => Err(TestFailure(format!(
                "`{key}` was never recorded, so nothing could crash there; recorded were: {}",
                self.rehearsal.rehearsed.keys().join(", ")
            ))),
        }
    }

    /// Plays the call without a crash, and then once for every record it makes, each time losing
    /// the run after another one. Each time the handler runs once more when it has returned, over the
    /// journal of that very call, and must return the same: values that differ from call to call, such
    /// as random IDs, times or [`idempotency_key`](crate::server::Durable::idempotency_key), are fine in a step.
    ///
    /// # Errors
    ///
    /// As [`TestCall::run`], and when a handler returns something else over its own journal.
    pub async fn crash_after_each(self) -> Result<TestOutcome, TestFailure> {
        let (first, recorded, _) = self.clone().replay_with(None).await?;
        for count in 1..=recorded {
            let crash = Some(CrashPoint::AfterRecords(count));
            self.clone().replay_with(crash).await.map_err(|TestFailure(why)| {
                TestFailure(format!("after a crash at record {count} of {recorded}: {why}"))
            })?;
        }
        Ok(first)
    }

    /// Plays the call, and holds its result against that of one more run over its journal.
    async fn replay_with(
        self,
        crash: Option<CrashPoint>,
    ) -> Result<(TestOutcome, usize, bool), TestFailure> {
        let rehearsed = &self.rehearsal.rehearsed;
        rehearsed.plan(crash, true);
        let played = self.play_planned().await?;
        match rehearsed.differs() {
            None => Ok(played),
            Some((returned, again)) => Err(TestFailure(format!(
                "the handler returned {returned}, and {again} when it ran again over the same journal; do what differs in a step, and use what the step returns"
            ))),
        }
    }

    async fn play_with(
        self,
        crash: Option<CrashPoint>,
    ) -> Result<(TestOutcome, usize, bool), TestFailure> {
        self.rehearsal.rehearsed.plan(crash, false);
        self.play_planned().await
    }

    async fn play_planned(&self) -> Result<(TestOutcome, usize, bool), TestFailure> {
        let rehearsed = &self.rehearsal.rehearsed;
        let (mut asked, mut rounds) = (Vec::new(), 0);
        let mut params = json!({
            "name": self.name,
            "arguments": self.arguments,
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": Version::V2026_07_28.as_str(), // tidy: version is a value here
                "io.modelcontextprotocol/clientCapabilities": self.capabilities,
            },
        });
        let result = loop {
            let required = match self.call(&params).await? {
                Outcome::Complete(MethodResult::Tool(result)) => break result,
                Outcome::InputRequired(required) => required,
                other => return Err(TestFailure(format!("this is no end of a tool: {other:?}"))),
            };
            let InputRequired { requests, state, .. } = *required;
            let mut responses = serde_json::Map::new();
            for (name, request) in requests.0 {
                let answer = self.scripted(&name).ok_or_else(|| unanswered(&name, &request))?;
                responses.insert(name.clone(), answer.clone());
                asked.push(name);
            }
            params["requestState"] = state.into();
            params["inputResponses"] = responses.into();
            rounds += 1;
        };
        let (recorded, unused, happened) = rehearsed.report();
        match unused.is_empty() {
            true => Ok((TestOutcome { result, input_requests: asked, rounds }, recorded, happened)),
            false => Err(TestFailure(format!(
                "the handler did not come to what it had recorded: {}; is it the same function of its journal each time?",
                unused.join(", ")
            ))),
        }
    }

    /// The answer to a question, by its name: its key, and `#2` if it is asked for the second time.
    fn scripted(&self, name: &str) -> Option<&Value> {
        let (key, time): (&str, usize) = match name.rsplit_once('#') {
            Some((key, time)) if !key.ends_with('\\') => (key, time.parse().unwrap_or(1)),
            _ => (name, 1),
        };
        let answers = self.answers.get(key)?;
        answers.get(time - 1)
    }

    async fn call(&self, params: &Value) -> Result<Outcome, TestFailure> {
        let method = Method::ToolsCall.as_str();
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let arrival = MessageContext::of(Principal::LOCAL);
        let message = Bytes::from(message.to_string());
        let mut run = match self.rehearsal.server.endpoint().accept(&message, arrival) {
            Accepted::Call(run) => run,
            Accepted::Refused(refusal) => {
                return Err(TestFailure(String::from_utf8_lossy(&refusal.body).into_owned()));
            }
            other => return Err(TestFailure(format!("the call was not taken: {other:?}"))),
        };
        loop {
            match run.next().await {
                Some(Message::Last(Ok(outcome))) => return Ok(outcome),
                Some(Message::Last(Err(fault))) => return Err(TestFailure(fault.to_string())),
                Some(_) => {}
                None => return Err(TestFailure("the call was cancelled".to_owned())),
            }
        }
    }
}

/// What to add to the script.
fn unanswered(name: &str, request: &InputRequest) -> TestFailure {
    let asked = serde_json::to_value(request).unwrap_or_default();
    let (message, add) = match asked["params"]["message"].as_str() {
        Some(message) => (format!(" (\"{message}\")"), "accept"),
        None => (String::new(), "answer"),
    };
    TestFailure(format!(
        "`{name}` is asked{message}, and the script has no answer; add `.{add}(\"{name}\", json!({{…}}))`"
    ))
}
