//! Runs a task again, as a new task.

use outlive_protocol::{MethodResult, Outcome, Principal, ProtocolError, StoredCall};
use outlive_tasks::store::{StoreError, TaskId};
use outlive_wire::ContentBlock;
use serde_json::{Value, value::to_raw_value};

use super::{
    error::PeopleError,
    roles::Visitor,
    state::{People, event},
};

impl People {
    /// Creates a new task with the call of another one, and other arguments if some are given.
    ///
    /// The new task belongs to the same principal if its person starts it, else to the operator.
    /// The server executes the call as any other: the scopes of the visitor, limits, the schema and
    /// the approval gate apply again. Both tasks are linked.
    ///
    /// # Errors
    ///
    /// [`NotFound`](PeopleError::NotFound) if the visitor has no such task;
    /// [`Forbidden`](PeopleError::Forbidden) for an MCP token, for a visitor that only sees the
    /// task, and without a server; [`Rejected`](PeopleError::Rejected) if the server rejects the
    /// call.
    pub async fn rerun(
        &self,
        visitor: &Visitor,
        id: &TaskId,
        arguments: Option<Value>,
    ) -> Result<TaskId, PeopleError> {
        let task = self.find_task(visitor, id).await?;
        visitor.require_person()?;
        let is_own = visitor.owns_task(&task);
        if !is_own {
            visitor.require_operator()?;
        }
        if !visitor.sees_contents(&task) {
            return Err(PeopleError::Forbidden(
                "only the task's person may run it again, because its arguments are hidden",
            ));
        }
        let server = self.server()?;
        let arguments = match arguments {
            Some(Value::Object(members)) => Some(to_raw_value(&members)),
            Some(_) => return Err(PeopleError::field("arguments", "must be an object")),
            None => None,
        };
        let arguments = arguments
            .transpose()
            .map_err(|error| PeopleError::field("arguments", error.to_string()))?;
        let key = if is_own { task.summary.principal.as_str() } else { visitor.seal_key() };
        let principal: Principal = visitor.principal_for(key).ok_or(PeopleError::NotFound)?;
        let detail = self.store().inspect(id).await?.ok_or(PeopleError::NotFound)?;
        let stored: StoredCall = serde_json::from_str(detail.request.get()).map_err(|error| {
            PeopleError::Rejected(format!("the stored call is invalid: {error}"))
        })?;
        let profile = &server.env().profile;
        let call = stored.rerun(principal.clone(), profile, id.as_str(), arguments.as_deref());
        let outcome = server.execute(call.map_err(rejected)?).await.map_err(rejected)?;
        let new = created(outcome)?;
        let reason = Some(format!("of {}", id.as_str()));
        self.record(vec![event(visitor, principal.key(), &new, "rerun", reason)]).await?;
        Ok(new)
    }
}

/// Returns the ID of the new task.
fn created(outcome: Outcome) -> Result<TaskId, PeopleError> {
    match outcome.typed() {
        Outcome::Task(task) => Ok(TaskId::new(task.id)),
        Outcome::Complete(MethodResult::Tool(result)) => {
            let texts = result.content.iter().filter_map(|block| match block {
                ContentBlock::Text(text) => Some(text.text.as_str()),
                _ => None,
            });
            Err(PeopleError::Rejected(texts.collect::<Vec<_>>().join("\n")))
        }
        _ => Err(PeopleError::Rejected("the call did not become a task".to_owned())),
    }
}

fn rejected(error: ProtocolError) -> PeopleError {
    match error {
        ProtocolError::Unavailable { .. } => PeopleError::Store(StoreError::Unavailable(
            "the task was not created; retry".to_owned(),
        )),
        error => PeopleError::Rejected(error.to_string()),
    }
}
