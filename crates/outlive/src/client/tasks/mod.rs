//! Tasks of a server: handles, events, input responses, cancellation and resumption.

mod complete;
mod event_mode;
mod events;
mod handle;
mod list;
mod segments;
mod send;
mod starting;
mod watch;

pub use complete::TaskEvent;
pub use events::TaskEvents;
pub use handle::TaskHandle;
pub use list::TaskList;
pub use outlive_protocol::{
    Progress as TaskProgress,
    era::client::{TaskSnapshot, TaskStatus},
};
pub(crate) use segments::{Feed, fed};
pub(crate) use watch::{about, gone, look};
