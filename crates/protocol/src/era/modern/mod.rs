//! 2026-07-28: no handshake and no session. Every request carries version, capabilities and client
//! info in its `_meta`. The server stores nothing between requests.
//! Spec: <https://modelcontextprotocol.io/specification/2026-07-28/basic>

mod client;
mod client_meta;
mod codec;
mod decode;
mod encode;
mod extensions;
mod partial;
mod task;
mod task_list;
mod task_request;

pub use client::is_modern_error;
pub use extensions::tasks_capability;
pub use task_list::{LIST_ALL_TASKS, ListedTask, TASK_LIST, task_list};

pub(super) use client::ModernClientCodec;
pub(super) use client_meta::client_meta;
pub(super) use codec::ModernCodec;
