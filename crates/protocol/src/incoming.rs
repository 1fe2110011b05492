//! A message that a server sent, read once: what it is, and where its parts stand in its bytes.

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

/// What it is.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_enums, reason = "JSON-RPC 2.0 has these and will have no other")]
pub enum IncomingKind {
    /// Answers a request of ours with a result.
    Result {
        /// The id that it names; `None` if it is none that we could have given.
        id: Option<u64>,
        /// Where the result stands.
        result: Range<usize>,
    },
    /// Refuses a request of ours.
    Error {
        /// The id that it names, if it names one.
        id: Option<u64>,
        /// Whether it names none at all: then it is about what was sent last, if that is known.
        unnamed: bool,
        /// The refusal.
        error: ErrorObject,
    },
    /// Wants an answer.
    Request {
        /// To be echoed as it is.
        id: RequestId,
        /// What is asked; `None` for a method that no revision has.
        method: Option<Method>,
        /// Where its parameters stand, if it has any.
        params: Option<Range<usize>>,
    },
    /// Wants none.
    Notification {
        /// What is told; `None` for a method that no revision has.
        method: Option<Method>,
        /// Its name.
        name: Box<str>,
        /// Where its parameters stand, if it has any.
        params: Option<Range<usize>>,
    },
}

impl Incoming {
    /// Reads a message.
    ///
    /// # Errors
    ///
    /// In a few words, why it is none.
    pub fn read(bytes: Bytes) -> Result<Self, String> {
        let envelope: Envelope<'_> =
            serde_json::from_slice(&bytes).map_err(|error| format!("no JSON-RPC: {error}"))?;
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

    /// What it is.
    pub fn kind(&self) -> &IncomingKind {
        &self.kind
    }

    /// The id of the request of ours that it answers.
    pub fn answers(&self) -> Option<u64> {
        match self.kind {
            IncomingKind::Result { id, .. } | IncomingKind::Error { id, .. } => id,
            _ => None,
        }
    }

    /// Which request of ours it belongs to without answering it: by the progress token, or by the
    /// subscription that it is part of.
    pub fn belongs_to(&self) -> Option<u64> {
        #[derive(Deserialize)]
        struct Told<'a> {
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
        let told: Told<'_> = self.borrowed_params()?;
        let subscription = told.meta.and_then(|meta| meta.subscription).and_then(own);
        match method {
            Some(Method::Progress) => told.token.and_then(own),
            Some(Method::Cancelled) => told.request.and_then(own).or(subscription),
            _ => subscription,
        }
    }

    /// A part of it, as text.
    pub fn text(&self, part: &Range<usize>) -> &str {
        // Cut where the parser found a value, so it is text and it is within bounds.
        self.bytes.get(part.clone()).and_then(|part| str::from_utf8(part).ok()).unwrap_or("null")
    }

    /// A part of it, as bytes of its own.
    pub fn part(&self, part: &Range<usize>) -> Bytes {
        self.bytes.slice(part.clone())
    }

    /// The text of the result, if it is one.
    pub fn result(&self) -> Option<&str> {
        match &self.kind {
            IncomingKind::Result { result, .. } => Some(self.text(result)),
            _ => None,
        }
    }

    /// The parameters of a request or notification, read as a type.
    ///
    /// # Errors
    ///
    /// When they do not fit it.
    pub fn params<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_str(self.params_text())
    }

    /// The text of the parameters; an empty object if there are none.
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

/// Where a part stands in the message that it was read from.
fn place(message: &[u8], part: &RawValue) -> Range<usize> {
    let start = part.get().as_ptr() as usize - message.as_ptr() as usize;
    start..start + part.get().len()
}

/// An id of ours: those are numbers from one on.
fn own(raw: &RawValue) -> Option<u64> {
    raw.get().parse().ok()
}

/// Reads a refusal. One without a code is taken for an internal error: peers have sent such.
fn refusal(raw: &RawValue) -> Result<ErrorObject, String> {
    #[derive(Deserialize)]
    struct Loose {
        code: Option<f64>,
        message: Option<String>,
        data: Option<outlive_wire::RawJson>,
    }
    let loose: Loose =
        serde_json::from_str(raw.get()).map_err(|error| format!("no error object: {error}"))?;
    #[expect(clippy::cast_possible_truncation, reason = "codes are small; others saturate")]
    let code = loose.code.map_or(outlive_wire::code::INTERNAL, |code| code as i32);
    Ok(ErrorObject { code, message: loose.message.unwrap_or_default(), data: loose.data })
}
