//! A parsed message of a server: its kind, and the positions of its parts.

use std::ops::Range;

use bytes::Bytes;
use outlive_wire::{Envelope, ErrorObject, Message, Method, RequestId};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;

/// A message of a server.
#[derive(Clone, Debug)]
pub struct Incoming {
    bytes: Bytes,
    kind: IncomingKind,
}

/// The kind of a message.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_enums, reason = "JSON-RPC 2.0 is fixed")]
pub enum IncomingKind {
    /// A result for a request of the client.
    Result {
        /// Request ID; `None` if it is not an ID of this client.
        id: Option<u64>,
        /// Position of the result.
        result: Range<usize>,
    },
    /// An error for a request of the client.
    Error {
        /// Request ID; `None` if it is absent or not an ID of this client.
        id: Option<u64>,
        /// Whether the ID is absent. The error then belongs to the last request, if the transport
        /// knows it.
        unnamed: bool,
        /// The error.
        error: ErrorObject,
    },
    /// A request of the server.
    Request {
        /// Request ID, which the response repeats unchanged.
        id: RequestId,
        /// Method; `None` for a custom method.
        method: Option<Method>,
        /// Position of the parameters.
        params: Option<Range<usize>>,
    },
    /// A notification of the server.
    Notification {
        /// Method; `None` for a custom method.
        method: Option<Method>,
        /// Name of the method.
        name: Box<str>,
        /// Position of the parameters.
        params: Option<Range<usize>>,
    },
}

impl Incoming {
    /// Parses a message.
    ///
    /// # Errors
    ///
    /// Returns why the bytes are not a valid message.
    pub fn read(bytes: Bytes) -> Result<Self, String> {
        let envelope: Envelope<'_> = serde_json::from_slice(&bytes)
            .map_err(|error| format!("invalid JSON-RPC message: {error}"))?;
        let place = |raw: &RawValue| place(&bytes, raw);
        let kind = match envelope.classify()? {
            Message::Response { id, outcome: Ok(result) } => {
                IncomingKind::Result { id: id.and_then(own), result: place(result) }
            }
            Message::Response { id, outcome: Err(error) } => IncomingKind::Error {
                id: id.and_then(own),
                unnamed: id.is_none(),
                error: refusal(error)?,
            },
            Message::Request { id, method, params } => IncomingKind::Request {
                id: RequestId::from_raw(id).ok_or("`id` must be a string or an integer")?,
                method: Method::parse(&method),
                params: params.map(place),
            },
            Message::Notification { method, params } => IncomingKind::Notification {
                method: Method::parse(&method),
                name: Box::from(&*method),
                params: params.map(place),
            },
        };
        Ok(Self { bytes, kind })
    }

    /// Returns the kind of the message.
    pub fn kind(&self) -> &IncomingKind {
        &self.kind
    }

    /// Returns the ID of the client's request that the message is a response to.
    pub fn answers(&self) -> Option<u64> {
        match self.kind {
            IncomingKind::Result { id, .. } | IncomingKind::Error { id, .. } => id,
            _ => None,
        }
    }

    /// Returns the ID of the request that a notification belongs to, by its progress token or
    /// subscription ID.
    pub fn belongs_to(&self) -> Option<u64> {
        #[derive(Deserialize)]
        struct NotificationParams<'a> {
            #[serde(borrow, rename = "progressToken")]
            token: Option<&'a RawValue>,
            #[serde(borrow, rename = "requestId")]
            request: Option<&'a RawValue>,
            #[serde(borrow, rename = "_meta")]
            meta: Option<Named<'a>>,
        }
        #[derive(Deserialize)]
        struct Named<'a> {
            #[serde(borrow, rename = "io.modelcontextprotocol/subscriptionId")]
            subscription: Option<&'a RawValue>,
        }
        let IncomingKind::Notification { method, .. } = &self.kind else { return None };
        let params: NotificationParams<'_> = self.borrowed_params()?;
        let subscription = params.meta.and_then(|meta| meta.subscription).and_then(own);
        match method {
            Some(Method::Progress) => params.token.and_then(own),
            Some(Method::Cancelled) => params.request.and_then(own).or(subscription),
            _ => subscription,
        }
    }

    /// Returns a part of the message as text.
    pub fn text(&self, part: &Range<usize>) -> &str {
        // The parser found a value at this range, so it is in bounds and UTF-8.
        self.bytes.get(part.clone()).and_then(|part| str::from_utf8(part).ok()).unwrap_or("null")
    }

    /// Returns a part of the message as bytes that share the message's buffer.
    pub fn part(&self, part: &Range<usize>) -> Bytes {
        self.bytes.slice(part.clone())
    }

    /// Returns the text of the result, if the message is one.
    pub fn result(&self) -> Option<&str> {
        match &self.kind {
            IncomingKind::Result { result, .. } => Some(self.text(result)),
            _ => None,
        }
    }

    /// Deserializes the parameters of a request or notification.
    ///
    /// # Errors
    ///
    /// If the parameters do not match `T`.
    pub fn params<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_str(self.params_text())
    }

    /// Returns the text of the parameters; `{}` if they are absent.
    pub fn params_text(&self) -> &str {
        match &self.kind {
            IncomingKind::Request { params: Some(params), .. }
            | IncomingKind::Notification { params: Some(params), .. } => self.text(params),
            _ => "{}",
        }
    }

    fn borrowed_params<'a, T: Deserialize<'a>>(&'a self) -> Option<T> {
        serde_json::from_str(self.params_text()).ok()
    }
}

/// Returns the position of a part in the message that it was parsed from.
fn place(message: &[u8], part: &RawValue) -> Range<usize> {
    let start = part.get().as_ptr() as usize - message.as_ptr() as usize;
    start..start + part.get().len()
}

/// Parses a request ID of this client, which is an unsigned integer.
fn own(raw: &RawValue) -> Option<u64> {
    raw.get().parse().ok()
}

/// Parses an error object. Some servers omit the code; it defaults to `INTERNAL`.
fn refusal(raw: &RawValue) -> Result<ErrorObject, String> {
    #[derive(Deserialize)]
    struct Loose {
        code: Option<f64>,
        message: Option<String>,
        data: Option<outlive_wire::RawJson>,
    }
    let loose: Loose = serde_json::from_str(raw.get())
        .map_err(|error| format!("invalid error object: {error}"))?;
    #[expect(clippy::cast_possible_truncation, reason = "codes are small; others saturate")]
    let code = loose.code.map_or(outlive_wire::code::INTERNAL, |code| code as i32);
    Ok(ErrorObject { code, message: loose.message.unwrap_or_default(), data: loose.data })
}
