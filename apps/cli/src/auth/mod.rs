//! Authentication: `outlive login`, `outlive logout`, `outlive whoami`, and the tokens that other
//! commands send.
//!
//! - `credentials`: the stored logins and their location. `at_upstream`: logins of a server at its
//!   upstreams, which are in the server's store.
//! - `person`: the interactive login. `browser`: the browser for it, if there is one.

mod address;
mod at_upstream;
mod browser;
mod credentials;
mod login;
mod logout;
mod person;
mod whoami;

use address::address;
use at_upstream::AtUpstream;
pub(crate) use browser::Browser;
pub(crate) use credentials::{Credentials, trouble};
pub(crate) use login::{Args as LoginArgs, run as login};
pub(crate) use logout::{Args as LogoutArgs, run as logout};
pub(crate) use person::Person;
pub(crate) use whoami::{Args as WhoamiArgs, run as whoami};
