//! [`AnswerLinks`]: addresses at which a person responds to one input request without signing in.

use std::{fmt, sync::Arc};

use outlive_protocol::StoredCall;
use outlive_schema::forms;
use outlive_tasks::store::{InputDetail, InputSource, StoreError, TaskId};
use outlive_wire::{
    ElicitAction, ElicitRequestParams, ElicitResult, InputRequest, RawJson, RequestedSchema,
};
use serde_json::{Map, Value, value::to_raw_value};

use super::inputs::shown_digest;
use crate::server::{AnswerToken, Env, Server, is_answerable};

/// Answer links of a server. Clones belong to the same server.
///
/// A link is the address of a page, such as `https://host/answer/TOKEN`. Its token is sealed for one
/// input request of one task, and works while that input request is open. The holder of a link needs
/// no other credential, so a link must not reach a text that a model reads unless the model may
/// respond as well.
#[derive(Clone)]
pub struct AnswerLinks {
    env: Arc<Env>,
}

/// An open input request, with the call that it belongs to.
pub struct OpenLink {
    env: Arc<Env>,
    principal: String,
    task: TaskId,
    detail: InputDetail,
    arguments: Option<RawJson>,
}

/// The reason why a response was not stored.
#[derive(Debug)]
#[non_exhaustive]
pub enum AnswerError {
    /// The content does not match the form. The text names the field.
    Invalid(String),
    /// The store is unavailable, or the caller has used up its bytes in the store.
    Store(StoreError),
}

impl AnswerLinks {
    /// Returns the answer links of a server.
    pub fn new(server: &Server) -> Self {
        Self { env: Arc::clone(server.env()) }
    }

    /// Returns the token of an answer link for an open input request, by its wire key.
    ///
    /// Returns `None` if the principal has no such open elicitation, or if its
    /// [`Audience`](crate::server::durable::Audience) excludes the holders of answer links.
    ///
    /// # Errors
    ///
    /// If the store cannot be read.
    pub async fn create(
        &self,
        principal: &str,
        task: &TaskId,
        name: &str,
    ) -> Result<Option<String>, StoreError> {
        let Some(tasks) = &self.env.tasks else { return Ok(None) };
        let detail = tasks.engine().store().open_input(principal, task, name).await?;
        Ok(detail.and_then(|it| AnswerToken::seal(&self.env, principal, task, &it.input)))
    }

    /// Opens the token of an answer link.
    ///
    /// Returns `None` for an unknown, changed, used, expired or foreign token, and if the input
    /// request is no longer open. The reasons are indistinguishable.
    ///
    /// # Errors
    ///
    /// If the store cannot be read.
    pub async fn open(&self, token: &str) -> Result<Option<OpenLink>, StoreError> {
        let Some(tasks) = &self.env.tasks else { return Ok(None) };
        let Some(AnswerToken { task, principal, name }) = AnswerToken::open(&self.env, token)
        else {
            return Ok(None);
        };
        let detail = tasks.engine().store().open_input(&principal, &task, &name).await?;
        let Some(detail) = detail.filter(|it| is_answerable(&self.env, &it.input)) else {
            return Ok(None);
        };
        let call: Option<StoredCall> = serde_json::from_str(detail.call.get()).ok();
        let arguments = call.and_then(|call| call.arguments());
        Ok(Some(OpenLink { env: Arc::clone(&self.env), principal, task, detail, arguments }))
    }
}

impl OpenLink {
    /// Returns the name of the tool.
    pub fn tool(&self) -> &str {
        &self.detail.tool
    }

    /// Returns the arguments of the call, exactly as the client sent them.
    pub fn arguments(&self) -> Option<&RawJson> {
        self.arguments.as_ref()
    }

    /// Returns the input request. It is an elicitation.
    pub fn request(&self) -> &InputRequest {
        &self.detail.input.request
    }

    /// Returns a digest of everything that a page shows: tool, call and input request.
    ///
    /// A page sends it back with the response, so that a person never answers another request than
    /// the one that was shown.
    pub fn digest(&self) -> String {
        shown_digest(&self.detail.tool, &self.detail.call, self.request())
    }

    /// Validates the value of one field of the form. The error is a predicate whose subject is the
    /// field, as in "must be a whole number".
    ///
    /// # Errors
    ///
    /// If the value does not match the field, or the form has no such field.
    pub fn check_field(&self, name: &str, value: &Value) -> Result<(), String> {
        let fields = self.form().into_iter().flat_map(|form| &form.properties.0);
        match fields.into_iter().find(|(known, _)| known == name) {
            Some((_, field)) => forms::check_field(field, value),
            None => Err("is not a field of the form".to_owned()),
        }
    }

    /// Stores the response of the person. `content` has the values of the form, if the person
    /// accepted. Returns `false` if the input request was no longer open.
    ///
    /// # Errors
    ///
    /// If the content does not match the form, or the store cannot be written.
    pub async fn respond(
        &self,
        action: ElicitAction,
        content: Map<String, Value>,
    ) -> Result<bool, AnswerError> {
        let content = match (action, self.form()) {
            (ElicitAction::Accept, Some(form)) => {
                let content = Value::Object(content).to_string();
                let content = forms::check(form, &content).map_err(AnswerError::Invalid)?;
                Some(to_raw_value(&content).map_err(|error| AnswerError::invalid(&error))?)
            }
            _ => None,
        };
        let response = ElicitResult { action, content, meta: None };
        let response = to_raw_value(&response).map_err(|error| AnswerError::invalid(&error))?;
        self.store(response).await.map_err(AnswerError::Store)
    }

    async fn store(&self, response: RawJson) -> Result<bool, StoreError> {
        let Some(tasks) = &self.env.tasks else { return Ok(false) };
        let Self { principal, task, .. } = self;
        let responses = vec![(self.detail.input.name.clone(), response)];
        let max_bytes = tasks.allowance(principal).max_bytes;
        let store = tasks.engine().store();
        let taken = store.respond(principal, task, InputSource::Link, responses, max_bytes).await?;
        let stored = taken == Some(1);
        if stored {
            let reason = "1 input response stored, by answer link".to_owned();
            tasks.audit(principal, task, "updated", Some(reason));
        }
        Ok(stored)
    }

    fn form(&self) -> Option<&RequestedSchema> {
        match self.request() {
            InputRequest::Elicit(ElicitRequestParams::Form(form)) => Some(&form.requested_schema),
            _ => None,
        }
    }
}

impl AnswerError {
    fn invalid(error: &serde_json::Error) -> Self {
        Self::Invalid(error.to_string())
    }
}

impl fmt::Display for AnswerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(reason) => write!(f, "the response does not match the form: {reason}"),
            Self::Store(error) => write!(f, "the response was not stored: {error}"),
        }
    }
}

impl std::error::Error for AnswerError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Invalid(_) => None,
            Self::Store(source) => Some(source),
        }
    }
}

impl fmt::Debug for AnswerLinks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnswerLinks")
    }
}

impl fmt::Debug for OpenLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenLink").field("task", &self.task).finish_non_exhaustive()
    }
}
