//! `--upstream NAME` of the authentication commands: the login of a server at its upstream.

use std::path::PathBuf;

use outlive::auth::client::OAuthBuilder;

use crate::{
    error::{CliError, Result},
    serve::{ServerPlace, Sources, config},
    store::plain,
    upstreams::{file_or_here, forget_connections},
};

/// Selection of an upstream.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Upstreams of `outlive serve`")]
pub(super) struct AtUpstream {
    /// Upstream of a server, in place of a URL: the login belongs to the server
    #[arg(long, value_name = "NAME")]
    pub(super) upstream: Option<String>,
    /// File of the server [default: ./outlive.toml]
    #[arg(long, value_name = "FILE", requires = "upstream")]
    file: Option<PathBuf>,
    #[command(flatten)]
    place: ServerPlace,
}

/// An upstream with a login of the server.
pub(super) struct UpstreamLogin {
    pub(super) name: String,
    pub(super) url: String,
    data: PathBuf,
}

impl AtUpstream {
    /// Opens the login of the server at an upstream. The tokens of the OAuth client are in the store
    /// of the server.
    ///
    /// # Errors
    ///
    /// Returns an error if the file lacks the upstream, or if the server has no login there.
    pub(super) async fn open(&self, name: &str) -> Result<(UpstreamLogin, OAuthBuilder)> {
        let file = file_or_here(self.file.as_deref()).ok_or_else(|| {
            CliError::usage("this folder has no outlive.toml")
                .remedy("name the file with --file FILE")
        })?;
        let config = config::load(&file)?;
        let Some(at) = config.upstreams.iter().position(|upstream| upstream.name == name) else {
            let known: Vec<&str> =
                config.upstreams.iter().map(|upstream| upstream.name.as_str()).collect();
            let what = format!("{} has no upstream `{}`", file.display(), plain(name));
            let remedy = match known.as_slice() {
                [] => "add [upstreams.NAME]".to_owned(),
                known => format!("use one of: {}", known.join(", ")),
            };
            return Err(CliError::usage(what).remedy(remedy));
        };
        let sources = Sources::new(Some(&file));
        if let Some((_, reason)) =
            sources.misconfigured(&config).into_iter().find(|(known, _)| known == name)
        {
            let (what, remedy) = reason.split_once("; ").unwrap_or((&reason, "correct the file"));
            return Err(CliError::usage(format_args!("upstream `{name}`: {what}")).remedy(remedy));
        }
        let upstream = sources.upstreams(&config).swap_remove(at);
        let logins = self.place.logins(&config, &file).await?;
        match (upstream.address(), upstream.login_client(logins)) {
            (Some(url), Some(client)) => {
                let (name, url, data) = (name.to_owned(), url.to_owned(), self.place.data(&file)?);
                Ok((UpstreamLogin { name, url, data }, client))
            }
            _ => Err(CliError::usage(format_args!("the server has no login at `{name}`"))
                .remedy(format_args!("write auth = {{ kind = \"login\" }} in [upstreams.{name}]"))),
        }
    }
}

impl UpstreamLogin {
    /// Makes a running server use the changed login at once.
    pub(super) async fn apply(&self) {
        forget_connections(&self.data, &self.name).await;
    }
}
