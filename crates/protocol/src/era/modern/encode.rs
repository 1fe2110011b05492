//! Encodes the messages of a run for 2026-07-28.
//!
//! Every result has a `resultType` and the server info. Lists and resource contents have cache
//! hints. The start of a result is constant; only the rest is serialized.

use std::sync::Arc;

use outlive_wire::{
    CacheHints, InputRequest, InputRequiredResult, Meta, Method, OrderedMap, RawJson, code,
};
use serde::Serialize;
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

use super::{
    extensions::{PARTIALS, TASKS},
    partial,
    task::{Task, TaskNotificationParams},
};
use crate::{
    Call, Change, Era, Frame, InputRequired, Message, MethodResult, Notify, Outcome, Profile,
    ProtocolError, RelayedKind, RelayedResult, ServerDescription, TaskView,
    era::{
        error::{self, put},
        input, notify, tool_result,
    },
};

/// `resultType` of a complete result.
const COMPLETE: &str = r#""resultType":"complete""#;

/// Start of `_meta`. Left open, so that a result can add keys.
const META: &str = r#","_meta":{"#;

pub(super) fn message(
    call: &Call,
    message: Message,
    profile: &Profile,
    out: &mut Vec<u8>,
) -> Frame {
    match message {
        Message::Notify(notify) => tell(call, notify, out),
        // A modern call has exactly one response.
        Message::Partial(_) => Frame::Silent,
        Message::Last(Ok(Outcome::Complete(answer))) => {
            complete(call, answer, profile, out);
            Frame::End { status: 200 }
        }
        Message::Last(Ok(Outcome::InputRequired(required))) => {
            input_required(call, *required, profile, out);
            Frame::End { status: 200 }
        }
        Message::Last(Ok(Outcome::Task(task))) => {
            out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
            out.extend_from_slice(call.id().as_bytes());
            out.extend_from_slice(br#","result":{"#);
            let head = Head { profile, kind: Some(r#""task""#), cache: None, subscription: None };
            head.write(None, &Task::created(&task), out);
            out.extend_from_slice(b"}}");
            Frame::End { status: 200 }
        }
        Message::Last(Err(fault)) => {
            Frame::End { status: error_response(Some(call.id()), &fault, profile, out) }
        }
    }
}

pub(super) fn error_response(
    id: Option<&str>,
    fault: &ProtocolError,
    profile: &Profile,
    out: &mut Vec<u8>,
) -> u16 {
    let (code, data, status) = match fault {
        ProtocolError::HeaderMismatch(_) => (code::HEADER_MISMATCH, None, 400),
        ProtocolError::MissingCapability { required } => {
            (code::MISSING_CAPABILITY, required_data(required), 400)
        }
        ProtocolError::UnsupportedProtocolVersion { requested, .. } => {
            (code::UNSUPPORTED_VERSION, supported_data(profile, requested), 400)
        }
        _ => {
            let (code, data) = error::common(fault);
            (code, data, status(fault))
        }
    };
    error::write(id, code, fault, data, out);
    status
}

/// Writes the cancellation that ends a subscription on stdio, besides the response. The
/// specification requires both.
pub(super) fn trailer(call: &Call, out: &mut Vec<u8>) -> bool {
    if call.method() != Some(Method::Listen) {
        return false;
    }
    out.extend_from_slice(br#"{"jsonrpc":"2.0","method":""#);
    out.extend_from_slice(Method::Cancelled.as_str().as_bytes());
    out.extend_from_slice(br#"","params":{"requestId":"#);
    out.extend_from_slice(call.id().as_bytes());
    out.extend_from_slice(br#","reason":"the server is shutting down"}}"#);
    true
}

fn status(fault: &ProtocolError) -> u16 {
    match fault {
        ProtocolError::MethodNotFound { .. } => 404,
        ProtocolError::Parse(_) | ProtocolError::InvalidRequest(_) => 400,
        ProtocolError::MissingScopes { .. } => 403,
        ProtocolError::RateLimited { .. } | ProtocolError::OverLimit { .. } => 429,
        ProtocolError::Unavailable { .. } => 503,
        _ => 200,
    }
}

fn complete(call: &Call, answer: MethodResult, profile: &Profile, out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(call.id().as_bytes());
    out.extend_from_slice(br#","result":{"#);
    let head = Head { profile, kind: None, cache: None, subscription: None };
    match answer {
        MethodResult::Tool(mut result) => {
            let meta = result.meta.take();
            head.begin(meta.as_ref(), out);
            out.push(b',');
            tool_result::members(&result, out);
        }
        MethodResult::Empty => head.write(None, &Nothing {}, out),
        MethodResult::Identity(identity) => discovered(&head, *identity, out),
        MethodResult::Tools(mut page) => {
            for tool in page.items.iter_mut().filter(|tool| tool.execution.is_some()) {
                // `execution` is removed, because the server decides which calls become tasks.
                Arc::make_mut(tool).execution = None;
            }
            head.page(&page.cache, "tools", &page.items, page.next.as_deref(), out)
        }
        MethodResult::Resources(page) => {
            head.page(&page.cache, "resources", &page.items, page.next.as_deref(), out)
        }
        MethodResult::ResourceTemplates(page) => {
            head.page(&page.cache, "resourceTemplates", &page.items, page.next.as_deref(), out);
        }
        MethodResult::Prompts(page) => {
            head.page(&page.cache, "prompts", &page.items, page.next.as_deref(), out)
        }
        MethodResult::Resource(mut result, cache) => {
            let meta = result.meta.take();
            Head { cache: Some(cache), ..head }.write(meta.as_ref(), &result, out);
        }
        MethodResult::Prompt(mut result) => {
            head.write(result.meta.take().as_ref(), &result, out);
        }
        MethodResult::Completion(mut result) => {
            head.write(result.meta.take().as_ref(), &result, out);
        }
        MethodResult::Task(task) => {
            head.write_beside(&Task::detailed(&task), out, |out| beside(call, &task, out));
        }
        MethodResult::TaskEmitted(task, emitted) => {
            head.write_beside(&Task::detailed(&task), out, |out| {
                beside(call, &task, out);
                open_member(partial::EMITTED, out);
                out.push(b'{');
                partial::members(&emitted, out);
                out.push(b'}');
            });
        }
        // The modern era has neither `tasks/list` nor `tasks/result`.
        MethodResult::Tasks(..) | MethodResult::Rest(_) => head.write(None, &Nothing {}, out),
        MethodResult::TaskResult(result, _) => head.write(None, &*result, out),
        MethodResult::ListenEnded => {
            Head { subscription: Some(call.id()), ..head }.write(None, &Nothing {}, out)
        }
        MethodResult::Raw(raw) => head.write_raw(&raw, out),
        MethodResult::Relayed(result, kind) => relayed(&head, &result, kind, out),
    }
    out.extend_from_slice(b"}}");
}

/// Writes the result of another server. Its members pass unchanged.
fn relayed(head: &Head<'_>, result: &RelayedResult, kind: RelayedKind, out: &mut Vec<u8>) {
    let cache = match kind {
        RelayedKind::Resource(defaults) => Some(result.cache().unwrap_or(defaults)),
        RelayedKind::Tool | RelayedKind::Prompt | RelayedKind::Completion => None,
    };
    let head = Head { cache, ..*head };
    head.open(false, out);
    result.meta(|key, value| {
        open_member(key, out);
        out.extend_from_slice(value.as_bytes());
    });
    head.close(out);
    out.push(b',');
    if !result.write_members(out) {
        out.pop();
    }
}

/// Encodes an `input_required` result. Without input requests, the client retries after
/// `retry_after`.
fn input_required(call: &Call, required: InputRequired, profile: &Profile, out: &mut Vec<u8>) {
    let InputRequired { mut requests, state, retry_after } = required;
    for (_, request) in &mut requests.0 {
        if let InputRequest::CreateMessage(params) = request {
            input::spare_context(call, params);
        }
    }
    let mut meta = Meta::default();
    if let Some(retry) = retry_after {
        let millis = retry.as_millis().max(1) as u64;
        meta.insert(RETRY_AFTER.to_owned(), millis.into());
    }
    let result = InputRequiredResult {
        input_requests: (!requests.0.is_empty()).then_some(requests),
        request_state: Some(state),
        meta: None,
    };
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(call.id().as_bytes());
    out.extend_from_slice(br#","result":{"#);
    let kind = Some(r#""input_required""#);
    Head { profile, kind, cache: None, subscription: None }.write(Some(&meta), &result, out);
    out.extend_from_slice(b"}}");
}

/// Key of the delay in milliseconds after which the client retries.
const RETRY_AFTER: &str = "dev.outlive/retryAfterMs";

#[derive(Serialize)]
struct Nothing {}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Discovered<'a> {
    supported_versions: Vec<&'static str>,
    capabilities: &'a outlive_wire::ServerCapabilities,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<&'a str>,
}

/// Writes the result of `server/discover`.
fn discovered(head: &Head<'_>, mut identity: ServerDescription, out: &mut Vec<u8>) {
    if let Some(tasks) = identity.tasks {
        let extensions = identity.capabilities.extensions.get_or_insert_default();
        extensions.insert(TASKS.to_owned(), Value::Object(serde_json::Map::new()));
        if tasks.partials {
            extensions.insert(PARTIALS.to_owned(), Value::Object(serde_json::Map::new()));
        }
    }
    let result = Discovered {
        supported_versions: supported(head.profile),
        capabilities: &identity.capabilities,
        instructions: identity.instructions.as_deref(),
    };
    Head { cache: Some(identity.cache), ..*head }.write(None, &result, out);
}

/// The members at the start of every result.
#[derive(Clone, Copy)]
struct Head<'a> {
    profile: &'a Profile,
    /// Custom `resultType` as JSON text; `None` means `complete`.
    kind: Option<&'a str>,
    cache: Option<CacheHints>,
    subscription: Option<&'a str>,
}

impl Head<'_> {
    /// Writes the members of a result. Merges `meta` with the server's own keys.
    fn write(&self, meta: Option<&Meta>, rest: &impl Serialize, out: &mut Vec<u8>) {
        self.begin(meta, out);
        let at = out.len();
        put(rest, out);
        splice(at, out);
    }

    /// Writes the members that every result has.
    fn begin(&self, meta: Option<&Meta>, out: &mut Vec<u8>) {
        // A proxied result may already name its server.
        self.open(meta.is_some_and(|meta| meta.contains_key(Meta::SERVER_INFO)), out);
        for (key, value) in meta.into_iter().flat_map(|meta| meta.iter()) {
            open_member(key, out);
            put(value, out);
        }
        self.close(out);
    }

    /// Writes the members of a result, with keys of an Outlive extension in `_meta`.
    fn write_beside(
        &self,
        rest: &impl Serialize,
        out: &mut Vec<u8>,
        members: impl FnOnce(&mut Vec<u8>),
    ) {
        self.open(false, out);
        members(out);
        self.close(out);
        let at = out.len();
        put(rest, out);
        splice(at, out);
    }

    /// Writes an object of the application. Its `_meta` and `resultType` take precedence over the
    /// defaults.
    fn write_raw(&self, raw: &RawValue, out: &mut Vec<u8>) {
        let mut members: OrderedMap<RawJson> = serde_json::from_str(raw.get()).unwrap_or_default();
        let mut take = |name: &str| {
            let at = members.0.iter().position(|(key, _)| key == name)?;
            Some(members.0.remove(at).1)
        };
        let meta: Option<Meta> =
            take("_meta").and_then(|meta| serde_json::from_str(meta.get()).ok());
        let kind = take("resultType").filter(|kind| kind.get().starts_with('"'));
        let head = Head { kind: kind.as_deref().map(RawValue::get), ..*self };
        head.write(meta.as_ref(), &members, out);
    }

    fn page<T: Serialize>(
        &self,
        cache: &CacheHints,
        name: &str,
        items: &[T],
        next: Option<&str>,
        out: &mut Vec<u8>,
    ) {
        Head { cache: Some(*cache), ..*self }.write(None, &Nothing {}, out);
        out.extend_from_slice(b",\"");
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\":");
        put(&items, out);
        if let Some(next) = next {
            out.extend_from_slice(br#","nextCursor":"#);
            put(&next, out);
        }
    }

    fn open(&self, says_who: bool, out: &mut Vec<u8>) {
        match self.kind {
            None => out.extend_from_slice(COMPLETE.as_bytes()),
            Some(kind) => {
                out.extend_from_slice(br#""resultType":"#);
                out.extend_from_slice(kind.as_bytes());
            }
        }
        out.extend_from_slice(META.as_bytes());
        if !says_who {
            out.extend_from_slice(self.profile.server_info_member.as_bytes());
        }
        if let Some(id) = self.subscription {
            separate(out);
            out.extend_from_slice(br#""io.modelcontextprotocol/subscriptionId":"#);
            out.extend_from_slice(id.as_bytes());
        }
    }

    fn close(&self, out: &mut Vec<u8>) {
        out.push(b'}');
        if let Some(cache) = self.cache {
            out.extend_from_slice(br#","ttlMs":"#);
            put(&cache.ttl_ms, out);
            out.extend_from_slice(br#","cacheScope":"#);
            put(&cache.cache_scope, out);
        }
    }
}

/// Writes the progress of a task, if the call declares the extension.
fn beside(call: &Call, task: &TaskView, out: &mut Vec<u8>) {
    if let Some(progress) = partial::progress(call, task) {
        open_member(partial::PROGRESS, out);
        put(&progress, out);
    }
}

fn open_member(key: &str, out: &mut Vec<u8>) {
    separate(out);
    put(&key, out);
    out.push(b':');
}

/// Writes a comma, unless the object was just opened.
fn separate(out: &mut Vec<u8>) {
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
}

/// Appends the members of the object at `at` to the members before it: a comma replaces the opening
/// brace, and the closing brace is removed.
fn splice(at: usize, out: &mut Vec<u8>) {
    if out.len() == at + 2 {
        out.truncate(at);
    } else {
        out[at] = b',';
        out.pop();
    }
}

fn tell(call: &Call, notify: Notify, out: &mut Vec<u8>) -> Frame {
    let listening = call.method() == Some(Method::Listen);
    match notify {
        Notify::Progress(progress) => match call.progress_token() {
            Some(token) => notify::progress(token, &progress, out),
            None => return Frame::Silent,
        },
        Notify::Log { level, logger, data } => match call.log_level() {
            Some(lowest) if level >= lowest && !listening => {
                notify::log(level, logger.as_deref(), &data, out)
            }
            _ => return Frame::Silent,
        },
        Notify::Acknowledged(filter) => {
            open_subscribed(call, Method::Acknowledged, out);
            out.extend_from_slice(br#","notifications":"#);
            put(&filter, out);
            out.extend_from_slice(b"}}");
        }
        Notify::Changed(change) => {
            open_subscribed(call, notify::method_of(&change), out);
            if let Change::Resource(uri) = &change {
                out.extend_from_slice(br#","uri":"#);
                put(uri, out);
            }
            out.extend_from_slice(b"}}");
        }
        Notify::Task(task) => {
            let mut meta = Meta::default();
            if let Ok(id) = serde_json::from_str(call.id()) {
                meta.insert(SUBSCRIPTION.to_owned(), id);
            }
            let progress = partial::progress(call, &task).map(serde_json::to_value);
            if let Some(Ok(progress)) = progress {
                meta.insert(partial::PROGRESS.to_owned(), progress);
            }
            let params = TaskNotificationParams { task: Task::detailed(&task), meta };
            notify::notification(Method::Tasks.as_str(), &params, out);
        }
        Notify::Emitted(emitted) => {
            open_subscribed(call, Method::TaskPartials, out);
            out.extend_from_slice(br#","taskId":"#);
            put(&emitted.id, out);
            out.push(b',');
            partial::members(&emitted, out);
            out.extend_from_slice(b"}}");
        }
        // Modern streams cannot be resumed, and the server sends no requests on them.
        Notify::Detach { .. }
        | Notify::Ask { .. }
        | Notify::AskTask { .. }
        | Notify::TaskProgress { .. }
        | Notify::Withdraw { .. }
        | Notify::UrlDone { .. } => return Frame::Silent,
        Notify::Custom { method, params } => notify::custom(&method, params.as_deref(), out),
    }
    Frame::Message
}

/// Starts a notification of a subscription, with the subscription's ID.
fn open_subscribed(call: &Call, method: Method, out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","method":""#);
    out.extend_from_slice(method.as_str().as_bytes());
    out.extend_from_slice(br#"","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"#);
    out.extend_from_slice(call.id().as_bytes());
    out.push(b'}');
}

/// Key of the subscription ID of a notification.
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

fn required_data(required: &RawValue) -> Option<RawJson> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Data<'a> {
        required_capabilities: &'a RawValue,
    }
    to_raw_value(&Data { required_capabilities: required }).ok()
}

fn supported_data(profile: &Profile, requested: &str) -> Option<RawJson> {
    #[derive(Serialize)]
    struct Data<'a> {
        supported: Vec<&'static str>,
        requested: &'a str,
    }
    to_raw_value(&Data { supported: supported(profile), requested }).ok()
}

/// Returns the supported modern versions, newest first.
fn supported(profile: &Profile) -> Vec<&'static str> {
    profile.versions.in_era(Era::Modern).map(|rules| rules.version.as_str()).collect()
}
