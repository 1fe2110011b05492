//! The console of a server, and its address.

use outlive::server::{Server, http::HttpConfig};
use outlive_console::{Console, OAuthLogin};

use super::{
    config::{AuthConfig, Config, ConsoleConfig},
    secrets::secret,
};
use crate::error::{CliError, Result};

/// Adds the console, or only the answer page if the file needs it. Returns the console.
pub(super) fn add(
    http: HttpConfig,
    config: &Config,
    server: &Server,
) -> Result<(HttpConfig, Option<Console>)> {
    if config.has_console() {
        let console = build(config, server)?;
        return Ok((http.routes(console.clone()), Some(console)));
    }
    Ok(match config.has_answer_page() {
        true => (http.routes(Console::answer_page(server)), None),
        false => (http, None),
    })
}

fn build(config: &Config, server: &Server) -> Result<Console> {
    let ConsoleConfig { path, operators, viewers, owners_only, .. } = &config.console;
    let ConsoleConfig { operator_scope, viewer_scope, .. } = &config.console;
    let mut console = Console::new(server)
        .path(path)
        .owners_only(*owners_only)
        .session_idle_timeout(config.console.session_idle_timeout)
        .session_ttl(config.console.session_ttl);
    if let Some(url) = config.public_url() {
        console = console.public_url(url);
    }
    for person in operators {
        console = console.operator(person);
    }
    for person in viewers {
        console = console.viewer(person);
    }
    if let Some(scope) = operator_scope {
        console = console.operator_scope(scope);
    }
    if let Some(scope) = viewer_scope {
        console = console.viewer_scope(scope);
    }
    if let Some(auth) = &config.auth {
        console = console.login(login(auth, &config.console)?);
    }
    console.build().map_err(CliError::usage)
}

/// Returns the OAuth client of the console.
fn login(auth: &AuthConfig, console: &ConsoleConfig) -> Result<OAuthLogin> {
    let login = OAuthLogin::new(&auth.resource);
    let Some(id) = console.client_id.clone() else { return Ok(login) };
    let variable = console.client_secret_env.as_deref();
    let secret = variable.map(|variable| secret(variable, "SECRET")).transpose()?;
    Ok(login.configure(move |oauth| match &secret {
        Some(secret) => oauth.client_id(&id).client_secret(secret.as_str()),
        None => oauth.client_id(&id),
    }))
}
