//! A request to relay: borrowed texts that are written once.

use std::{borrow::Cow, time::Duration};

use outlive_protocol::{
    TaskDialect,
    era::client::{CapabilityClass, Outgoing},
};
use outlive_wire::Method;
use serde::Deserialize;
use serde_json::Value;

use crate::client::link::Connection;

/// A request of a program that stands between a client and a server.
///
/// All texts are borrowed and written once. The parameters must be valid JSON; they are not parsed.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct RelayRequest<'a> {
    pub(super) method: &'a str,
    object: &'a str,
    members: &'a [&'a str],
    meta: &'a str,
    name: Option<&'a str>,
    headers: &'a [(String, String)],
    class: Option<CapabilityClass>,
    tasks: RelayTasks,
    progress: bool,
    responses: Option<&'a str>,
    state: Option<&'a str>,
    pub(super) id: Option<u64>,
    pub(super) timeout: Option<Option<Duration>>,
    pub(super) total: Option<Duration>,
}

/// Whether a call may become a task of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RelayTasks {
    /// No.
    #[default]
    Never,
    /// The server decides; since 2026-07-28.
    Accept,
    /// The server decides, and servers of 2025-11-25 are asked for a task with this TTL.
    Request(Option<Duration>),
}

impl<'a> RelayRequest<'a> {
    /// Creates a request of any method, without parameters.
    pub fn new(method: &'a str) -> Self {
        Self {
            method,
            object: "{}",
            members: &[],
            meta: "",
            name: None,
            headers: &[],
            class: None,
            tasks: RelayTasks::Never,
            progress: false,
            responses: None,
            state: None,
            id: None,
            timeout: None,
            total: None,
        }
    }

    /// Sets the request ID, which [`Client::next_request_id`](crate::client::Client::next_request_id)
    /// returned. By default the client chooses it.
    pub fn id(mut self, id: u64) -> Self {
        self.id = Some(id);
        self
    }

    /// Sets the members of the parameters: fragments of JSON text that are written one after the
    /// other, without braces and without `_meta`.
    pub fn params(mut self, members: &'a [&'a str]) -> Self {
        self.members = members;
        self
    }

    /// Sets the parameters: the JSON text of an object without `_meta`.
    pub fn params_object(mut self, object: &'a str) -> Self {
        self.object = object;
        self
    }

    /// Sets further members of `_meta`, without braces. They must not be members of the protocol.
    pub fn meta(mut self, members: &'a str) -> Self {
        self.meta = members;
        self
    }

    /// Sets the name, URI or task ID of the `Mcp-Name` header. Otherwise it is read from the
    /// parameters.
    pub fn name(mut self, name: &'a str) -> Self {
        self.name = Some(name);
        self
    }

    /// Sets the names and values of the arguments that headers repeat. See
    /// [`ParamHeaders`](super::ParamHeaders).
    pub fn param_headers(mut self, headers: &'a [(String, String)]) -> Self {
        self.headers = headers;
        self
    }

    /// Sets the capability class that a modern request declares. Defaults to that of the client.
    pub fn class(mut self, class: CapabilityClass) -> Self {
        self.class = Some(class);
        self
    }

    /// Sets whether the call may become a task.
    pub fn tasks(mut self, tasks: RelayTasks) -> Self {
        self.tasks = tasks;
        self
    }

    /// Sets whether the server is asked for progress.
    pub fn progress(mut self, wanted: bool) -> Self {
        self.progress = wanted;
        self
    }

    /// Adds the input responses of a round: the JSON text of an object; 2026-07-28.
    pub fn input_responses(mut self, responses: &'a str) -> Self {
        self.responses = Some(responses);
        self
    }

    /// Adds the request state of the last round; 2026-07-28.
    pub fn request_state(mut self, state: &'a str) -> Self {
        self.state = Some(state);
        self
    }

    /// Sets the timeout. Progress and responses to input requests restart it, and it stops while an
    /// input request of this request is open. Defaults to
    /// [`ClientLimits::request_timeout`](crate::client::ClientLimits).
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.timeout = Some(timeout.into());
        self
    }

    /// Sets the total timeout, regardless of progress. It stops while an input request of this
    /// request is open. Defaults to
    /// [`ClientLimits::max_total_timeout`](crate::client::ClientLimits).
    pub fn max_total_timeout(mut self, timeout: Duration) -> Self {
        self.total = Some(timeout);
        self
    }

    /// Returns whether the result may be a task on this connection.
    pub(super) fn holds_tasks(&self, here: &Connection) -> bool {
        match Method::parse(self.method) {
            Some(Method::ToolsCall) => match here.rules.tasks {
                TaskDialect::None => false,
                TaskDialect::Offered => self.tasks != RelayTasks::Never,
                TaskDialect::Requested => self.task_member(here).is_some(),
            },
            Some(Method::TasksGet | Method::TasksUpdate | Method::TasksCancel) => true,
            _ => false,
        }
    }

    /// Returns the `task` member of a call, if the connection has one.
    fn task_member(&self, here: &Connection) -> Option<String> {
        let RelayTasks::Request(ttl) = self.tasks else { return None };
        let declared = here.server.capabilities.tasks.as_ref();
        let offered = declared.is_some_and(|it| it.pointer("/requests/tools/call").is_some());
        if here.rules.tasks != TaskDialect::Requested || !offered {
            return None;
        }
        Some(match ttl {
            Some(ttl) => format!(r#""task":{{"ttl":{}}}"#, ttl.as_millis()),
            None => r#""task":{}"#.to_owned(),
        })
    }

    /// Prepares the request for a connection.
    pub(super) fn parts(&self, here: &Connection, id: u64) -> Parts<'a> {
        let params = match self.extra_members(here) {
            None => Cow::Borrowed(self.object),
            Some(extra) => Cow::Owned(joined(self.object, &[&extra])),
        };
        let meta = match self.progress {
            false => Cow::Borrowed(self.meta),
            true => {
                let comma = if self.meta.is_empty() { "" } else { "," };
                Cow::Owned(format!(r#"{}{comma}"progressToken":{id}"#, self.meta))
            }
        };
        let name = match (self.name, here.rules.mirrored_headers) {
            (None, true) => self.name_in_params().map(Cow::Owned),
            (name, _) => name.map(Cow::Borrowed),
        };
        Parts { request: *self, id, params, meta, name, holds_tasks: self.holds_tasks(here) }
    }

    /// Returns the members that the connection or the round adds.
    fn extra_members(&self, here: &Connection) -> Option<String> {
        let mut extra = self.task_member(here);
        let mut add = |name: &str, value: &str| {
            let extra = extra.get_or_insert_default();
            if !extra.is_empty() {
                extra.push(',');
            }
            extra.push_str(&format!(r#""{name}":{value}"#));
        };
        if let Some(responses) = self.responses {
            add("inputResponses", responses);
        }
        if let Some(state) = self.state {
            add("requestState", &Value::from(state).to_string());
        }
        extra
    }

    /// Returns the name in the parameters that a header repeats.
    fn name_in_params(&self) -> Option<String> {
        let method = Method::parse(self.method)?;
        outlive_protocol::era::client::name_in(method, &self.whole_params())
    }

    /// Returns the ID of the task whose result the request waits for.
    pub(super) fn awaited_task(&self) -> Option<String> {
        if Method::parse(self.method) != Some(Method::TasksResult) {
            return None;
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params {
            task_id: String,
        }
        let params: Params = serde_json::from_str(&self.whole_params()).ok()?;
        Some(params.task_id)
    }

    /// Returns the parameters as one object.
    fn whole_params(&self) -> String {
        joined(self.object, self.members)
    }

    /// Copies the request, so that its texts may be dropped before it is sent.
    pub(super) fn copied(self) -> OwnedRequest {
        OwnedRequest {
            method: self.method.to_owned(),
            params: self.whole_params(),
            meta: self.meta.to_owned(),
            name: self.name.map(str::to_owned),
            headers: self.headers.to_vec(),
            responses: self.responses.map(str::to_owned),
            state: self.state.map(str::to_owned),
            class: self.class,
            tasks: self.tasks,
            progress: self.progress,
        }
    }
}

/// Adds fragments of members to the JSON text of an object.
fn joined(object: &str, members: &[&str]) -> String {
    let object = object.trim();
    let object = object.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    let object = object.unwrap_or_default().trim();
    let comma = if object.is_empty() || members.is_empty() { "" } else { "," };
    format!("{{{object}{comma}{}}}", members.concat())
}

/// A request with the members that a connection adds.
pub(super) struct Parts<'a> {
    request: RelayRequest<'a>,
    id: u64,
    params: Cow<'a, str>,
    meta: Cow<'a, str>,
    name: Option<Cow<'a, str>>,
    holds_tasks: bool,
}

impl Parts<'_> {
    pub(super) fn outgoing(&self) -> Outgoing<'_> {
        Outgoing {
            id: Some(self.id),
            method: self.request.method,
            params: &self.params,
            members: self.request.members,
            meta: &self.meta,
            name: self.name.as_deref(),
            repeated: self.request.headers,
            holds_tasks: self.holds_tasks,
            class: self.request.class,
        }
    }
}

/// A copy of a request.
pub(super) struct OwnedRequest {
    method: String,
    params: String,
    meta: String,
    name: Option<String>,
    headers: Vec<(String, String)>,
    responses: Option<String>,
    state: Option<String>,
    class: Option<CapabilityClass>,
    tasks: RelayTasks,
    progress: bool,
}

impl OwnedRequest {
    pub(super) fn borrowed(&self) -> RelayRequest<'_> {
        RelayRequest {
            object: &self.params,
            meta: &self.meta,
            name: self.name.as_deref(),
            headers: &self.headers,
            class: self.class,
            tasks: self.tasks,
            progress: self.progress,
            responses: self.responses.as_deref(),
            state: self.state.as_deref(),
            ..RelayRequest::new(&self.method)
        }
    }
}
