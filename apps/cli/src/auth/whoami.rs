//! `outlive whoami`: shows the logins to servers, without their tokens.

use std::{
    process::ExitCode,
    time::{SystemTime, UNIX_EPOCH},
};

use outlive::auth::client::{CredentialLocation, LoginInfo};
use serde_json::{Value, json};

use super::{AtUpstream, Credentials, address, trouble};
use crate::{
    call::screen::{Screen, shown},
    error::{CliError, Kind, Result},
    runtime::block_on,
    store::{rough, stamp, wall_clock},
};

/// Shows the servers you are logged in to, and the scopes.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  outlive whoami\n  outlive whoami https://example.com/mcp --json\n  outlive whoami --upstream linear"
)]
pub(crate) struct Args {
    /// URL of a server [default: all servers with a login]
    #[arg(conflicts_with = "upstream")]
    url: Option<String>,
    /// Prints JSON
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    at: AtUpstream,
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    block_on(Box::pin(whoami(args)))
}

async fn whoami(args: Args) -> Result<ExitCode> {
    let screen = Screen::new();
    if let Some(name) = &args.at.upstream {
        let (upstream, client) = args.at.open(name).await?;
        let logged_in = client.build().login_info().await.map_err(|error| trouble(&error))?;
        let logged_in = logged_in.ok_or_else(|| {
            let what = format!("the server is not logged in at `{name}`");
            let remedy = format!("run `outlive login --upstream {name}`");
            CliError::new(Kind::Failed, what).remedy(remedy)
        })?;
        let found = Shown::at_upstream(&upstream.url, &logged_in);
        screen.data(&if args.json { found.json().to_string() } else { found.text() });
        return Ok(ExitCode::SUCCESS);
    }
    let credentials = Credentials::open()?;
    if let Some(url) = &args.url {
        address(url)?;
        let Some(logged_in) = look(&credentials, url).await? else {
            return Err(match credentials.closed(url, Kind::Failed)? {
                Some(trouble) => trouble,
                None => CliError::new(Kind::Failed, format!("you are not logged in to {url}"))
                    .remedy(format!("run `outlive login {url}`")),
            });
        };
        let found = Shown::new(url, &logged_in, credentials.kept_in(url)?);
        screen.data(&if args.json { found.json().to_string() } else { found.text() });
        return Ok(ExitCode::SUCCESS);
    }
    let mut all = Vec::new();
    for url in credentials.servers()? {
        if let Some(logged_in) = look(&credentials, &url).await? {
            let kept_in = credentials.kept_in(&url)?;
            all.push((url, logged_in, kept_in));
        } else if let Some(trouble) = credentials.closed(&url, Kind::Failed)? {
            screen.talk(&trouble.to_string());
        }
    }
    let is_empty = all.is_empty();
    let mut shown = all.iter().map(|(url, login, kept)| Shown::new(url, login, kept.clone()));
    match (args.json, is_empty) {
        (true, _) => screen.data(&Value::from_iter(shown.map(|it| it.json())).to_string()),
        (false, true) => {
            screen.talk("Not logged in to any server. Run `outlive login URL` to log in.")
        }
        (false, false) => shown.by_ref().for_each(|it| screen.data(&it.text())),
    }
    Ok(ExitCode::SUCCESS)
}

async fn look(credentials: &Credentials, url: &str) -> Result<Option<LoginInfo>> {
    credentials.oauth(url)?.build().login_info().await.map_err(|error| trouble(&error))
}

/// A login, for display.
pub(super) struct Shown<'a> {
    server: &'a str,
    login: &'a LoginInfo,
    kept_in: Option<CredentialLocation>,
    /// Whether the login is in the store of a server.
    is_in_store: bool,
}

impl<'a> Shown<'a> {
    pub(super) fn new(
        server: &'a str,
        login: &'a LoginInfo,
        kept_in: Option<CredentialLocation>,
    ) -> Self {
        Self { server, login, kept_in, is_in_store: false }
    }

    /// Creates the login of a server at an upstream.
    pub(super) fn at_upstream(server: &'a str, login: &'a LoginInfo) -> Self {
        Self { server, login, kept_in: None, is_in_store: true }
    }

    fn expires(&self) -> Option<u64> {
        self.login.expires.map(millis)
    }

    pub(super) fn json(&self) -> Value {
        let login = self.login;
        json!({
            "server": self.server,
            "issuer": login.issuer,
            "clientId": login.client_id,
            "scopes": login.scopes,
            "expires": self.expires().map(stamp),
            "renewable": login.renewable,
            "boundToKey": login.bound,
            "storedIn": self.stored_in(),
        })
    }

    fn stored_in(&self) -> Value {
        match &self.kept_in {
            Some(CredentialLocation::System { name, file, .. }) => {
                json!({"keyring": name, "file": file})
            }
            Some(CredentialLocation::File { file, .. }) => json!({"file": file}),
            None if self.is_in_store => json!("store of the server"),
            _ => Value::Null,
        }
    }

    fn kept(&self) -> String {
        match &self.kept_in {
            Some(CredentialLocation::System { name, file, .. }) => {
                format!("in {}, encrypted with a key in {name}", file.display())
            }
            Some(CredentialLocation::File { file, .. }) => {
                format!("in {}, which only you can read", file.display())
            }
            _ if self.is_in_store => "in the store of the server, sealed with its key".to_owned(),
            _ => "nowhere".to_owned(),
        }
    }

    fn text(&self) -> String {
        let login = self.login;
        let scopes = match login.scopes.is_empty() {
            true => "the default scopes of the server".to_owned(),
            false => login.scopes.join(" "),
        };
        let now = wall_clock();
        let span = match self.expires() {
            None => "no expiry time".to_owned(),
            Some(at) if at > now => format!("expires in {}", rough(at - now)),
            Some(_) => "expired".to_owned(),
        };
        let renewed = if login.renewable { ", renewed automatically" } else { "" };
        let key = if login.bound { ", bound to a key of this machine" } else { "" };
        let lines = [
            ("issuer", &login.issuer),
            ("client", &login.client_id),
            ("scopes", &scopes),
            ("token", &format!("{span}{renewed}{key}")),
            ("stored", &self.kept()),
        ];
        let lines = lines.map(|(name, value)| format!("\n  {name:<8}{}", shown(value)));
        format!("{}{}", shown(self.server), lines.concat())
    }
}

fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
