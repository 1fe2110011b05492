//! Calls of a test.

use std::{collections::BTreeMap, marker::PhantomData};

use bytes::Bytes;
use outlive_protocol::{Accepted, InputRequired, Message, MessageContext, Outcome, Principal};
use outlive_tasks::{CrashPoint, IntoKey};
use outlive_wire::{
    CallToolResult, GetPromptResult, InputRequest, Method, ReadResourceResult, Version,
};
use serde_json::{Map, Value, json};

use super::{
    outcome::{TestCancellation, TestFailure, TestOutcome, TestResult},
    server::TestServer,
};

/// A call of a test, with the scripted responses of its client.
#[derive(Clone, Debug)]
#[must_use]
pub struct TestCall<'a, R = CallToolResult> {
    server: &'a TestServer,
    method: Method,
    params: Value,
    capabilities: Value,
    /// Responses by key of the input request: one for each issue.
    responses: BTreeMap<String, Vec<Value>>,
    is_strict: bool,
    result: PhantomData<fn() -> R>,
}

/// Outcome of a call, with the report of the test hooks.
struct Played<R> {
    outcome: TestOutcome<R>,
    /// Number of recorded journal entries.
    recorded: usize,
    /// Whether the planned crash or cancellation happened.
    happened: bool,
}

impl TestServer {
    /// Prepares a tool call. The client declares every capability.
    #[expect(clippy::needless_pass_by_value, reason = "tests write a `json!` where they need it")]
    pub fn call_tool(
        &self,
        name: impl Into<String>,
        arguments: Value,
    ) -> TestCall<'_, CallToolResult> {
        let params = json!({"name": name.into(), "arguments": arguments});
        TestCall::new(self, Method::ToolsCall, params)
    }

    /// Prepares to read a resource, also of a template.
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

    /// Prepares to get a prompt with its arguments, which are strings.
    #[expect(clippy::needless_pass_by_value, reason = "tests write a `json!` where they need it")]
    pub fn get_prompt(
        &self,
        name: impl Into<String>,
        arguments: Value,
    ) -> TestCall<'_, GetPromptResult> {
        let params = json!({"name": name.into(), "arguments": arguments});
        TestCall::new(self, Method::PromptsGet, params)
    }
}

impl<'a, R: TestResult> TestCall<'a, R> {
    pub(super) fn new(server: &'a TestServer, method: Method, params: Value) -> Self {
        let capabilities = json!({
            "elicitation": {"form": {}, "url": {}},
            "sampling": {"tools": {}, "context": {}},
            "roots": {},
        });
        let (responses, is_strict) = (BTreeMap::new(), false);
        Self { server, method, params, capabilities, responses, is_strict, result: PhantomData }
    }

    /// Responds to an elicitation with `accept`: the user fills in a form, or agrees to open a URL.
    #[expect(clippy::needless_pass_by_value, reason = "tests write a `json!` where they need it")]
    pub fn accept(self, key: impl IntoKey, content: Value) -> Self {
        self.respond(key, json!({"action": "accept", "content": content}))
    }

    /// Responds to an elicitation with `decline`.
    pub fn decline(self, key: impl IntoKey) -> Self {
        self.respond(key, json!({"action": "decline"}))
    }

    /// Responds to an elicitation with `cancel`: the user closes it without a decision.
    pub fn cancel(self, key: impl IntoKey) -> Self {
        self.respond(key, json!({"action": "cancel"}))
    }

    /// Responds with a result object of the protocol, for sampling and roots. Several responses for
    /// one key are used in order, one for each issue of the input request.
    pub fn respond(mut self, key: impl IntoKey, response: Value) -> Self {
        self.responses.entry(key.into_key().into_string()).or_default().push(response);
        self
    }

    /// Sets the `ClientCapabilities` of the client. By default it declares all.
    pub fn capabilities(mut self, capabilities: Value) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Fails the test if a scripted response is not used.
    pub fn strict(mut self) -> Self {
        self.is_strict = true;
        self
    }

    /// Runs the call to its end.
    ///
    /// # Errors
    ///
    /// If an input request has no response, if the server returns a protocol error, or if a replay
    /// does not reach a recorded journal entry.
    pub async fn run(self) -> Result<TestOutcome<R>, TestFailure> {
        self.server.hooks.plan(None, false);
        self.play().await.map(|played| played.outcome)
    }

    /// Runs the call and drops the run right after `key` is recorded, like a crash.
    ///
    /// # Errors
    ///
    /// Same as [`TestCall::run`], and if the key is never recorded.
    pub async fn crash_after(self, key: impl IntoKey) -> Result<TestOutcome<R>, TestFailure> {
        let key = key.into_key().into_string();
        self.server.hooks.plan(Some(CrashPoint::After(key.clone())), false);
        let played = self.play().await?;
        self.must_have_happened(&key, &played)?;
        Ok(played.outcome)
    }

    /// Runs the call without a crash, and then once per recorded journal entry with a crash after
    /// that entry. After each run, replays the handler over the journal and compares the results.
    /// Values that differ between calls, such as random IDs, times or
    /// [`idempotency_key`](crate::server::Durable::idempotency_key), belong in a step.
    ///
    /// # Errors
    ///
    /// Same as [`TestCall::run`], and if a replay returns another result.
    pub async fn crash_after_each(self) -> Result<TestOutcome<R>, TestFailure> {
        let first = self.replay(None).await?;
        let recorded = first.recorded;
        for count in 1..=recorded {
            let crash = Some(CrashPoint::AfterRecords(count));
            self.replay(crash).await.map_err(|TestFailure(reason)| {
                TestFailure(format!("after a crash at entry {count} of {recorded}: {reason}"))
            })?;
        }
        Ok(first.outcome)
    }

    /// Runs the call and compares its result with a replay over its journal.
    async fn replay(&self, crash: Option<CrashPoint>) -> Result<Played<R>, TestFailure> {
        let hooks = &self.server.hooks;
        hooks.plan(crash, true);
        let played = self.play().await?;
        match hooks.differs() {
            None => Ok(played),
            Some((returned, again)) => Err(TestFailure(format!(
                "the handler returned {returned}, but {again} in a replay over the same journal; move the nondeterministic code into a step"
            ))),
        }
    }

    async fn play(&self) -> Result<Played<R>, TestFailure> {
        let (mut asked, mut rounds) = (Vec::new(), 0);
        let mut params = self.params.clone();
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": Version::V2026_07_28.as_str(), // tidy: version is a value here
            "io.modelcontextprotocol/clientCapabilities": self.capabilities,
        });
        let result = loop {
            let required = match self.call(&params).await? {
                Outcome::Complete(result) => break R::read(result),
                Outcome::InputRequired(required) => required,
                other => return Err(TestFailure(format!("the call did not complete: {other:?}"))),
            };
            let InputRequired { requests, state, .. } = *required;
            let mut responses = Map::new();
            for (name, request) in requests.0 {
                let response = self.scripted(&name).ok_or_else(|| missing(&name, &request))?;
                responses.insert(name.clone(), response.clone());
                asked.push(name);
            }
            params["requestState"] = state.into();
            params["inputResponses"] = responses.into();
            rounds += 1;
        };
        let result =
            result.ok_or_else(|| TestFailure("the result belongs to another method".to_owned()))?;
        self.check(&asked)?;
        let (recorded, unused, happened) = self.server.hooks.report();
        match unused.is_empty() {
            true => {
                let outcome = TestOutcome { result, input_requests: asked, rounds };
                Ok(Played { outcome, recorded, happened })
            }
            false => Err(TestFailure(format!(
                "the replay did not reach these journal entries: {}; make the handler deterministic",
                unused.join(", ")
            ))),
        }
    }

    /// Checks that every response was used, if the call is strict.
    fn check(&self, asked: &[String]) -> Result<(), TestFailure> {
        for (key, responses) in self.responses.iter().filter(|_| self.is_strict) {
            let times = asked.iter().filter(|name| key_of(name).0 == key).count();
            if times < responses.len() {
                return Err(TestFailure(format!(
                    "`{key}` has {} responses but was requested {times} times; remove the unused responses",
                    responses.len()
                )));
            }
        }
        Ok(())
    }

    /// Returns the scripted response to an input request.
    fn scripted(&self, name: &str) -> Option<&Value> {
        let (key, time) = key_of(name);
        self.responses.get(key)?.get(time - 1)
    }

    fn must_have_happened(&self, key: &str, played: &Played<R>) -> Result<(), TestFailure> {
        match played.happened {
            true => Ok(()),
            false => Err(TestFailure(format!(
                "`{key}` was never recorded; the journal has these keys: {}",
                self.server.hooks.keys().join(", ")
            ))),
        }
    }

    async fn call(&self, params: &Value) -> Result<Outcome, TestFailure> {
        let method = self.method.as_str();
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let arrival = MessageContext::of(Principal::LOCAL);
        let message = Bytes::from(message.to_string());
        let mut run = match self.server.server.endpoint().accept(&message, arrival) {
            Accepted::Call(run) => run,
            Accepted::Refused(refusal) => {
                return Err(TestFailure(String::from_utf8_lossy(&refusal.body).into_owned()));
            }
            other => return Err(TestFailure(format!("the server rejected the call: {other:?}"))),
        };
        loop {
            match run.next().await {
                Some(Message::Last(Ok(outcome))) => return Ok(outcome),
                Some(Message::Last(Err(error))) => return Err(TestFailure(error.to_string())),
                Some(_) => {}
                None => return Err(TestFailure("the call was cancelled".to_owned())),
            }
        }
    }
}

impl TestCall<'_, CallToolResult> {
    /// Runs the call and cancels it right after `key` is recorded, like a client that cancels a
    /// task. Later steps, timers and input requests fail with
    /// [`DurableError::TaskCancelled`](crate::server::durable::DurableError::TaskCancelled), except
    /// under [`Durable::shielded`](crate::server::Durable::shielded). If the handler then fails,
    /// the [`cleanup`](crate::server::Tool::cleanup) of the tool runs.
    ///
    /// ```
    /// use outlive::{
    ///     server::{Durable, Result, Server, durable::Cleanup, tasks::TaskConfig},
    ///     testing::TestServer,
    ///     tool,
    /// };
    /// use serde_json::json;
    ///
    /// #[tool(task = "auto")]
    /// async fn order(cx: Durable) -> Result<String> {
    ///     let shelf: u32 = cx.step("reserve", async || Ok(7)).await?;
    ///     cx.step("pack", async || Ok(())).await?;
    ///     Ok(format!("packed from shelf {shelf}"))
    /// }
    ///
    /// async fn release_shelf(task: Cleanup) -> Result<()> {
    ///     assert_eq!(task.get::<u32>("reserve")?, Some(7));
    ///     Ok(())
    /// }
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// let builder = Server::builder("test", "1").tasks(TaskConfig::in_memory());
    /// let server = TestServer::new(builder.tool(order::tool().cleanup(release_shelf)))?;
    /// let cancelled = server.call_tool("order", json!({})).cancel_after("reserve").await?;
    /// assert!(cancelled.is_cancelled);
    /// assert_eq!(cancelled.cleanup, Some(Ok(())));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Same as [`TestCall::run`], and if the key is never recorded.
    pub async fn cancel_after(self, key: impl IntoKey) -> Result<TestCancellation, TestFailure> {
        let key = key.into_key().into_string();
        self.server.hooks.plan_cancel(key.clone());
        let played = self.play().await?;
        self.must_have_happened(&key, &played)?;
        let is_cancelled = played.outcome.result.is_error == Some(true);
        let cleanup = match is_cancelled {
            true => self.server.server.clean_up_test(),
            false => None,
        };
        let cleanup = match cleanup {
            Some(cleanup) => Some(cleanup.await),
            None => None,
        };
        Ok(TestCancellation { outcome: played.outcome, is_cancelled, cleanup })
    }
}

/// Returns the key of an input request and its issue number: `#2` is the second issue.
fn key_of(name: &str) -> (&str, usize) {
    match name.rsplit_once('#') {
        Some((key, time)) if !key.ends_with('\\') => (key, time.parse().unwrap_or(1)),
        _ => (name, 1),
    }
}

/// Returns the failure for an input request without a scripted response.
fn missing(name: &str, request: &InputRequest) -> TestFailure {
    let asked = serde_json::to_value(request).unwrap_or_default();
    let (message, add) = match asked["params"]["message"].as_str() {
        Some(message) => (format!(" (\"{message}\")"), "accept"),
        None => (String::new(), "respond"),
    };
    TestFailure(format!(
        "input request `{name}`{message} has no scripted response; add `.{add}(\"{name}\", json!({{…}}))`"
    ))
}
