//! Settings that `outlive doctor` checks.

use super::args::Args;
use crate::{
    checks::{self, Check},
    error::Result,
    paths,
    serve::{
        ServerPlace, Source,
        config::{self, Config, Mistake, Mistakes},
    },
};
use std::path::{Path, PathBuf};

/// Settings that `outlive serve` would use: from the command line, then the file, then the
/// defaults.
pub(super) struct Plan {
    pub(super) file: Option<(PathBuf, Result<Config, Mistakes>)>,
    pub(super) data: PathBuf,
    pub(super) store: Option<String>,
    pub(super) listen: String,
    pub(super) token_file: Option<PathBuf>,
    pub(super) key_file: Option<PathBuf>,
    pub(super) json: bool,
}

impl Plan {
    pub(super) fn of(args: Args) -> Result<Self> {
        let here = || Some(PathBuf::from("outlive.toml")).filter(|file| file.exists());
        let file = args.file.or_else(here);
        let data = match (args.data_dir, &file) {
            (Some(data), _) => data,
            (None, Some(file)) if file.exists() => paths::of_server(Some(file))?,
            (None, _) => paths::of_server(None)?,
        };
        let file = file.map(|file| {
            let config = config_of(&file);
            (file, config)
        });
        let config = file.as_ref().and_then(|(_, config)| config.as_ref().ok());
        let server = config.map(|config| &config.server);
        Ok(Self {
            data,
            store: args.store.or_else(|| config.and_then(|config| config.tasks.store.clone())),
            listen: args
                .listen
                .or_else(|| server.map(|server| server.listen.clone()))
                .unwrap_or_else(|| config::LISTEN.to_owned()),
            token_file: args
                .token_file
                .or_else(|| server.and_then(|server| server.token_file.clone())),
            key_file: args
                .key_file
                .or_else(|| server.and_then(|server| server.seal_key_file.clone())),
            json: args.json,
            file,
        })
    }
}

/// Reads the configuration of a file or a script.
fn config_of(path: &Path) -> Result<Config, Mistakes> {
    match Source::at(path.to_owned()) {
        script @ Source::Script(_) => script
            .config()
            .map_err(|error| Mistakes(vec![Mistake { what: error.to_string(), remedy: None }])),
        _ => config::load(path),
    }
}

impl Plan {
    /// Returns the configuration, if the file is valid.
    pub(super) fn config(&self) -> Option<&Config> {
        self.file.as_ref().and_then(|(_, config)| config.as_ref().ok())
    }

    /// Returns the place of the server's logins at upstreams.
    pub(super) fn place(&self) -> ServerPlace {
        ServerPlace { data_dir: Some(self.data.clone()), store: self.store.clone() }
    }

    /// Checks whether other machines can reach the server without a token.
    pub(super) fn reach(&self) -> Option<Check> {
        let demo;
        let config = match &self.file {
            Some(_) => self.config()?,
            None => {
                demo = config::demo();
                &demo
            }
        };
        let knows_callers = self.token_file.is_some() || config.auth.is_some();
        checks::reach(&config.server, &self.listen, knows_callers)
    }
}
