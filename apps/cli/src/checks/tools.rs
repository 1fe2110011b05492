//! Checks for missing programs and folders of tools, and for a server that is open to other
//! machines.

use std::{env, path::Path};

use super::{Check, Level};
use crate::serve::config::{ServerConfig, ToolConfig, is_loopback};

/// Checks that the program and the folder of each tool exist. Relative folders are relative to
/// `base`.
pub(crate) fn tools(tools: &[ToolConfig], base: &Path) -> Vec<Check> {
    const FILE: &str = "file";
    let mut checks = Vec::new();
    for tool in tools {
        let (name, program, folder) = (&tool.name, tool.program(), tool.folder_in(base));
        if !folder.is_dir() {
            let what =
                format!("the working folder of tool `{name}` does not exist: {}", folder.display());
            let remedy = "create it, or set `working_dir` to another folder";
            checks.push(Check::new(FILE, Level::Broken, what, remedy));
        } else if !is_there(program, &folder) {
            let what = format!("tool `{name}` runs `{program}`, which was not found");
            let remedy = match program.split_whitespace().collect::<Vec<_>>().as_slice() {
                words @ [_, _, ..] => format!(
                    "write one string per word, command = {words:?}; or keep one string and set shell = true"
                ),
                _ => "install the program, or write its full path".to_owned(),
            };
            checks.push(Check::new(FILE, Level::Broken, what, remedy));
        }
    }
    checks
}

/// Returns whether a program exists: at its path, or in a folder of PATH.
pub(super) fn is_there(program: &str, folder: &Path) -> bool {
    if program.contains('/') {
        return folder.join(program).is_file();
    }
    let paths = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&paths).any(|place| place.join(program).is_file())
}

/// Checks that a server that other machines can reach authenticates its callers.
pub(crate) fn reach(server: &ServerConfig, listen: &str, knows_callers: bool) -> Option<Check> {
    if knows_callers || server.allow_anonymous || is_loopback(listen) {
        return None;
    }
    Some(Check::new(
        "port",
        Level::Refused,
        format!("other machines can reach {listen}, and callers need no token"),
        "add --token-file FILE, or [auth] in the file; or --listen 127.0.0.1:PORT; or `allow_anonymous = true` in [server] if access without a token is intended",
    ))
}
