//! One call of the API: its visitor, its parameters and its body.

use std::{collections::BTreeMap, sync::Arc};

use http::header;
use outlive::{
    people::{Cursor, People, Visitor},
    store::TaskId,
    wire::RawJson,
};
use serde::de::DeserializeOwned;

use super::{error::ApiError, index::Endpoint};
use crate::{
    request::ConsoleRequest, sign_in::check::SignedIn, state::ConsoleState, urlencoded::Values,
};

/// Number of entries of a page, unless the client sets `limit`.
const DEFAULT_LIMIT: usize = 50;

/// Largest `limit`.
const MAX_LIMIT: usize = 200;

/// A call of an endpoint.
pub(crate) struct ApiCall<'a> {
    pub(crate) state: &'a Arc<ConsoleState>,
    pub(crate) request: &'a ConsoleRequest,
    pub(crate) signed_in: &'a SignedIn,
    pub(crate) endpoint: &'static Endpoint,
    /// Values of the parameters in the path.
    pub(crate) params: Vec<String>,
    pub(crate) query: Values,
}

impl ApiCall<'_> {
    pub(crate) fn people(&self) -> &People {
        &self.state.people
    }

    pub(crate) fn visitor(&self) -> &Visitor {
        &self.signed_in.visitor
    }

    /// Returns the task in the path.
    pub(crate) fn task(&self) -> TaskId {
        TaskId::new(self.param(0))
    }

    /// Returns a parameter in the path by its position.
    pub(crate) fn param(&self, index: usize) -> &str {
        self.params.get(index).map_or("", String::as_str)
    }

    /// Returns the number of entries to return.
    pub(crate) fn limit(&self) -> Result<usize, ApiError> {
        let Some(limit) = self.query.get("limit") else { return Ok(DEFAULT_LIMIT) };
        let limit = limit.parse().ok().filter(|limit| (1..=MAX_LIMIT).contains(limit));
        limit.ok_or_else(|| {
            let remedy = format!("send a number from 1 to {MAX_LIMIT}");
            ApiError::bad_request("`limit` is not valid", remedy)
        })
    }

    /// Returns the position to continue from.
    pub(crate) fn after<C: Cursor>(&self) -> Result<Option<C>, ApiError> {
        let people = &self.state.people;
        let open = |cursor: &str| people.open_cursor(&self.signed_in.visitor, cursor);
        Ok(self.query.get("after").map(open).transpose()?)
    }

    /// Returns the cursor of the next page.
    pub(crate) fn next<C: Cursor>(&self, position: Option<C>) -> Option<String> {
        self.state.people.seal_cursor(&self.signed_in.visitor, &position?)
    }

    /// Returns the body: a JSON object with known members. An empty body is an empty object.
    pub(crate) fn body<T: DeserializeOwned>(&self) -> Result<T, ApiError> {
        let body: &[u8] = if self.request.body.is_empty() { b"{}" } else { &self.request.body };
        let content_type = self.request.headers().get(header::CONTENT_TYPE);
        let is_json = content_type.and_then(|it| it.to_str().ok()).is_some_and(|it| {
            it.split(';')
                .next()
                .is_some_and(|it| it.trim().eq_ignore_ascii_case("application/json"))
        });
        if !is_json && !self.request.body.is_empty() {
            let remedy = "send JSON with `Content-Type: application/json`";
            return Err(ApiError::bad_request("the body is not JSON", remedy));
        }
        let invalid = |error: serde_json::Error| {
            ApiError::bad_request(format!("the body is not valid: {error}"), self.body_remedy())
        };
        let members: BTreeMap<String, RawJson> = serde_json::from_slice(body).map_err(invalid)?;
        match members.keys().find(|name| !self.endpoint.body.contains(&name.as_str())) {
            Some(unknown) => {
                let error = format!("the body has an unknown member `{unknown}`");
                Err(ApiError::bad_request(error, self.body_remedy()))
            }
            None => serde_json::from_slice(body).map_err(invalid),
        }
    }

    fn body_remedy(&self) -> String {
        match self.endpoint.body {
            [] => "send no body".to_owned(),
            members => format!("send a JSON object with `{}`", members.join("`, `")),
        }
    }
}
