//! User interaction of a login: opens a page and receives the redirect.

mod loopback;
mod manual;
mod prepare;

pub use loopback::LoopbackLogin;
pub use manual::ManualLogin;
pub(super) use prepare::DynLogin;
pub use prepare::{Login, PendingLogin, RedirectParams};
