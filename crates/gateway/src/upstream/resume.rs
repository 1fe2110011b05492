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
        let _adopting = self.adopted.adopting().await;
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
        if !connection.serves_new_calls() || !self.put(&connection) {
            self.adopted.add(&connection);
        }
        self.watch(&connection, routed);
        Some(used)
    }
}
