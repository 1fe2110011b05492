//! The server address argument of the authentication commands.

use crate::{
    call::server::Server,
    error::{CliError, Result},
};

/// Parses the URL of a server. Rejects commands: a server on stdio needs no login.
pub(super) fn address(text: &str) -> Result<Server> {
    let server = Server::read(text)?;
    match server.url() {
        Some(_) => Ok(server),
        None => Err(CliError::usage(format!("`{text}` is not the URL of a server"))
            .remedy("write a URL that starts with http:// or https://")),
    }
}
