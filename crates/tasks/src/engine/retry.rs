//! Store operations that are repeated while the store is unavailable.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::state::EngineState;
use crate::store::{StoreError, StoreFuture};

const FIRST_DELAY: Duration = Duration::from_millis(50);
const MAX_DELAY: Duration = Duration::from_secs(2);

impl EngineState {
    /// Executes a store operation, and repeats it while the store is unavailable.
    pub(super) async fn retry<'a, T>(
        &self,
        operation: impl Fn() -> StoreFuture<'a, T>,
    ) -> Result<T, StoreError> {
        let (started, mut delay) = (Instant::now(), FIRST_DELAY);
        loop {
            match operation().await {
                Err(StoreError::Unavailable(_))
                    if started.elapsed() + delay < self.config.lease_duration =>
                {
                    sleep(delay).await;
                    delay = (delay * 2).min(MAX_DELAY);
                }
                done => return done,
            }
        }
    }
}
