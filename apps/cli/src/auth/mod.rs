//! Being somebody at a server: `outlive login`, `outlive logout`, `outlive whoami`, and what other
//! commands show a server that wants to know who is calling.
//!
//! - `credentials`: what is kept, and where.
//! - `person`: the one who logs in. `browser`: where that is done, if there is one.

mod browser;
mod credentials;
mod login;
mod logout;
mod person;
mod whoami;

pub(crate) use credentials::{Credentials, trouble};
pub(crate) use login::{Args as LoginArgs, run as login};
pub(crate) use logout::{Args as LogoutArgs, run as logout};
pub(crate) use person::Person;
pub(crate) use whoami::{Args as WhoamiArgs, run as whoami};

use crate::{
    call::server::Server,
    error::{CliError, Result},
};

/// The address of a server, as it was written; commands need no login.
fn address(text: &str) -> Result<Server> {
    let server = Server::read(text)?;
    match server.url() {
        Some(_) => Ok(server),
        None => Err(CliError::usage(format!("`{text}` is no address of a server"))
            .remedy("addresses begin with http:// or https://")),
    }
}
