//! `outlive logout`: deletes the login to a server.

use std::{path::PathBuf, process::ExitCode};

use outlive::auth::client::OAuthBuilder;

use super::{AtUpstream, Credentials, address, trouble};
use crate::{
    call::screen::{Screen, shown},
    error::{CliError, Result},
    runtime::block_on,
};

/// Deletes the login to a server, and revokes it at the authorization server.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  outlive logout https://example.com/mcp\n  outlive logout --upstream linear"
)]
pub(crate) struct Args {
    /// URL of the server
    #[arg(conflicts_with = "upstream")]
    url: Option<String>,
    /// PEM file of the certificates to trust, instead of the system's
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// Prints whether you were logged in, as JSON
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    at: AtUpstream,
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    block_on(Box::pin(logout(args)))
}

async fn logout(args: Args) -> Result<ExitCode> {
    let screen = Screen::new();
    let (server, was_in) = match (&args.at.upstream, &args.url) {
        (Some(name), _) => {
            let (upstream, client) = args.at.open(name).await?;
            let was_in = log_out(&args, client).await?;
            upstream.apply().await;
            (name, was_in)
        }
        (None, Some(url)) => {
            let credentials = Credentials::open()?;
            address(url)?;
            let was_in = log_out(&args, credentials.oauth(url)?).await?;
            credentials.forget_client(url)?;
            (url, was_in)
        }
        (None, None) => return Err(CliError::usage("name a URL or an --upstream")),
    };
    match (args.json, was_in) {
        (true, was_in) => {
            screen.data(&serde_json::json!({"server": server, "loggedOut": was_in}).to_string());
        }
        (false, true) => screen.talk(&format!("Logged out of {}.", shown(server))),
        (false, false) => screen.talk(&format!("You were not logged in to {}.", shown(server))),
    }
    Ok(ExitCode::SUCCESS)
}

async fn log_out(args: &Args, mut oauth: OAuthBuilder) -> Result<bool> {
    if let Some(file) = &args.ca_file {
        oauth = oauth.ca_file(file);
    }
    oauth.build().logout().await.map_err(|error| trouble(&error))
}
