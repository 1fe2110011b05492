//! Features that an upstream offers to calls beyond the protocol's basics.

use outlive::{client::ServerInfo, wire::JsonObject};

/// Extension or experimental capability of servers that accept idempotency keys.
const IDEMPOTENCY: &str = "dev.outlive/idempotency";

/// Extension of servers whose tasks have partial results, and of clients that read them.
pub(crate) const PARTIALS: &str = "dev.outlive/task-partials";

/// Features that an upstream offers to calls.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Offered {
    /// Whether an idempotency key lets a call execute once.
    pub(crate) idempotency: bool,
    /// Whether a legacy upstream runs a call as a task on request.
    pub(crate) task_calls: bool,
    /// Whether the partial results of a task can be read.
    pub(crate) partials: bool,
}

impl Offered {
    pub(crate) fn new(server: &ServerInfo) -> Self {
        let declared = &server.capabilities;
        let has = |declared: &Option<JsonObject>, name: &str| {
            declared.as_ref().is_some_and(|declared| declared.contains_key(name))
        };
        let tasks = declared.tasks.as_ref();
        Self {
            idempotency: has(&declared.extensions, IDEMPOTENCY)
                || has(&declared.experimental, IDEMPOTENCY),
            task_calls: tasks.is_some_and(|it| it.pointer("/requests/tools/call").is_some()),
            partials: has(&declared.extensions, PARTIALS),
        }
    }
}
