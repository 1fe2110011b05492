//! Lists of a caller's tasks: `tasks/list` of 2025-11-25, and the list of the extension
//! `dev.outlive/task-list`, which includes tasks of every protocol version.

use std::sync::Arc;

use outlive_protocol::{
    Call, CallFuture, MethodResult, Outcome, ProtocolError, Seal, TASK_ORIGINS, era,
};
use outlive_tasks::store::{ListCursor, TaskRecord};
use outlive_wire::PaginatedRequestParams;

use crate::server::{
    caller_key::caller_key,
    env::{environment::Env, task_error::unavailable},
};

/// Handles `tasks/list`: lists the caller's tasks that its protocol version can see, oldest first.
pub(crate) fn list(env: &Arc<Env>, call: Arc<Call>) -> CallFuture {
    let env = Arc::clone(env);
    Box::pin(async move {
        let (views, next) = page(&env, &call, |dialect| call.rules().sees_task(dialect)).await?;
        let tasks = env.tasks()?;
        let views = views.into_iter().map(|view| tasks.show(view)).collect();
        Ok(Outcome::Complete(MethodResult::Tasks(views, next)))
    })
}

/// Handles `dev.outlive/tasks/list`: lists all tasks of the caller, oldest first, without results.
pub(crate) fn list_all(env: &Arc<Env>, call: Arc<Call>) -> CallFuture {
    let env = Arc::clone(env);
    Box::pin(async move {
        let tasks = env.tasks()?;
        if let Err(busy) = tasks.polls.enter(&caller_key(&call), env.profile.clock.now()) {
            env.counters.polls_rate_limited.add(1);
            let retry_after = busy.retry_after;
            return Err(ProtocolError::OverLimit { limit: "poll_rate".into(), retry_after });
        }
        let (views, next) = page(&env, &call, |_| true).await?;
        let listed = views.into_iter().map(|view| era::ListedTask {
            tool: view.tool.clone(),
            origin: view.origin.clone(),
            view: tasks.show(view),
        });
        let listed: Vec<_> = listed.collect();
        let page = era::task_list(&listed, next.as_deref()).map_err(ProtocolError::internal)?;
        Ok(Outcome::Complete(MethodResult::Raw(page)))
    })
}

/// Returns a page of the caller's tasks in the included dialects, and the cursor of the next page.
async fn page(
    env: &Env,
    call: &Call,
    includes: impl Fn(&str) -> bool,
) -> Result<(Vec<TaskRecord>, Option<String>), ProtocolError> {
    let tasks = env.tasks()?;
    if call.principal().is_anonymous() {
        // All anonymous callers share one principal, so a list would show the tasks of other
        // callers.
        return Err(ProtocolError::MethodNotFound { name: call.method_name().to_owned() });
    }
    let principal = call.principal().key();
    let context = [Seal::CURSOR, call.method_name(), principal];
    let params: PaginatedRequestParams = serde_json::from_str(call.params()).map_err(|error| {
        ProtocolError::invalid_params(format!("`params.cursor` must be a string: {error}"))
    })?;
    let invalid = || ProtocolError::invalid_params("invalid cursor; start again without one");
    let after: Option<ListCursor> = match params.cursor {
        None => None,
        Some(cursor) => {
            let place = env.profile.seal.open(&cursor, &context).ok_or_else(invalid)?;
            Some(serde_json::from_slice(&place).map_err(|_| invalid())?)
        }
    };
    let (size, store) = (env.profile.limits.page_size.max(1), tasks.engine().store());
    let mut views = Vec::new();
    for dialect in TASK_ORIGINS.into_iter().filter(|dialect| includes(dialect)) {
        let more = store.list(principal, dialect, after.as_ref(), size + 1).await;
        views.extend(more.map_err(|error| unavailable(&error))?);
    }
    views.sort_by(|one, other| (one.created_at, &one.id).cmp(&(other.created_at, &other.id)));
    if views.len() <= size {
        return Ok((views, None));
    }
    views.truncate(size);
    let last = views.last().map(|view| ListCursor::new(view.created_at, view.id.clone()));
    let place = serde_json::to_vec(&last).map_err(ProtocolError::internal)?;
    let sealed = env.profile.seal.seal(&place, &context);
    Ok((
        views,
        Some(sealed.ok_or_else(|| ProtocolError::internal("no random bytes for a cursor"))?),
    ))
}
