//! The part of a login that a person does: a page is opened, and what it leads to comes back.

mod loopback;
mod manual;
mod prepare;

pub use loopback::LoopbackLogin;
pub use manual::ManualLogin;
pub(super) use prepare::DynLogin;
pub use prepare::{Login, PendingLogin, RedirectParams};
