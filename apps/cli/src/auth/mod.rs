//! Being somebody at a server: `outlive login`, `outlive logout`, `outlive whoami`, and what other
//! commands show a server that wants to know who is calling.
//!
//! - `credentials`: what is kept, and where.
//! - `person`: the one who logs in. `browser`: where that is done, if there is one.

mod address;
mod browser;
mod credentials;
mod login;
mod logout;
mod person;
mod whoami;

use address::address;
pub(crate) use credentials::{Credentials, trouble};
pub(crate) use login::{Args as LoginArgs, run as login};
pub(crate) use logout::{Args as LogoutArgs, run as logout};
pub(crate) use person::Person;
pub(crate) use whoami::{Args as WhoamiArgs, run as whoami};
