//! Locations of the data and the store of a server.

use super::args::Args;
use crate::serve::config::{ServerConfig, TasksConfig};
use crate::{
    error::{CliError, Kind, Result},
    paths,
};
use outlive::store::PeopleStore;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// Creates the data folder of a server. Each configuration file has its own, so that their tasks do
/// not mix.
pub(crate) fn data_folder(args: &Args, file: Option<&Path>) -> Result<PathBuf> {
    let folder = match &args.data_dir {
        Some(data) => data.clone(),
        None if file.is_none() && !args.upstream.is_empty() => paths::of_upstreams(&args.upstream)?,
        None => paths::of_server(file)?,
    };
    paths::make_private(&folder).map_err(|error| unusable(&folder, &error))?;
    // Absolute, because commands and supervisors have other working folders.
    std::path::absolute(&folder).map_err(|error| unusable(&folder, &error))
}

pub(super) fn unusable(data: &Path, error: &std::io::Error) -> CliError {
    CliError::new(
        Kind::Failed,
        format_args!("cannot use the data folder {}: {error}", data.display()),
    )
    .remedy(
        "choose another folder with --data-dir FOLDER or OUTLIVE_DATA_DIR; `outlive doctor` checks it",
    )
}

/// Returns the URL of the task store: the configured one, or a SQLite file in the data folder.
pub(super) fn store_url(tasks: &TasksConfig, data: &Path) -> String {
    let own = || format!("sqlite:{}", data.join("tasks.db").display());
    tasks.store.clone().unwrap_or_else(own)
}

/// Returns the file with the seal keys of a server: the configured one, or one in the data folder.
pub(crate) fn seal_key_file(server: &ServerConfig, data: &Path) -> PathBuf {
    server.seal_key_file.clone().unwrap_or_else(|| data.join("seal.key"))
}

pub(super) async fn open_store(url: &str) -> Result<Arc<dyn PeopleStore>> {
    outlive::store::open_people(url).await.map_err(|error| {
        CliError::unreachable(error).remedy("run `outlive doctor` to check the store")
    })
}

/// Returns whether other machines may use the store.
pub(super) fn is_shared(url: &str) -> bool {
    url.starts_with("postgres:") || url.starts_with("postgresql:")
}

/// Returns the folder that relative paths in the file start from: the folder of the file.
pub(crate) fn base_of(file: Option<&Path>) -> PathBuf {
    let folder = file.and_then(Path::parent).filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned())
}
