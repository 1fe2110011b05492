//! Variables of a program.

use std::ffi::OsString;

use crate::settings::Upstream;

/// Variables that a program gets from this process.
const INHERITED: [&str; 10] =
    ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"];

/// Prefix of the variables that a program never gets.
const OWN: &str = "OUTLIVE_";

/// Returns the variables of a program.
pub(super) fn environment(settings: &Upstream) -> Vec<(OsString, OsString)> {
    let inherited = std::env::vars_os().filter(|(name, _)| match name.to_str() {
        Some(name) if name.starts_with(OWN) => false,
        Some(name) => settings.inherit_env || INHERITED.contains(&name),
        None => settings.inherit_env,
    });
    inherited.chain(settings.env.iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environment_is_short_and_never_has_own_variables() {
        let settings = Upstream::command("files", ["x"]).env("TOKEN", "1");
        let names: Vec<_> = environment(&settings).into_iter().map(|(name, _)| name).collect();
        assert!(names.iter().any(|name| name == "TOKEN"));
        assert!(names.iter().all(|name| {
            let name = name.to_str().unwrap();
            name == "TOKEN" || INHERITED.contains(&name)
        }));
    }
}
