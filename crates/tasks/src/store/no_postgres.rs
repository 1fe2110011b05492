//! Rejects PostgreSQL URLs in builds without the feature `postgres`.

use std::sync::Arc;

use super::{PeopleStore, StoreError, StoreProbe};

#[expect(clippy::unused_async, reason = "its twin with the feature `postgres` awaits")]
pub(super) async fn open(_: &str) -> Result<Arc<dyn PeopleStore>, StoreError> {
    Err(missing())
}

#[expect(clippy::unused_async, reason = "its twin with the feature `postgres` awaits")]
pub(super) async fn probe(_: &str) -> Result<StoreProbe, StoreError> {
    Err(missing())
}

fn missing() -> StoreError {
    let why = "this program was built without PostgreSQL; build it with the feature `postgres`";
    StoreError::Unavailable(why.to_owned())
}
