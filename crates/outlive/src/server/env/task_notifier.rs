//! Notifications of a server: its targets, and the sender while the server runs.

use std::sync::Arc;

use outlive_protocol::Clock;
use outlive_tasks::store::{PeopleStore, Subscription};

use crate::deliveries::{Composer, Outbox, Sender, Target};

/// Targets of a server, and the parts of its sender.
pub(crate) struct TaskNotifier {
    pub(crate) store: Arc<dyn PeopleStore>,
    pub(crate) targets: Vec<Target>,
    pub(crate) composer: Arc<dyn Composer>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl TaskNotifier {
    /// Returns the subscriptions of a new task of a tool.
    pub(crate) fn subscriptions(&self, tool: &str) -> Vec<Subscription> {
        self.targets.iter().flat_map(|target| target.subscriptions(tool)).collect()
    }

    /// Starts the sender. Must be called inside a Tokio runtime.
    pub(crate) fn start(&self) -> Sender {
        let sender = Sender::start(Outbox {
            queue: Arc::clone(&self.store) as _,
            composer: Arc::clone(&self.composer),
            clock: Arc::clone(&self.clock),
            targets: self.targets.clone(),
        });
        // A store keeps its listeners, so this one must not keep the sender.
        let wake = Arc::downgrade(sender.wake());
        self.store.subscribe(Arc::new(move |_, _| {
            if let Some(wake) = wake.upgrade() {
                wake.notify_one();
            }
        }));
        sender
    }
}
