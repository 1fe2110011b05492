//! Where this program keeps things.

use std::{env, path::PathBuf};

use crate::trouble::{Result, Trouble};

/// The user's folder for data that must not be lost: tasks, running commands, saved handles.
pub(crate) fn data() -> Result<PathBuf> {
    data_in(|name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from))
        .ok_or_else(|| {
            Trouble::usage("there is no folder for data: HOME is not set")
                .remedy("set OUTLIVE_DATA to a folder that survives restarts")
        })
}

fn data_in(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    if let Some(chosen) = variable("OUTLIVE_DATA") {
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
    fn what_the_user_has_chosen_comes_first() {
        let all = [("HOME", "/home/ada"), ("XDG_DATA_HOME", "/data"), ("OUTLIVE_DATA", "here")];
        assert_eq!(with(&all).as_deref(), Some(Path::new("here")));
        assert_eq!(with(&all[..2]).as_deref(), Some(Path::new("/data/outlive")));
        assert_eq!(with(&[]), None);
    }

    #[test]
    fn a_relative_folder_of_xdg_is_no_folder() {
        let found = with(&[("HOME", "/home/ada"), ("XDG_DATA_HOME", "data")]);
        assert!(found.is_some_and(|found| found.starts_with("/home/ada")));
    }
}
