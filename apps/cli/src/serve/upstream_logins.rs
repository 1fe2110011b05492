//! The logins of a server at its upstreams, for commands beside the server.

use std::path::{Path, PathBuf};

use outlive::{people::Vault, server::SealKeys, store::KeyValueStore};

use super::{
    config::Config,
    location::{open_store, seal_key_file, store_url, unusable},
};
use crate::{
    error::{CliError, Result},
    paths,
};

/// Data folder and store of a server.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ServerPlace {
    /// Data folder of the server [default: that of the file]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Task store of the server: sqlite:FILE or postgres://…
    #[arg(long, value_name = "URL", env = "OUTLIVE_STORE", hide_env_values = true)]
    pub(crate) store: Option<String>,
}

impl ServerPlace {
    /// Returns the data folder of the server with this file.
    pub(crate) fn data(&self, file: &Path) -> Result<PathBuf> {
        match &self.data_dir {
            Some(data) => Ok(data.clone()),
            None => paths::of_server(Some(file)),
        }
    }

    /// Opens the place of the logins of the server with this file.
    pub(crate) async fn logins(&self, config: &Config, file: &Path) -> Result<Vault> {
        let data = self.data(file)?;
        paths::make_private(&data).map_err(|error| unusable(&data, &error))?;
        let url = self.store.clone().unwrap_or_else(|| store_url(&config.tasks, &data));
        let store = open_store(&url).await?;
        let keys = seal_key_file(&config.server, &data);
        let keys = SealKeys::from_file(keys).map_err(CliError::usage)?;
        Ok(Vault::open(store as std::sync::Arc<dyn KeyValueStore>, keys))
    }
}
