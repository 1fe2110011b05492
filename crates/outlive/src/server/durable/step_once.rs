//! Records the start of steps that must not run twice, for inline calls.

use outlive_protocol::Principal;
use outlive_tasks::{JournalError, store::StoreError};
use serde_json::value::RawValue;

use crate::server::{
    durable_error::DurableError,
    env::environment::Env,
    error::{Error, Result},
};

/// Records the start of a step in the store. Returns `true` if the step has not started before, and
/// `None` if the server has no store.
pub(crate) async fn first_time(
    env: &Env,
    principal: &Principal,
    key: &str,
) -> Option<Result<bool, Error>> {
    let tasks = env.tasks.as_ref()?;
    let (store, charge) = (tasks.engine().store(), tasks.charge(principal));
    let (place, value) = (format!("step/{key}"), RawValue::NULL.to_owned());
    let kept = store.put_if_absent(&place, value, tasks.config.max_ttl, Some(&charge)).await;
    Some(kept.map(|there| there.is_none()).map_err(|error| match error {
        StoreError::BytesExceeded => {
            let limit = tasks.allowance(principal.key()).limit;
            DurableError::from(JournalError::BytesExceeded { limit }).into()
        }
        error => error.into(),
    }))
}
