//! `outlive login`: gets a token for a server, and keeps it.

use std::{env, path::PathBuf, process::ExitCode};

use outlive::{
    auth::client::{CredentialLocation, LoginInfo, OAuth, OAuthError},
    client::{Client, ClientError, Error},
};

use super::{Credentials, Person, address, credentials::OwnClient, trouble, whoami::Shown};
use crate::{
    call::{
        block_on,
        screen::Screen,
        server::{self, Server},
    },
    error::{CliError, Kind, Result},
};

/// Logs in to a server, in the browser.
#[derive(clap::Args)]
#[command(after_help = "\
The login is kept in the data folder, sealed with a key in the system's key store where there is one, else in a file that only
its owner can read, and renewed while it can be. OUTLIVE_KEYRING=off leaves the key store alone.
`outlive call`, `tasks` and `inspect` use it.

Examples:
  outlive login https://example.com/mcp
  outlive login https://example.com/mcp --no-browser
  outlive login https://example.com/mcp --client-id 4f1c --client-secret-env SECRET --port 8976")]
pub(crate) struct Args {
    /// The address of the server
    url: String,
    /// Opens no browser: shows the page's address, and reads where it has led from standard input
    #[arg(long)]
    no_browser: bool,
    /// A scope to ask for, where the server does not say what it wants; may be repeated
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<String>,
    /// The id of a client that was registered by hand, where programs cannot register themselves
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// The environment variable that has the secret of that client
    #[arg(long, value_name = "VARIABLE", requires = "client_id")]
    client_secret_env: Option<String>,
    /// The port of this machine that the login comes back to, as http://127.0.0.1:PORT/callback
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// A PEM file of the certificates to trust, in place of the system's
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// Prints as whom, as JSON
    #[arg(long)]
    pub(super) json: bool,
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    block_on(Box::pin(login(args)))
}

async fn login(args: Args) -> Result<ExitCode> {
    let (server, screen, credentials) = (address(&args.url)?, Screen::new(), Credentials::open()?);
    let client = match &args.client_id {
        None => credentials.own_client(&args.url)?,
        Some(id) => {
            let secret = args.client_secret_env.as_deref().map(secret_in).transpose()?;
            Some(OwnClient { id: id.clone(), secret, port: args.port })
        }
    };
    let port = args.port.or_else(|| client.as_ref().and_then(|client| client.port));
    let mut person = Person::new(&args.url, &screen).port(port);
    if args.no_browser {
        person = person.without_browser();
    }
    let mut oauth =
        credentials.oauth_as(&args.url, client.as_ref()).scopes(&args.scopes).login(person.clone());
    if let Some(file) = &args.ca_file {
        oauth = oauth.ca_file(file);
    }
    let oauth = oauth.build();
    let logged_in = log_in(&args, &server, &oauth, &person).await?;
    // Only one that works is remembered.
    if let Some(client) = client.filter(|_| args.client_id.is_some()) {
        credentials.keep_client(&args.url, &client)?;
    }
    let kept_in = credentials.kept_in(&args.url)?;
    if let Some(CredentialLocation::File { file, why: Some(why), .. }) = &kept_in {
        let file = file.display();
        screen.talk(&format!(
            "{}, so the login is kept in {file}, which only you can read.",
            capital(why)
        ));
    }
    match args.json {
        true => screen.data(&Shown::new(&args.url, &logged_in, kept_in).json().to_string()),
        false => screen.talk(&format!("You are logged in to {}.", args.url)),
    }
    Ok(ExitCode::SUCCESS)
}

/// Logs in, whether somebody is logged in or not.
async fn log_in(args: &Args, server: &Server, oauth: &OAuth, person: &Person) -> Result<LoginInfo> {
    let before = oauth.login_info().await.map_err(|error| trouble(&error))?;
    if before.is_none() {
        // The server is asked first: a refusal says best where to go and what for.
        let mut builder = Client::builder("outlive", env!("CARGO_PKG_VERSION"));
        if let Some(file) = &args.ca_file {
            builder = builder.ca_file(file);
        }
        let failed = |error| server::trouble(&error, Some(server));
        let client = builder.token_source(oauth.clone()).connect(args.url.as_str()).await;
        let client =
            client.map_err(|error| nowhere(&args.url, &error).unwrap_or_else(|| failed(error)))?;
        client.server_info().await.map_err(failed)?;
        client.close().await;
    }
    match oauth.login_info().await.map_err(|error| trouble(&error))? {
        Some(logged_in) if person.has_begun() => Ok(logged_in),
        // It lets anybody say hello, or takes the login that there was.
        _ => oauth.login().await.map_err(|error| match before {
            None if leads_nowhere(&args.url, &error) => {
                let what = format!("{} wants no login: it answers without one", args.url);
                CliError::new(Kind::Failed, what).remedy(format!("`outlive inspect {}`", args.url))
            }
            _ => trouble(&error),
        }),
    }
}

/// Says that a server wants a token and names nowhere to get one, if that is why there is none.
fn nowhere(url: &str, error: &Error) -> Option<CliError> {
    let Error::Client(ClientError::NoToken(why)) = error else { return None };
    let why = why.downcast_ref::<OAuthError>()?;
    leads_nowhere(url, why).then(|| {
        let what = format!("{url} wants a token, and names no place to log in");
        CliError::unreachable(what).remedy(
            "ask the server's operator for a token: --token-env VARIABLE or --token-file FILE",
        )
    })
}

/// Whether a login failed because the server, which was taken for its own authorization server, is
/// none.
fn leads_nowhere(url: &str, error: &OAuthError) -> bool {
    match error {
        OAuthError::NoRegistration { issuer } | OAuthError::NoMetadata { issuer } => {
            url.starts_with(issuer.as_str())
        }
        OAuthError::Refused { refusal, what } => {
            // An authorization server gives a reason.
            *what == "the registration" && refusal.code == "no reason given"
        }
        _ => false,
    }
}

/// The same at the beginning of a sentence.
fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

fn secret_in(variable: &str) -> Result<String> {
    let secret = env::var(variable).ok().map(|secret| secret.trim().to_owned());
    secret.filter(|secret| !secret.is_empty()).ok_or_else(|| {
        CliError::usage(format!("the variable {variable} has no secret"))
            .remedy(format!("{variable}=… outlive login …"))
    })
}
