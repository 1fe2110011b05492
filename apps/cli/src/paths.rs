//! Locations of the program's files.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use crate::error::{CliError, Result};

/// Returns the user's data folder, which has tasks, running commands and saved calls.
pub(crate) fn data() -> Result<PathBuf> {
    data_in(|name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from))
        .ok_or_else(|| {
            CliError::usage("no data folder: HOME is not set")
                .remedy("set OUTLIVE_DATA_DIR to a folder that survives restarts")
        })
}

/// Returns the data folder of a server: one for each file, and one for the demo.
pub(crate) fn of_server(file: Option<&Path>) -> Result<PathBuf> {
    let servers = data()?.join("servers");
    let Some(file) = file else { return Ok(servers.join("demo")) };
    let whole = fs::canonicalize(file).map_err(|error| {
        CliError::usage(format_args!("cannot read {}: {error}", file.display()))
    })?;
    // The folder's name is for people. The hash separates files in folders of the same name.
    let folder = whole.parent().and_then(Path::file_name).map(|name| name.to_string_lossy());
    let number = fnv(whole.as_os_str().as_encoded_bytes());
    Ok(servers.join(format!("{}-{number:016x}", folder.as_deref().unwrap_or("root"))))
}

/// Returns the data folder of a server without a file, which serves these upstreams.
pub(crate) fn of_upstreams(upstreams: &[String]) -> Result<PathBuf> {
    let number = fnv(upstreams.join("\0").as_bytes());
    Ok(data()?.join("servers").join(format!("upstreams-{number:016x}")))
}

/// Returns the FNV-1a hash, which is the same in every build.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Creates a folder that only the current user can access.
pub(crate) fn make_private(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn data_in(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    if let Some(chosen) = variable("OUTLIVE_DATA_DIR") {
        return Some(chosen);
    }
    if let Some(data) = variable("XDG_DATA_HOME").filter(|data| data.is_absolute()) {
        return Some(data.join("outlive"));
    }
    if cfg!(windows) {
        return variable("LOCALAPPDATA").map(|data| data.join("outlive"));
    }
    let home = variable("HOME")?;
    let data =
        if cfg!(target_os = "macos") { "Library/Application Support" } else { ".local/share" };
    Some(home.join(data).join("outlive"))
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::data_in;

    fn with(variables: &[(&str, &str)]) -> Option<PathBuf> {
        data_in(|name| {
            variables
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| PathBuf::from(value))
        })
    }

    #[test]
    fn data_folder_with_outlive_data_dir_prefers_that_variable() {
        let all = [("HOME", "/home/ada"), ("XDG_DATA_HOME", "/data"), ("OUTLIVE_DATA_DIR", "here")];
        assert_eq!(with(&all).as_deref(), Some(Path::new("here")));
        assert_eq!(with(&all[..2]).as_deref(), Some(Path::new("/data/outlive")));
        assert_eq!(with(&[]), None);
    }

    #[test]
    fn relative_xdg_data_home_is_ignored() {
        let found = with(&[("HOME", "/home/ada"), ("XDG_DATA_HOME", "data")]);
        assert!(found.is_some_and(|found| found.starts_with("/home/ada")));
    }
}
