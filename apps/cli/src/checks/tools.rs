//! Tools and their machine: programs and folders that are not there, and a server that anyone can use.

use std::{env, net::IpAddr, path::Path};

use super::{Check, Level};
use crate::serve::config::{ServerConfig, ToolConfig};

/// Checks that the programs of tools are there. Relative folders begin at `base`.
pub(crate) fn tools(tools: &[ToolConfig], base: &Path) -> Vec<Check> {
    const FILE: &str = "file";
    let mut checks = Vec::new();
    for tool in tools {
        let (name, program, folder) = (&tool.name, tool.program(), tool.folder_in(base));
        if !folder.is_dir() {
            let what = format!("the folder of `{name}` is not there: {}", folder.display());
            let remedy = "make it, or name another with `folder`";
            checks.push(Check::new(FILE, Level::Broken, what, remedy));
        } else if !is_there(program, &folder) {
            let what = format!("`{name}` runs `{program}`, which is not there");
            let remedy = match program.split_whitespace().collect::<Vec<_>>().as_slice() {
                words @ [_, _, ..] => format!(
                    "each word by itself, command = {words:?}; or the command as one text, with shell = true"
                ),
                _ => "install it, or write its whole path".to_owned(),
            };
            checks.push(Check::new(FILE, Level::Broken, what, remedy));
        }
    }
    checks
}

/// Whether a program would be found: by its path, or by its name in one of the folders of PATH.
fn is_there(program: &str, folder: &Path) -> bool {
    if program.contains('/') {
        return folder.join(program).is_file();
    }
    let paths = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&paths).any(|place| place.join(program).is_file())
}

/// Checks that a server that others can reach knows its callers.
pub(crate) fn reach(server: &ServerConfig, listen: &str, knows_callers: bool) -> Option<Check> {
    if knows_callers || server.allow_anonymous || is_loopback(listen) {
        return None;
    }
    Some(Check::new(
        "port",
        Level::Refused,
        format!("others can reach {listen}, and callers need no token there"),
        "--token-file FILE, or [auth] in the file; or --listen 127.0.0.1:PORT; or `allow_anonymous = true` in [server], if that is meant",
    ))
}

/// Whether only this machine reaches an address. A name is judged when it is bound.
pub(crate) fn is_loopback(listen: &str) -> bool {
    let host = listen.rsplit_once(':').map_or(listen, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.parse::<IpAddr>().map_or(true, |address| address.to_canonical().is_loopback())
}
