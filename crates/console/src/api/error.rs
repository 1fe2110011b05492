//! Errors of the API: `{error, remedy}`.

use std::time::Duration;

use http::{HeaderValue, StatusCode, header};
use outlive::{people::PeopleError, store::StoreError};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::http::{Reply, json, retry_after};

/// Time after which a client retries if the store is unavailable.
const RETRY: Duration = Duration::from_secs(5);

/// An error of the API.
#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    error: String,
    remedy: String,
    /// Further members of the response.
    details: Box<Map<String, Value>>,
    retry_after: Option<Duration>,
}

#[derive(Serialize)]
struct Body<'a> {
    error: &'a str,
    remedy: &'a str,
    #[serde(flatten)]
    details: &'a Map<String, Value>,
}

impl ApiError {
    pub(crate) fn new(
        status: StatusCode,
        error: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let (error, remedy) = (error.into(), remedy.into());
        Self { status, error, remedy, details: Box::default(), retry_after: None }
    }

    /// Creates the error for every object that does not exist or that the visitor may not see.
    pub(crate) fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "not found", "check the address and your access")
    }

    /// Creates the error for a request without a valid credential.
    pub(crate) fn unauthenticated() -> Self {
        let remedy = "sign in to the console, or send a token in the Authorization header";
        Self::new(StatusCode::UNAUTHORIZED, "not signed in", remedy)
    }

    /// Creates the error for a request that the API does not understand.
    pub(crate) fn bad_request(error: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error, remedy)
    }

    /// Creates the error for a credential or store that cannot be checked at the moment.
    pub(crate) fn unavailable(after: Duration) -> Self {
        let remedy = "retry later";
        let error = Self::new(StatusCode::SERVICE_UNAVAILABLE, "the store is unavailable", remedy);
        Self { retry_after: Some(after), ..error }
    }

    /// Creates the error for a visitor who exceeds a limit.
    pub(crate) fn too_many(error: &str, after: Duration) -> Self {
        let error = Self::new(StatusCode::TOO_MANY_REQUESTS, error, "wait, then retry");
        Self { retry_after: Some(after), ..error }
    }

    /// Adds a member to the response.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    /// Returns the response.
    pub(crate) fn reply(&self) -> Reply {
        let Self { error, remedy, details, .. } = self;
        let mut reply = json(self.status, &Body { error, remedy, details });
        if self.status == StatusCode::UNAUTHORIZED {
            let challenge = HeaderValue::from_static("Bearer");
            reply.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        match self.retry_after {
            Some(after) => retry_after(reply, after),
            None => reply,
        }
    }
}

impl From<PeopleError> for ApiError {
    fn from(error: PeopleError) -> Self {
        match error {
            PeopleError::NotFound => Self::not_found(),
            PeopleError::Forbidden(reason) => {
                let (error, remedy) =
                    reason.split_once("; ").unwrap_or((reason, "ask an operator"));
                Self::new(StatusCode::FORBIDDEN, error, remedy)
            }
            PeopleError::Invalid(errors) => {
                let fields: Map<String, Value> =
                    errors.iter().map(|it| (it.field.clone(), it.message.clone().into())).collect();
                let shown = PeopleError::Invalid(errors).to_string();
                let remedy = "correct the values in `fields`";
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, shown, remedy).with("fields", fields)
            }
            PeopleError::Rejected(reason) => {
                let remedy = "correct the arguments, or ask for the scopes of the tool";
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, reason, remedy)
            }
            PeopleError::Store(StoreError::BytesExceeded) => Self::new(
                StatusCode::INSUFFICIENT_STORAGE,
                "the caller of the task has used up its bytes in the store",
                "delete ended tasks of the caller, or raise `max_store_per_caller`",
            ),
            error => {
                tracing::warn!(%error, "a request of the console failed");
                Self::unavailable(RETRY)
            }
        }
    }
}
