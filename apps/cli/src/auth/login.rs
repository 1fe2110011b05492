//! `outlive login`: gets a token for a server, and stores it.

use std::{env, path::PathBuf, process::ExitCode, sync::Arc};

use outlive::{
    auth::client::{CredentialLocation, LoginInfo, OAuthBuilder, OAuthError, OAuthRequest},
    client::{Client, ClientError, Error},
};

use super::{
    AtUpstream, Credentials, Person, address, credentials::OwnClient, trouble, whoami::Shown,
};
use crate::{
    call::{screen::Screen, server},
    error::{CliError, Kind, Result},
    runtime::block_on,
};

/// Logs in to a server, in the browser.
///
/// With --upstream, logs in at an upstream of `outlive serve`, once for the server and all of its replicas.
#[derive(clap::Args)]
#[command(after_help = "\
The login is stored in the data folder and renewed automatically. It is encrypted with a key in the system's keyring. Without \
a keyring, or with OUTLIVE_KEYRING=off, only the file's mode protects it. `outlive call`, `tasks` and `inspect` use the login.
A login at an upstream is in the store of the server, sealed with the server's key.

Examples:
  outlive login https://example.com/mcp
  outlive login https://example.com/mcp --no-browser
  outlive login --upstream linear
  outlive login https://example.com/mcp --client-id 4f1c --client-secret-env SECRET --port 8976")]
pub(crate) struct Args {
    /// URL of the server
    #[arg(conflicts_with = "upstream")]
    url: Option<String>,
    /// Opens no browser: prints the login page's URL, and reads the final URL from standard input
    #[arg(long)]
    no_browser: bool,
    /// Scope to request if the server names none; may be repeated
    #[arg(long = "scope", value_name = "SCOPE", conflicts_with = "upstream")]
    scopes: Vec<String>,
    /// ID of a client that you registered by hand, for servers without dynamic client registration
    #[arg(long, value_name = "ID", conflicts_with = "upstream")]
    client_id: Option<String>,
    /// Environment variable with the secret of that client
    #[arg(long, value_name = "VARIABLE", requires = "client_id")]
    client_secret_env: Option<String>,
    /// Port of the redirect URI http://127.0.0.1:PORT/callback
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// PEM file of the certificates to trust, instead of the system's
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// Prints the login as JSON
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    at: AtUpstream,
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    block_on(Box::pin(async move {
        match (&args.at.upstream, &args.url) {
            (Some(name), _) => login_at_upstream(&args, name).await,
            (None, Some(url)) => login(&args, url).await,
            (None, None) => Err(CliError::usage("name a URL or an --upstream")),
        }
    }))
}

async fn login(args: &Args, url: &str) -> Result<ExitCode> {
    address(url)?;
    let (screen, credentials) = (Screen::new(), Credentials::open()?);
    let client = match &args.client_id {
        None => credentials.own_client(url)?,
        Some(id) => {
            let secret = args.client_secret_env.as_deref().map(secret_in).transpose()?;
            Some(OwnClient { id: id.clone(), secret, port: args.port })
        }
    };
    let port = args.port.or_else(|| client.as_ref().and_then(|client| client.port));
    let person = person(args, url, &screen).port(port);
    let oauth = credentials.oauth_as(url, client.as_ref()).scopes(&args.scopes);
    let logged_in = log_in(args, url, oauth, &person).await?;
    // Store the client only after a successful login.
    if let Some(client) = client.filter(|_| args.client_id.is_some()) {
        credentials.keep_client(url, &client)?;
    }
    let kept_in = credentials.kept_in(url)?;
    if let Some(CredentialLocation::File { file, why: Some(why), .. }) = &kept_in {
        let file = file.display();
        screen.talk(&format!(
            "{}, so the login is stored in {file}, which only you can read.",
            capital(why)
        ));
    }
    match args.json {
        true => screen.data(&Shown::new(url, &logged_in, kept_in).json().to_string()),
        false => screen.talk(&format!("Logged in to {url}.")),
    }
    Ok(ExitCode::SUCCESS)
}

/// Logs in at an upstream, for the server.
async fn login_at_upstream(args: &Args, name: &str) -> Result<ExitCode> {
    let screen = Screen::new();
    let (upstream, client) = args.at.open(name).await?;
    let person = person(args, &upstream.url, &screen).port(args.port);
    let logged_in = log_in(args, &upstream.url, client, &person).await?;
    upstream.apply().await;
    match args.json {
        true => screen.data(&Shown::at_upstream(&upstream.url, &logged_in).json().to_string()),
        false => screen.talk(&format!("Logged in to {name}.")),
    }
    Ok(ExitCode::SUCCESS)
}

fn person(args: &Args, url: &str, screen: &Arc<Screen>) -> Person {
    let person = Person::new(url, screen);
    if args.no_browser { person.without_browser() } else { person }
}

/// Logs in, even if there is a login already.
async fn log_in(args: &Args, url: &str, oauth: OAuthBuilder, person: &Person) -> Result<LoginInfo> {
    let server = address(url)?;
    let mut oauth = oauth.login(person.clone());
    if let Some(file) = &args.ca_file {
        oauth = oauth.ca_file(file);
    }
    let oauth = oauth.build();
    let before = oauth.login_info().await.map_err(|error| trouble(&error))?;
    if before.is_none() {
        // Connect first: the server's 401 response names its authorization server and scopes.
        let mut builder = Client::builder("outlive", env!("CARGO_PKG_VERSION"));
        if let Some(file) = &args.ca_file {
            builder = builder.ca_file(file);
        }
        let failed = |error| server::trouble(&error, Some(&server));
        let client = builder.token_source(oauth.clone()).connect(url).await;
        let client =
            client.map_err(|error| nowhere(url, &error).unwrap_or_else(|| failed(error)))?;
        client.server_info().await.map_err(failed)?;
        client.close().await;
    }
    match oauth.login_info().await.map_err(|error| trouble(&error))? {
        Some(logged_in) if person.has_begun() => Ok(logged_in),
        // The server accepts anonymous requests, or it accepted the existing login.
        _ => oauth.login().await.map_err(|error| match before {
            None if leads_nowhere(url, &error) => {
                let what = format!("{url} requires no login");
                CliError::new(Kind::Failed, what).remedy(format!("run `outlive inspect {url}`"))
            }
            _ => trouble(&error),
        }),
    }
}

/// Returns an error if the server requires a token but names no authorization server.
fn nowhere(url: &str, error: &Error) -> Option<CliError> {
    let Error::Client(ClientError::NoToken(why)) = error else { return None };
    let why = why.downcast_ref::<OAuthError>()?;
    leads_nowhere(url, why).then(|| {
        let what = format!("{url} requires a token, but names no authorization server");
        CliError::unreachable(what).remedy(
            "ask the server's operator for a token, and pass it with --token-env VARIABLE or --token-file FILE",
        )
    })
}

/// Returns whether a login failed because the server has no authorization server.
///
/// The OAuth client then assumes that the server is its own authorization server.
fn leads_nowhere(url: &str, error: &OAuthError) -> bool {
    match error {
        OAuthError::NoRegistration { issuer } | OAuthError::NoMetadata { issuer } => {
            url.starts_with(issuer.as_str())
        }
        OAuthError::Refused { request, response } => {
            // A real authorization server gives a reason.
            *request == OAuthRequest::Registration && !response.has_code()
        }
        _ => false,
    }
}

/// Returns the text with its first letter in upper case.
fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

fn secret_in(variable: &str) -> Result<String> {
    let secret = env::var(variable).ok().map(|secret| secret.trim().to_owned());
    secret.filter(|secret| !secret.is_empty()).ok_or_else(|| {
        CliError::usage(format!("the environment variable {variable} is not set or empty"))
            .remedy(format!("{variable}=SECRET outlive login …"))
    })
}
