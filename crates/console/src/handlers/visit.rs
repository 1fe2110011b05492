//! One request to a page: its visitor, its form, and its errors.

use std::{sync::Arc, time::Duration};

use http::{HeaderValue, StatusCode, header};
use outlive::{
    people::{People, PeopleError, Visitor},
    store::StoreError,
};

use crate::{
    cookies,
    http::{Reply, page, retry_after},
    pages::{
        self,
        context::{PageContext, Theme},
        plain::Plain,
    },
    request::ConsoleRequest,
    sign_in::{check::SignedIn, form_token, token::Denied},
    state::ConsoleState,
    urlencoded::Values,
};

/// Time after which a client retries if the store is unavailable.
const RETRY: Duration = Duration::from_secs(5);

/// Name of the cookie that switches keys off.
pub(crate) const KEYS: &str = "outlive-keys";

/// A request of a visitor who is signed in.
pub(crate) struct Visit<'a> {
    pub(crate) state: &'a Arc<ConsoleState>,
    pub(crate) request: &'a ConsoleRequest,
    pub(crate) signed_in: SignedIn,
}

/// The reason why a request has no page.
#[derive(Debug)]
pub(crate) enum PageError {
    /// The object does not exist, or the visitor may not see it.
    NotFound,
    Forbidden(String),
    /// The form belongs to another page, session or origin.
    StaleForm,
    Invalid(String),
    /// The address supports only these methods.
    Method(&'static str),
    TooMany(Duration),
    Unavailable(Duration),
}

impl Visit<'_> {
    pub(crate) fn people(&self) -> &People {
        &self.state.people
    }

    pub(crate) fn visitor(&self) -> &Visitor {
        &self.signed_in.visitor
    }

    /// Returns the parts of the page that depend on its visitor.
    pub(crate) async fn context(&self) -> Result<PageContext, PageError> {
        let Self { state, request, signed_in } = self;
        let vault = &state.sign_in.vault;
        let session = signed_in.session.as_ref().map_or("", |session| session.digest.as_str());
        Ok(PageContext {
            visitor_name: signed_in.name.clone(),
            role: signed_in.visitor.role(),
            inbox_count: state.people.inbox_count(&signed_in.visitor).await?,
            base: request.base(),
            form_token: form_token::create(vault, session, &request.path),
            is_live: true,
            now: vault.now(),
            theme: theme(request),
            has_keys: cookies::get(request.headers(), KEYS) != Some("off"),
        })
    }

    /// Returns the values of a form that this page submitted. Counts a change of the visitor.
    pub(crate) fn form(&self) -> Result<Values, PageError> {
        let Self { state, request, signed_in } = self;
        let session = signed_in.session.as_ref().ok_or(PageError::StaleForm)?;
        let values = request.form();
        let token = values.get(form_token::FIELD).unwrap_or_default();
        if !state.sign_in.is_own_form(request, &session.digest, &request.path, token) {
            return Err(PageError::StaleForm);
        }
        let now = state.sign_in.vault.instant();
        state.writes.admit(&signed_in.key, now).map_err(PageError::TooMany)?;
        Ok(values)
    }
}

impl PageError {
    /// Returns the page of the error.
    pub(crate) fn reply(&self, request: &ConsoleRequest) -> Reply {
        let base = request.base();
        let plain = Plain { base: &base, theme: theme(request) };
        let (status, html) = match self {
            Self::NotFound => (StatusCode::NOT_FOUND, pages::error::not_found(&plain)),
            Self::Forbidden(reason) => {
                (StatusCode::FORBIDDEN, pages::error::forbidden(&plain, reason))
            }
            Self::StaleForm => (StatusCode::FORBIDDEN, pages::error::stale_form(&plain)),
            Self::Invalid(reason) => {
                (StatusCode::BAD_REQUEST, pages::error::invalid(&plain, reason))
            }
            Self::Method(_) => {
                (StatusCode::METHOD_NOT_ALLOWED, pages::error::method_not_allowed(&plain))
            }
            Self::TooMany(_) => {
                (StatusCode::TOO_MANY_REQUESTS, pages::error::too_many_requests(&plain))
            }
            Self::Unavailable(_) => {
                let submitted = (!request.is_read()).then(|| request.form());
                let html = pages::error::unavailable(&plain, submitted.as_ref());
                (StatusCode::SERVICE_UNAVAILABLE, html)
            }
        };
        let mut reply = page(status, html.into_string());
        match self {
            Self::TooMany(after) | Self::Unavailable(after) => retry_after(reply, *after),
            Self::Method(allowed) => {
                reply.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
                reply
            }
            _ => reply,
        }
    }
}

/// Returns the theme that the visitor chose.
pub(crate) fn theme(request: &ConsoleRequest) -> Theme {
    let chosen = cookies::get(request.headers(), cookies::THEME);
    chosen.and_then(Theme::from_name).unwrap_or_default()
}

impl From<PeopleError> for PageError {
    fn from(error: PeopleError) -> Self {
        match error {
            PeopleError::NotFound => Self::NotFound,
            PeopleError::Forbidden(reason) => Self::Forbidden(sentence(reason)),
            error @ (PeopleError::Invalid(_) | PeopleError::Rejected(_)) => {
                Self::Invalid(sentence(&error.to_string()))
            }
            PeopleError::Store(StoreError::BytesExceeded) => Self::Forbidden(
                "The caller of the task has used up its bytes in the store.".to_owned(),
            ),
            error => {
                tracing::warn!(%error, "a page of the console failed");
                Self::Unavailable(RETRY)
            }
        }
    }
}

impl From<Denied> for PageError {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::Rejected => Self::NotFound,
            Denied::Unavailable(after) => Self::Unavailable(after),
        }
    }
}

/// Returns the text of an error as a sentence.
fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", chars.as_str())
}
