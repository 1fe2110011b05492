//! `outlive logout`: deletes the login to a server.

use std::{path::PathBuf, process::ExitCode};

use super::{Credentials, address, trouble};
use crate::{
    call::screen::{Screen, shown},
    error::Result,
    runtime::block_on,
};

/// Deletes the login to a server, and revokes it at the authorization server.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  outlive logout https://example.com/mcp")]
pub(crate) struct Args {
    /// URL of the server
    url: String,
    /// PEM file of the certificates to trust, instead of the system's
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// Prints whether you were logged in, as JSON
    #[arg(long)]
    pub(super) json: bool,
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    block_on(Box::pin(logout(args)))
}

async fn logout(args: Args) -> Result<ExitCode> {
    let (url, screen, credentials) = (&args.url, Screen::new(), Credentials::open()?);
    address(url)?;
    let mut oauth = credentials.oauth(url)?;
    if let Some(file) = &args.ca_file {
        oauth = oauth.ca_file(file);
    }
    let was_in = oauth.build().logout().await.map_err(|error| trouble(&error))?;
    credentials.forget_client(url)?;
    match (args.json, was_in) {
        (true, was_in) => {
            screen.data(&serde_json::json!({"server": url, "loggedOut": was_in}).to_string());
        }
        (false, true) => screen.talk(&format!("Logged out of {}.", shown(url))),
        (false, false) => screen.talk(&format!("You were not logged in to {}.", shown(url))),
    }
    Ok(ExitCode::SUCCESS)
}
