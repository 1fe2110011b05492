//! The file and the data folder of the server that a command means.

use std::path::{Path, PathBuf};

use outlive_gateway::status::{GatewayStatus, UpstreamStatus};

use crate::{
    error::{CliError, Kind, Result},
    paths,
    serve::STATUS_FILE,
    store::plain,
};

/// Selection of the data folder.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct DataFolder {
    /// Data folder of the server [default: that of the file]
    #[arg(long, value_name = "FOLDER")]
    data_dir: Option<PathBuf>,
}

/// Returns the file: the named one, or `outlive.toml` of this folder if it exists.
pub(crate) fn file_or_here(file: Option<&Path>) -> Option<PathBuf> {
    let here = || Some(PathBuf::from("outlive.toml")).filter(|file| file.exists());
    file.map(Path::to_owned).or_else(here)
}

/// A running server.
pub(super) struct Running {
    pub(super) data: PathBuf,
    pub(super) status: GatewayStatus,
}

impl Running {
    /// Finds an upstream.
    ///
    /// # Errors
    ///
    /// Returns an error with the names of all upstreams if the server lacks this one.
    pub(super) fn find(&self, name: &str) -> Result<&UpstreamStatus> {
        let upstreams = &self.status.upstreams;
        upstreams.iter().find(|upstream| upstream.name == name).ok_or_else(|| {
            let names: Vec<&str> = upstreams.iter().map(|upstream| &*upstream.name).collect();
            let what = format!("the server has no upstream `{}`", plain(name));
            CliError::usage(what).remedy(format_args!("use one of: {}", names.join(", ")))
        })
    }
}

/// Reads the status that the running server wrote.
///
/// # Errors
///
/// Returns an error if no server runs, or its status cannot be read.
pub(super) fn running(folder: &DataFolder, file: Option<&Path>) -> Result<Running> {
    let file = file_or_here(file);
    let data = match (&folder.data_dir, &file) {
        (Some(data), _) => data.clone(),
        (None, Some(file)) => paths::of_server(Some(file))?,
        (None, None) => {
            return Err(CliError::usage("this folder has no outlive.toml")
                .remedy("name the file, or the folder: outlive upstreams --data-dir FOLDER"));
        }
    };
    let path = data.join(STATUS_FILE);
    let status = GatewayStatus::read(&path).map_err(|error| {
        CliError::new(Kind::Failed, format_args!("cannot read {}: {error}", path.display()))
            .remedy("restart the server with this version of the program")
    })?;
    let status = status.filter(|status| is_alive(status.pid)).ok_or_else(|| {
        CliError::unreachable(
            "no server with upstreams runs on this file, or it serves standard input",
        )
        .remedy("run `outlive serve`; or `outlive upstreams check`, which needs no server")
    })?;
    Ok(Running { data, status })
}

/// Returns whether a server with upstreams runs on a data folder.
pub(super) fn is_running(data: &Path) -> bool {
    let status = GatewayStatus::read(data.join(STATUS_FILE)).ok().flatten();
    status.is_some_and(|status| is_alive(status.pid))
}

/// Returns whether a process runs. A server that was killed leaves its status.
#[cfg(unix)]
fn is_alive(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| match rustix::process::test_kill_process(pid) {
        Ok(()) => true,
        Err(error) => error == rustix::io::Errno::PERM,
    })
}

/// Returns `true`: other systems have no such test.
#[cfg(not(unix))]
fn is_alive(_pid: u32) -> bool {
    true
}
