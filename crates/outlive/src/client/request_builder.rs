//! Requests before they are sent: parameters, timeouts and progress.

use std::{collections::BTreeMap, future::IntoFuture, sync::Arc, time::Duration};

use outlive_protocol::era::client::name_in;
use outlive_wire::{
    CompleteRequestParams, CompleteResult, CompletionArgument, CompletionContext,
    CompletionReference, GetPromptRequestParams, GetPromptResult, LoggingLevel, Meta, Method,
    RawJson, ReadResourceRequestParams, ReadResourceResult,
};
use serde::Serialize;
use serde_json::{Map, Value, value::RawValue};

use super::{
    attempt::{Progress, Waiting, Wanted, read},
    cached::Cached,
    core::{Client, Core},
    error::{ClientError, Error, Result},
    send::{Boxed, CallOutcome, converse, send},
};

/// A request that is sent when it is awaited. Dropping the future before the response cancels it.
#[derive(Clone, Debug)]
#[must_use = "nothing is sent until it is awaited"]
pub struct RequestBuilder<K> {
    pub(crate) client: Client,
    pub(crate) kind: K,
    pub(crate) waiting: Waiting,
}

/// Kind of a request: tool call, resource, prompt, completion or any method. Sealed.
pub trait RequestKind: sealed::Run + Send + Sized + 'static {}

impl<K: sealed::Run + Send + Sized + 'static> RequestKind for K {}

pub(crate) mod sealed {
    use std::sync::Arc;

    use super::{Boxed, Core, Waiting};

    /// Sends a request of one kind and returns its result.
    pub trait Run {
        /// Result of the request.
        type Output: Send;

        fn run(self, call: Parts) -> Boxed<'static, Self::Output>;
    }

    /// Client and options of a request.
    #[derive(Debug)]
    pub struct Parts {
        pub(crate) core: Arc<Core>,
        pub(crate) waiting: Waiting,
    }
}

use sealed::{Parts, Run};

impl<K: RequestKind> RequestBuilder<K> {
    pub(crate) fn new(client: &Client, kind: K) -> Self {
        let waiting = Waiting::new(&client.core);
        Self { client: client.clone(), kind, waiting }
    }

    /// Sets the timeout of one request. A task may take longer.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.waiting.timeout = Some(timeout);
        self
    }

    /// Disables the timeout. `max_total_timeout` still applies.
    pub fn no_timeout(mut self) -> Self {
        self.waiting.timeout = None;
        self
    }

    /// Sets the total timeout, regardless of progress.
    pub fn max_total_timeout(mut self, total: Duration) -> Self {
        self.waiting.total = total;
        self
    }

    /// Sets a callback for progress, and asks the server to send progress notifications.
    pub fn on_progress(mut self, hear: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.waiting.on_progress = Some(Arc::new(hear));
        self
    }

    /// Sets whether progress restarts the timeout. Enabled by default.
    pub fn reset_timeout_on_progress(mut self, enabled: bool) -> Self {
        self.waiting.progress_resets = enabled;
        self
    }

    /// Adds an entry to the request's `_meta`.
    pub fn meta(mut self, key: impl AsRef<str>, value: impl Into<Value>) -> Self {
        self.waiting.add_meta(key.as_ref(), &value.into().to_string());
        self
    }

    /// Adds a W3C `traceparent`, so that the request is part of a trace.
    pub fn traceparent(self, traceparent: impl Into<String>) -> Self {
        self.meta(Meta::TRACEPARENT, traceparent.into())
    }

    /// Requests log messages of at least this level during the call; 2026-07-28.
    pub fn log_level(self, level: LoggingLevel) -> Self {
        self.meta(Meta::LOG_LEVEL, level.as_str())
    }
}

impl<K: RequestKind> IntoFuture for RequestBuilder<K> {
    type Output = Result<K::Output>;
    type IntoFuture = Boxed<'static, K::Output>;

    fn into_future(self) -> Self::IntoFuture {
        self.kind.run(Parts { core: self.client.core, waiting: self.waiting })
    }
}

/// Serialized parameters, or the reason why they are invalid.
pub(crate) type Params = Result<String, String>;

/// Serializes parameters, which must be an object.
pub(crate) fn object(params: &impl Serialize) -> Params {
    let text = serde_json::to_string(params).map_err(|error| error.to_string())?;
    match text.as_bytes() {
        [b'{', ..] => Ok(text),
        b"null" => Ok("{}".to_owned()),
        _ => Err(format!("got {}", short(&text))),
    }
}

fn short(text: &str) -> &str {
    text.char_indices().nth(40).map_or(text, |(end, _)| &text[..end])
}

pub(crate) fn given(params: Params) -> Result<String> {
    params.map_err(|why| ClientError::BadArguments(why).into())
}

/// Request to read a resource.
#[derive(Clone, Debug)]
pub struct ReadResource(pub(crate) String);

impl Run for ReadResource {
    type Output = ReadResourceResult;

    fn run(self, call: Parts) -> Boxed<'static, ReadResourceResult> {
        let params = ReadResourceRequestParams {
            uri: self.0.clone(),
            input_responses: None,
            request_state: None,
            meta: None,
        };
        Box::pin(async move {
            let mut wanted =
                Wanted::new(&call.core, Method::ResourcesRead, given(object(&params))?)
                    .named(self.0);
            wanted.waiting = call.waiting;
            let found = Cached::fetch(&call.core, wanted).await.map_err(not_found)?;
            read(found.text())
        })
    }
}

/// Maps the error codes that servers use for a missing resource to [`ServerErrorKind::NotFound`].
fn not_found(mut error: Error) -> Error {
    use super::error::ServerErrorKind;
    if let Error::Server(refused) = &mut error {
        let missing = refused.kind == ServerErrorKind::Request
            && refused.code == outlive_wire::code::INVALID_PARAMS
            && refused.data.as_ref().is_some_and(|data| data.get().contains("\"uri\""));
        if missing {
            refused.kind = ServerErrorKind::NotFound;
        }
    }
    error
}

/// Request to get a prompt.
#[derive(Clone, Debug)]
pub struct GetPrompt {
    name: String,
    arguments: BTreeMap<String, String>,
}

impl GetPrompt {
    pub(crate) fn new(name: String) -> Self {
        Self { name, arguments: BTreeMap::new() }
    }
}

impl RequestBuilder<GetPrompt> {
    /// Adds an argument.
    pub fn arg(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.kind.arguments.insert(name.into(), value.into());
        self
    }
}

impl Run for GetPrompt {
    type Output = GetPromptResult;

    fn run(self, call: Parts) -> Boxed<'static, GetPromptResult> {
        let params = GetPromptRequestParams {
            name: self.name.clone(),
            arguments: (!self.arguments.is_empty()).then_some(self.arguments),
            input_responses: None,
            request_state: None,
            meta: None,
        };
        Box::pin(async move {
            let params = given(object(&params))?;
            let mut wanted = Wanted::new(&call.core, Method::PromptsGet, params).named(self.name);
            wanted.waiting = call.waiting;
            complete(converse(&call.core, wanted).await?)
        })
    }
}

/// Request to complete an argument.
#[derive(Clone, Debug)]
pub struct Complete {
    params: CompleteRequestParams,
}

impl Complete {
    pub(crate) fn new(reference: CompletionReference, name: String, value: String) -> Self {
        let argument = CompletionArgument { name, value };
        Self { params: CompleteRequestParams { reference, argument, context: None, meta: None } }
    }
}

impl RequestBuilder<Complete> {
    /// Sets the value of another argument that is already known.
    pub fn with(mut self, argument: impl Into<String>, value: impl Into<String>) -> Self {
        let context = self.kind.params.context.get_or_insert_with(CompletionContext::default);
        context.arguments.get_or_insert_default().insert(argument.into(), value.into());
        self
    }
}

impl Run for Complete {
    type Output = outlive_wire::Completion;

    fn run(self, call: Parts) -> Boxed<'static, outlive_wire::Completion> {
        Box::pin(async move {
            let mut wanted =
                Wanted::new(&call.core, Method::Complete, given(object(&self.params))?);
            wanted.waiting = call.waiting;
            let result: CompleteResult = complete(converse(&call.core, wanted).await?)?;
            Ok(result.completion)
        })
    }
}

/// Request with any method.
#[derive(Clone, Debug)]
pub struct RawRequest {
    method: String,
    params: Params,
    is_verbatim: bool,
}

impl RawRequest {
    pub(crate) fn new(method: String, params: &impl Serialize) -> Self {
        Self { method, params: object(params), is_verbatim: false }
    }
}

impl RequestBuilder<RawRequest> {
    /// Returns the result unchanged, also if a server of 2026-07-28 requests input. The caller then
    /// sends the next round itself.
    pub fn raw_result(mut self) -> Self {
        self.kind.is_verbatim = true;
        self
    }
}

impl Run for RawRequest {
    type Output = RawJson;

    fn run(self, call: Parts) -> Boxed<'static, RawJson> {
        Box::pin(async move {
            let (params, meta) = split_meta(&given(self.params)?)?;
            let mut waiting = call.waiting;
            for (key, value) in meta {
                waiting.add_meta(&key, &value.to_string());
            }
            let method = Method::parse(&self.method);
            let name = method.and_then(|method| name_in(method, &params));
            let wanted = Wanted {
                method: self.method.into(),
                params,
                name,
                repeated: Vec::new(),
                holds_tasks: method.is_some_and(is_about_tasks),
                waiting,
            };
            if self.is_verbatim {
                return send(&call.core, &wanted).await?.read();
            }
            complete(converse(&call.core, wanted).await?)
        })
    }
}

/// Returns whether a request must declare task support.
pub(crate) fn is_about_tasks(method: Method) -> bool {
    matches!(method, Method::TasksGet | Method::TasksUpdate | Method::TasksCancel)
}

/// Removes `_meta` from the parameters, because the codec writes it.
fn split_meta(params: &str) -> Result<(String, Map<String, Value>)> {
    #[derive(serde::Deserialize)]
    struct Has<'a> {
        #[serde(borrow, rename = "_meta")]
        meta: Option<&'a RawValue>,
    }
    let bad = |error: serde_json::Error| Error::from(ClientError::BadArguments(error.to_string()));
    let has: Has<'_> = serde_json::from_str(params).map_err(bad)?;
    if has.meta.is_none() {
        return Ok((params.to_owned(), Map::new()));
    }
    let mut members: Map<String, Value> = serde_json::from_str(params).map_err(bad)?;
    let meta = match members.remove("_meta") {
        Some(Value::Object(meta)) => meta,
        _ => return Err(ClientError::BadArguments("`_meta` is not an object".to_owned()).into()),
    };
    Ok((Value::Object(members).to_string(), meta))
}

/// Deserializes the result of a call that cannot be a task.
pub(crate) fn complete<T: serde::de::DeserializeOwned>(outcome: CallOutcome) -> Result<T> {
    match outcome {
        CallOutcome::Complete(answered) => answered.read(),
        CallOutcome::Task(..) => {
            Err(Error::broke("it returned a task for a request that cannot be a task"))
        }
    }
}
