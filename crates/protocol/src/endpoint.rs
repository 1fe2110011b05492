//! Entry point for messages: turns bytes into a [`Run`] or an error response.
//!
//! A transport passes the bytes and a [`MessageContext`], then writes the messages of the run. This
//! module contains the message handling that all transports share. It does no I/O.

use std::sync::Arc;

use bytes::Bytes;
use bytestring::ByteString;
use outlive_wire::{Envelope, ErrorObject, Message, Method, Str, code};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    Call, CancelReason, ClientNotification, InFlight, MessageContext, MisroutedReply, Profile,
    ProtocolError, Run, Service, Session, VersionRules, catch_panic,
    era::{self, Request, SelectError, Selection},
};

/// The interface of a server to its transports.
#[derive(Clone)]
pub struct Endpoint {
    service: Arc<dyn Service>,
}

/// The result of accepting a message.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "transports must know them all")]
pub enum Accepted {
    /// A request that is now running.
    Call(Run),
    /// An `initialize` request that is now running, and the session that it opens.
    Handshake(Run, Arc<Session>),
    /// A notification or a response. It has no reply.
    Noted,
    /// A response to a request that this replica did not send. The transport forwards it to the
    /// [`SessionStore`](crate::SessionStore), because another replica may have sent the request. It
    /// has no reply.
    Misrouted(Box<MisroutedReply>),
    /// A rejected message.
    Refused(ErrorReply),
    /// Results of the messages of a batch, in order. Only 2025-03-26 has batches.
    Batch(Vec<Accepted>),
}

/// The error response to a rejected message.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "transports read it")]
pub struct ErrorReply {
    /// HTTP status of the response.
    pub status: u16,
    /// The JSON-RPC error response.
    pub body: Vec<u8>,
    /// Whether the rejected message expects a response. Transports without HTTP send none
    /// otherwise.
    pub wants_answer: bool,
}

impl Endpoint {
    /// Creates an endpoint for a server.
    pub fn new(service: Arc<dyn Service>) -> Self {
        Self { service }
    }

    /// Returns the server.
    pub fn service(&self) -> &Arc<dyn Service> {
        &self.service
    }

    /// Returns the static description and settings of the server.
    pub fn profile(&self) -> &Arc<Profile> {
        self.service.profile()
    }

    /// Accepts one message. The resulting call shares `message`'s buffer until the call ends.
    pub fn accept(&self, message: &Bytes, arrival: MessageContext<'_>) -> Accepted {
        // UTF-8 is checked once, so that later code can read parts of the message as `str`.
        match ByteString::try_from(message.clone()) {
            Ok(message) => self.accept_text(&message, arrival),
            Err(error) => refused(None, &ProtocolError::Parse(format!("not UTF-8: {error}")), true),
        }
    }

    fn accept_text(&self, message: &ByteString, arrival: MessageContext<'_>) -> Accepted {
        let limit = self.profile().limits.max_message_depth;
        if let Some(request) = Request::read(message, limit) {
            return self.request(&request, arrival);
        }
        // The request parser also rejects deep nesting; find out whether that was the reason.
        if depth_exceeds(message.as_bytes(), limit) {
            let fault = ProtocolError::invalid_request(format!(
                "the message is nested deeper than {limit} levels"
            ));
            return refused(None, &fault, true);
        }
        match message.trim_ascii_start().starts_with('[') {
            true => self.accept_batch(message, &arrival),
            false => self.accept_other(message, arrival),
        }
    }

    /// Accepts a message that the fast request parser rejected: a notification, a response, an
    /// invalid message, or a request with unknown members.
    fn accept_other(&self, message: &ByteString, arrival: MessageContext<'_>) -> Accepted {
        let envelope: Envelope<'_> = match serde_json::from_str(message) {
            Ok(envelope) => envelope,
            Err(error) if error.is_data() => {
                return refused(
                    echo_id(message),
                    &ProtocolError::invalid_request(error.to_string()),
                    true,
                );
            }
            Err(error) => return refused(None, &ProtocolError::Parse(error.to_string()), true),
        };
        let id = envelope.echo_id();
        // Without an ID, JSON-RPC forbids a response, even an error.
        let wants_answer = envelope.id.is_some() || envelope.method.is_none();
        match envelope.classify() {
            Ok(Message::Request { id, method, params }) => {
                match Request::of(message, id, method, params) {
                    Ok(request) => self.request(&request, arrival),
                    Err(fault) => refused(Some(id.get()), &fault, true),
                }
            }
            Ok(Message::Notification { params: Some(params), .. })
                if !params.get().starts_with('{') =>
            {
                refused(None, &ProtocolError::invalid_params("`params` must be an object"), false)
            }
            Ok(Message::Notification { method, params }) => {
                if let Err(error) = era::check_notification(&arrival, self.profile()) {
                    return self.refuse(None, &error);
                }
                self.notification(&method, params, &arrival);
                Accepted::Noted
            }
            Ok(Message::Response { id, outcome }) => {
                if let Err(error) = era::check_notification(&arrival, self.profile()) {
                    return self.refuse(None, &error);
                }
                answered(id, outcome, arrival)
            }
            Err(why) => {
                refused(id.map(RawValue::get), &ProtocolError::invalid_request(why), wants_answer)
            }
        }
    }

    fn request(&self, request: &Request<'_>, arrival: MessageContext<'_>) -> Accepted {
        let id = request.id;
        let in_use = |table: &InFlight| !table.is_empty() && table.contains(id);
        if arrival.in_flight.is_some_and(in_use) {
            let fault = ProtocolError::invalid_request(format!(
                "ID {id} is still in use by a running request; choose another ID"
            ));
            return refused(Some(id), &fault, true);
        }
        match era::select(request, &arrival, self.profile()) {
            Ok(Selection::Version(rules)) => self.call(rules, request, arrival),
            Ok(Selection::Handshake) => self.handshake(request, arrival),
            Err(error) => self.refuse(Some(id), &error),
        }
    }

    fn call(
        &self,
        rules: &'static VersionRules,
        request: &Request<'_>,
        mut arrival: MessageContext<'_>,
    ) -> Accepted {
        if rules.sessions && arrival.session.is_none() {
            arrival.session = Some(Arc::new(self.ephemeral_session(rules, &arrival)));
        }
        let is_custom = |name: &str| self.service.knows_method(name);
        match era::codec(rules.era).decode(rules, request, arrival, &is_custom) {
            Ok(call) => Accepted::Call(self.run(call)),
            Err(error) => self.refuse(Some(request.id), &(rules, error)),
        }
    }

    /// Creates a session for one request, for servers that keep no sessions.
    fn ephemeral_session(
        &self,
        rules: &'static VersionRules,
        arrival: &MessageContext<'_>,
    ) -> Session {
        let feed = self.profile().bus.closing();
        Session::new(rules, arrival.principal.clone(), None, "{}".into(), feed)
    }

    fn handshake(&self, request: &Request<'_>, mut arrival: MessageContext<'_>) -> Accepted {
        let opened = era::open_session(request, arrival.principal.clone(), self.profile());
        let session = match opened {
            Ok(session) => session,
            Err(fault) => return refused(Some(request.id), &fault, true),
        };
        let rules = session.rules();
        arrival.session = Some(Arc::clone(&session));
        match era::codec(rules.era).decode(rules, request, arrival, &|_| false) {
            Ok(call) => Accepted::Handshake(self.run(call), session),
            Err(error) => self.refuse(Some(request.id), &(rules, error)),
        }
    }

    fn run(&self, call: Arc<Call>) -> Run {
        let work = catch_panic(&call, || Arc::clone(&self.service).start(Arc::clone(&call)));
        Run::new(call, Arc::clone(self.profile()), work)
    }

    fn refuse(&self, id: Option<&str>, (rules, error): &SelectError) -> Accepted {
        let mut body = Vec::new();
        let codec = era::codec(rules.era);
        let status = match codec.encode_error(id, error, self.profile(), &mut body) {
            // A message that is rejected before its handler runs is a bad request.
            200 if rules.mirrored_headers => 400,
            status => status,
        };
        Accepted::Refused(ErrorReply { status, body, wants_answer: id.is_some() })
    }

    fn notification(&self, method: &str, params: Option<&RawValue>, arrival: &MessageContext<'_>) {
        let params = params.map_or("{}", RawValue::get);
        let known = Method::parse(method);
        match known {
            Some(Method::Cancelled) => cancel(params, arrival),
            Some(Method::Initialized) => {
                if let Some(session) = &arrival.session {
                    session.set_initialized();
                }
            }
            _ => {}
        }
        let notice = ClientNotification::new(
            known,
            method,
            params,
            &arrival.principal,
            arrival.session.as_ref(),
        );
        self.service.notified(notice);
    }

    fn accept_batch(&self, message: &ByteString, arrival: &MessageContext<'_>) -> Accepted {
        if !era::allows_batch(arrival, self.profile()) {
            let fault = ProtocolError::invalid_request(
                "this protocol version has no batches; send each message separately",
            );
            return refused(None, &fault, true);
        }
        let messages: Vec<&RawValue> = match serde_json::from_str(message) {
            Ok(messages) => messages,
            Err(error) => return refused(None, &ProtocolError::Parse(error.to_string()), true),
        };
        let limit = self.profile().limits.max_batch;
        if messages.is_empty() || messages.len() > limit {
            let fault =
                ProtocolError::invalid_request(format!("a batch must have 1 to {limit} messages"));
            return refused(None, &fault, true);
        }
        let accept = |raw: &&RawValue| {
            if raw.get().starts_with('[') {
                return refused(
                    None,
                    &ProtocolError::invalid_request("a batch must not contain a batch"),
                    true,
                );
            }
            let one = message.slice_ref(raw.get());
            match self.accept_text(&one, arrival.clone()) {
                Accepted::Handshake(..) => refused(
                    echo_id(raw.get()),
                    &ProtocolError::invalid_request("`initialize` must not be part of a batch"),
                    true,
                ),
                accepted => accepted,
            }
        };
        Accepted::Batch(messages.iter().map(accept).collect())
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").field("profile", self.profile()).finish_non_exhaustive()
    }
}

/// Rejects a message whose era is unknown.
fn refused(id: Option<&str>, fault: &ProtocolError, wants_answer: bool) -> Accepted {
    let mut body = Vec::new();
    let status = era::encode_unread(id, fault, &mut body);
    Accepted::Refused(ErrorReply { status, body, wants_answer })
}

/// Passes a response to the pending request with its ID. Ignores late and invalid responses.
fn answered(
    id: Option<&RawValue>,
    outcome: Result<&RawValue, &RawValue>,
    arrival: MessageContext<'_>,
) -> Accepted {
    let reply = outcome.map(ToOwned::to_owned).map_err(|error| {
        serde_json::from_str(error.get()).unwrap_or_else(|_| ErrorObject {
            code: code::INTERNAL,
            message: "the client returned an invalid error object".to_owned(),
            data: None,
        })
    });
    let id = id.and_then(|id| id.get().parse().ok());
    if let (Some(session), Some(id)) = (arrival.session, id) {
        if session.portable().is_some() && !session.asked().has_given(id) {
            return Accepted::Misrouted(Box::new(MisroutedReply { session, id, reply }));
        }
        if session.asked().answer(id, reply) {
            return Accepted::Noted;
        }
    }
    tracing::debug!("ignored a response to an unknown request");
    Accepted::Noted
}

/// Handles `notifications/cancelled`. Ignores unknown and finished requests, because cancellation
/// races with completion.
fn cancel(params: &str, arrival: &MessageContext<'_>) {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Cancelled<'a> {
        #[serde(borrow)]
        request_id: &'a RawValue,
        #[serde(borrow, default)]
        reason: Option<Str<'a>>,
    }
    let Ok(cancelled) = serde_json::from_str::<Cancelled<'_>>(params) else { return };
    let id = cancelled.request_id.get();
    let reason = CancelReason::read(cancelled.reason.as_deref());
    let found = arrival.in_flight.is_some_and(|in_flight| in_flight.cancel(id, reason));
    tracing::debug!(id, found, reason = cancelled.reason.as_deref(), "client cancelled a request");
}

/// Returns the ID of an otherwise invalid message, so that the error response can repeat it.
fn echo_id(text: &str) -> Option<&str> {
    #[derive(Deserialize)]
    struct Id<'a> {
        #[serde(borrow)]
        id: &'a RawValue,
    }
    let id = serde_json::from_str::<Id<'_>>(text).ok()?.id.get();
    let digits = id.strip_prefix('-').unwrap_or(id);
    (id.starts_with('"') || digits.bytes().all(|byte| byte.is_ascii_digit())).then_some(id)
}

/// Returns whether `json` is nested deeper than `limit`.
fn depth_exceeds(json: &[u8], limit: usize) -> bool {
    let (mut rest, mut depth) = (json, 0usize);
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'"' => rest = behind_string(rest),
            b'{' | b'[' => {
                depth += 1;
                if depth > limit {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// Returns the text after a JSON string whose opening quote was already consumed.
fn behind_string(mut rest: &[u8]) -> &[u8] {
    while let Some(at) = memchr::memchr2(b'"', b'\\', rest) {
        if rest[at] == b'"' {
            return &rest[at + 1..];
        }
        // Skips the backslash and the escaped byte, which may be a quote.
        rest = rest.get(at + 2..).unwrap_or_default();
    }
    &[]
}

#[cfg(test)]
mod tests {
    use super::depth_exceeds;

    #[test]
    fn brackets_in_strings_are_not_nesting() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(!depth_exceeds(nested(10).as_bytes(), 10));
        assert!(depth_exceeds(nested(11).as_bytes(), 10));
        assert!(!depth_exceeds(format!(r#"["\"{}"]"#, "{".repeat(50)).as_bytes(), 10));
        assert!(depth_exceeds(format!(r#"["\\",{}]"#, nested(10)).as_bytes(), 10));
        assert!(!depth_exceeds("[]".repeat(50).as_bytes(), 10));
        assert!(!depth_exceeds(br#""ends in an escape \"#, 0));
    }
}
