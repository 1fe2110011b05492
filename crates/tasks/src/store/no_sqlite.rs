//! Rejects SQLite files in builds without the feature `sqlite`.

use std::{path::PathBuf, sync::Arc};

use super::{PeopleStore, StoreError, StoreProbe};

#[expect(clippy::unused_async, reason = "its twin with the feature `sqlite` awaits")]
pub(super) async fn open(_: PathBuf) -> Result<Arc<dyn PeopleStore>, StoreError> {
    Err(missing())
}

#[expect(clippy::unused_async, reason = "its twin with the feature `sqlite` awaits")]
pub(super) async fn probe(_: PathBuf) -> Result<StoreProbe, StoreError> {
    Err(missing())
}

fn missing() -> StoreError {
    let why = "this program was built without SQLite; build it with the feature `sqlite`";
    StoreError::Unavailable(why.to_owned())
}
