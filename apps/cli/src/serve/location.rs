//! Where the data and the store of a server are.

use super::args::Args;
use crate::serve::config::TasksConfig;
use crate::{
    error::{CliError, Kind, Result},
    paths,
};
use outlive::store::Store;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// Each file has a folder of its own: tasks of one must not be taken for those of another.
pub(crate) fn data_folder(args: &Args, file: Option<&Path>) -> Result<PathBuf> {
    let folder = match &args.data_dir {
        Some(data) => data.clone(),
        None => paths::of_server(file)?,
    };
    paths::make_private(&folder).map_err(|error| unusable(&folder, &error))?;
    // Commands and supervisors have folders of their own to be in.
    std::path::absolute(&folder).map_err(|error| unusable(&folder, &error))
}

pub(super) fn unusable(data: &Path, error: &std::io::Error) -> CliError {
    CliError::new(
        Kind::Failed,
        format_args!("the data folder {} cannot be used: {error}", data.display()),
    )
    .remedy(
        "--data-dir FOLDER, or OUTLIVE_DATA_DIR, for another one; `outlive doctor` looks closer",
    )
}

/// Where tasks are kept.
pub(super) fn store_url(tasks: &TasksConfig, data: &Path) -> String {
    let own = || format!("sqlite:{}", data.join("tasks.db").display());
    tasks.store.clone().unwrap_or_else(own)
}

pub(super) async fn open_store(url: &str) -> Result<Arc<dyn Store>> {
    outlive::store::open(url)
        .await
        .map_err(|error| CliError::unreachable(error).remedy("`outlive doctor` looks closer"))
}

/// Whether other machines may use the store.
pub(super) fn is_shared(url: &str) -> bool {
    url.starts_with("postgres:") || url.starts_with("postgresql:")
}

/// Where relative folders and programs begin: where the file is.
pub(crate) fn base_of(file: Option<&Path>) -> PathBuf {
    let folder = file.and_then(Path::parent).filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned())
}
