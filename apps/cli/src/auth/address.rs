//! The address of a server, as an argument.

use crate::{
    call::server::Server,
    error::{CliError, Result},
};

/// The address of a server, as it was written; commands need no login.
pub(super) fn address(text: &str) -> Result<Server> {
    let server = Server::read(text)?;
    match server.url() {
        Some(_) => Ok(server),
        None => Err(CliError::usage(format!("`{text}` is no address of a server"))
            .remedy("addresses begin with http:// or https://")),
    }
}
