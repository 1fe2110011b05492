//! Tasks of a server, from the client's side: watched, answered, cancelled, saved and taken up again.

mod drive;
mod events;
mod handle;
mod list;
mod observe;
mod send;

pub use drive::TaskEvent;
pub use events::TaskEvents;
pub use handle::TaskHandle;
pub use list::TaskList;
pub(crate) use observe::{about, gone, look, subscribe};
