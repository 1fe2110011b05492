//! Steps that must not be repeated, in calls that are not tasks.

use outlive_protocol::Principal;
use outlive_tasks::{JournalError, store::StoreError};
use serde_json::value::RawValue;

use crate::server::{
    durable_error::DurableError,
    env::environment::Env,
    error::{Error, Result},
};

/// Records in the store that a step begins. Returns whether this is the first time, and `None` if
/// there is no store.
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
