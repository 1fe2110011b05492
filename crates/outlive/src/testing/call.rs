//! A call that a test makes.

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

/// A call that a test makes, with the responses of its client.
#[derive(Clone, Debug)]
#[must_use]
pub struct TestCall<'a, R = CallToolResult> {
    server: &'a TestServer,
    method: Method,
    params: Value,
    capabilities: Value,
    /// By the key of the input request: one for each time it is issued.
    responses: BTreeMap<String, Vec<Value>>,
    is_strict: bool,
    result: PhantomData<fn() -> R>,
}

/// What a call came to, and what the hooks say about it.
struct Played<R> {
    outcome: TestOutcome<R>,
    /// How many entries it recorded.
    recorded: usize,
    /// Whether the crash or the cancellation happened.
    happened: bool,
}

impl TestServer {
    /// Prepares a call of a tool. The client declares every capability.
    #[expect(clippy::needless_pass_by_value, reason = "tests write a `json!` where they need it")]
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

    /// Responds to an elicitation: the user fills in a form, or agrees to open a URL.
    #[expect(clippy::needless_pass_by_value, reason = "tests write a `json!` where they need it")]
    pub fn accept(self, key: impl IntoKey, content: Value) -> Self {
        self.respond(key, json!({"action": "accept", "content": content}))
    }

    /// Responds to an elicitation: the user declines.
    pub fn decline(self, key: impl IntoKey) -> Self {
        self.respond(key, json!({"action": "decline"}))
    }

    /// Responds to an elicitation: the user closes it without a choice.
    pub fn cancel(self, key: impl IntoKey) -> Self {
        self.respond(key, json!({"action": "cancel"}))
    }

    /// Responds as the protocol has it: for models and roots. Several responses for one key are given
    /// one after the other, as often as the input request is issued.
    pub fn respond(mut self, key: impl IntoKey, response: Value) -> Self {
        self.responses.entry(key.into_key().into_string()).or_default().push(response);
        self
    }

    /// Sets what the client declares, as a `ClientCapabilities` object; everything by default.
    pub fn capabilities(mut self, capabilities: Value) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Fails the test if a response is never asked for.
    pub fn strict(mut self) -> Self {
        self.is_strict = true;
        self
    }

    /// Makes the call, to its end.
    ///
    /// # Errors
    ///
    /// If an input request has no response, if the server returns a protocol error, or if the handler
    /// does not reach an entry that it has recorded.
    pub async fn run(self) -> Result<TestOutcome<R>, TestFailure> {
        self.server.hooks.plan(None, false);
        self.play().await.map(|played| played.outcome)
    }

    /// Makes the call, and loses the run right after this key is recorded, as a crash would.
    ///
    /// # Errors
    ///
    /// As [`TestCall::run`], and if the key is never recorded.
    pub async fn crash_after(self, key: impl IntoKey) -> Result<TestOutcome<R>, TestFailure> {
        let key = key.into_key().into_string();
        self.server.hooks.plan(Some(CrashPoint::After(key.clone())), false);
        let played = self.play().await?;
        self.must_have_happened(&key, &played)?;
        Ok(played.outcome)
    }

    /// Makes the call without a crash, and then once for every entry it records, each time losing
    /// the run after another one. Each time the handler runs once more when it has returned, over the
    /// journal of that very call, and must return the same: values that differ from call to call, such
    /// as random IDs, times or [`idempotency_key`](crate::server::Durable::idempotency_key), are fine in a step.
    ///
    /// # Errors
    ///
    /// As [`TestCall::run`], and if a handler returns something else over its own journal.
    pub async fn crash_after_each(self) -> Result<TestOutcome<R>, TestFailure> {
        let first = self.replay(None).await?;
        let recorded = first.recorded;
        for count in 1..=recorded {
            let crash = Some(CrashPoint::AfterRecords(count));
            self.replay(crash).await.map_err(|TestFailure(reason)| {
                TestFailure(format!("after a crash at record {count} of {recorded}: {reason}"))
            })?;
        }
        Ok(first.outcome)
    }

    /// Makes the call, and compares its result with that of one more run over its journal.
    async fn replay(&self, crash: Option<CrashPoint>) -> Result<Played<R>, TestFailure> {
        let hooks = &self.server.hooks;
        hooks.plan(crash, true);
        let played = self.play().await?;
        match hooks.differs() {
            None => Ok(played),
            Some((returned, again)) => Err(TestFailure(format!(
                "the handler returned {returned}, and {again} when it ran again over the same journal; do what differs in a step, and use what the step returns"
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
            result.ok_or_else(|| TestFailure("the result is of another kind".to_owned()))?;
        self.check(&asked)?;
        let (recorded, unused, happened) = self.server.hooks.report();
        match unused.is_empty() {
            true => {
                let outcome = TestOutcome { result, input_requests: asked, rounds };
                Ok(Played { outcome, recorded, happened })
            }
            false => Err(TestFailure(format!(
                "the handler did not come to what it had recorded: {}; is it the same function of its journal each time?",
                unused.join(", ")
            ))),
        }
    }

    /// Checks that every response was asked for, if the call is strict.
    fn check(&self, asked: &[String]) -> Result<(), TestFailure> {
        for (key, responses) in self.responses.iter().filter(|_| self.is_strict) {
            let times = asked.iter().filter(|name| key_of(name).0 == key).count();
            if times < responses.len() {
                return Err(TestFailure(format!(
                    "`{key}` has {} responses and was asked for {times} times; remove what is not needed",
                    responses.len()
                )));
            }
        }
        Ok(())
    }

    /// Returns the response to an input request, by its name.
    fn scripted(&self, name: &str) -> Option<&Value> {
        let (key, time) = key_of(name);
        self.responses.get(key)?.get(time - 1)
    }

    fn must_have_happened(&self, key: &str, played: &Played<R>) -> Result<(), TestFailure> {
        match played.happened {
            true => Ok(()),
            false => Err(TestFailure(format!(
                "`{key}` was never recorded, so nothing could happen there; recorded were: {}",
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
            other => return Err(TestFailure(format!("the call was not accepted: {other:?}"))),
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
    /// Makes the call, and cancels it right after this key is recorded, as a client cancels a task. The
    /// steps, timers and input requests after it fail with
    /// [`DurableError::TaskCancelled`](crate::server::durable::DurableError::TaskCancelled), except under
    /// [`Durable::shielded`](crate::server::Durable::shielded). If the handler fails then, the
    /// [`cleanup`](crate::server::Tool::cleanup) of the tool runs.
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
    /// async fn give_back(task: Cleanup) -> Result<()> {
    ///     assert_eq!(task.get::<u32>("reserve")?, Some(7));
    ///     Ok(())
    /// }
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// let builder = Server::builder("test", "1").tasks(TaskConfig::in_memory());
    /// let server = TestServer::new(builder.tool(order::tool().cleanup(give_back)))?;
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
    /// As [`TestCall::run`], and if the key is never recorded.
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

/// Returns the key of an input request, and which time it is issued: `#2` for the second.
fn key_of(name: &str) -> (&str, usize) {
    match name.rsplit_once('#') {
        Some((key, time)) if !key.ends_with('\\') => (key, time.parse().unwrap_or(1)),
        _ => (name, 1),
    }
}

/// Returns what to add to the script.
fn missing(name: &str, request: &InputRequest) -> TestFailure {
    let asked = serde_json::to_value(request).unwrap_or_default();
    let (message, add) = match asked["params"]["message"].as_str() {
        Some(message) => (format!(" (\"{message}\")"), "accept"),
        None => (String::new(), "respond"),
    };
    TestFailure(format!(
        "`{name}` is asked{message}, and the script has no response; add `.{add}(\"{name}\", json!({{…}}))`"
    ))
}
