//! The two eras of the protocol, each behind a codec.
//!
//! The core works with self-contained requests, as 2026-07-28 sends them (`modern`). The codec of
//! the older versions (`legacy`) translates, with the data of the session. No code outside this
//! folder compares versions: a difference is a field of [`VersionRules`](crate::VersionRules) or
//! code of a codec.

pub mod client;
mod codecs;
mod error;
mod headers;
mod input;
mod legacy;
mod modern;
mod notify;
mod params;
mod request_scanner;
mod select;
mod server_codec;
mod string;
mod task_required;
mod tool_result;

pub use codecs::codec;
pub use headers::mirrored_header;
pub use input::{hosts_task, missing_for};
pub use legacy::check_version_header;
pub use modern::{LIST_ALL_TASKS, ListedTask, TASK_LIST, task_list, tasks_capability};
pub use select::headers_look_modern;
pub use server_codec::ServerCodec;
pub use task_required::task_required;

pub(crate) use error::encode_unread;
pub(crate) use legacy::{Reopened, open_session, reopen_session};
pub(crate) use params::Request;
pub(crate) use select::{SelectError, Selection, allows_batch, check_notification, select};
