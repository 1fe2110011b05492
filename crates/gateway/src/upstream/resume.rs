//! Connections to processes that an earlier run of a call used.

use std::sync::Arc;

use super::{lease::InUse, open::adopt, pool::Pool};

impl Pool {
    /// Returns the right to use the connection to a process, which is opened if an earlier gateway
    /// started the process. Returns `None` if the process has ended.
    pub(super) async fn resume(self: &Arc<Self>, process: &str) -> Option<InUse> {
        if let Some(used) = self.find_process(process) {
            return Some(used);
        }
        let _opening = self.adopted.opening.lock().await;
        if let Some(used) = self.find_process(process) {
            return Some(used);
        }
        let (connection, routed) = match adopt(self.state(), process).await? {
            Ok((connection, routed)) => (Arc::new(connection), routed),
            Err(problem) => {
                tracing::warn!(
                    reason = problem.reason,
                    "cannot use a process of an upstream again"
                );
                return None;
            }
        };
        let used = InUse::new(&connection);
        let has_ended = connection.supervised().is_some_and(|supervised| supervised.had_ended());
        if has_ended || !self.put(&connection) {
            self.adopted.add(&connection);
        }
        self.watch(&connection, Some(routed));
        Some(used)
    }
}
