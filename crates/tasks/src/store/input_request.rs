//! Input requests to store.

use outlive_wire::InputRequest;

use super::{binding::Binding, id::UnixMillis, input::Audience};
use crate::setters::setters;

/// An input request to store.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NewInputRequest {
    /// Journal key.
    pub key: String,
    /// Wire key.
    pub name: String,
    /// Request to the client; `None` if another system responds.
    pub request: Option<InputRequest>,
    /// Parties that may respond. Has no effect on an external event.
    pub audience: Audience,
    /// When the request times out.
    pub due: Option<UnixMillis>,
    /// Binding of an approval request; `None` for other requests.
    pub binding: Option<Binding>,
}

impl NewInputRequest {
    /// Creates an input request to the client without a timeout.
    pub fn new(
        key: impl Into<String>,
        name: impl Into<String>,
        request: Option<InputRequest>,
    ) -> Self {
        let audience = Audience::Client;
        Self { key: key.into(), name: name.into(), request, audience, due: None, binding: None }
    }
}

setters!(NewInputRequest {
    audience: Audience,
    due: Option<UnixMillis>,
    binding: Option<Binding>,
});
