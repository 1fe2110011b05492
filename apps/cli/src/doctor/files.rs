//! Files: outlive.toml, tokens of callers, keys that seal.

use std::{env, fs, path::Path};

use outlive::{http::StaticTokens, server::SealKeys};

use super::{Finding, Plan};
use crate::{
    serve::{self, config::Config},
    trouble::Trouble,
};

pub(super) fn check(plan: &Plan) -> Vec<Finding> {
    let mut findings = Vec::new();
    match &plan.file {
        Some((file, config)) => findings.extend(tools(file, config.as_ref())),
        None => findings.push(Finding::ok(FILE, "no outlive.toml here: a demo is served")),
    }
    if let Some(file) = &plan.token_file {
        findings.push(tokens(file));
    }
    let own = plan.data.join("seal.key");
    match (&plan.key_file, own.exists()) {
        (Some(file), _) => findings.push(keys(file)),
        (None, true) => findings.push(keys(&own)),
        (None, false) => {}
    }
    findings
}

const FILE: &str = "file";

/// Whether the file with tools is what it should be, and their programs are there.
fn tools(file: &Path, config: std::result::Result<&Config, &Trouble>) -> Vec<Finding> {
    let config = match config {
        Ok(config) => config,
        Err(trouble) => {
            let remedy = trouble.next_step().unwrap_or("correct it: the line is named");
            return vec![Finding::failure(FILE, trouble.to_string(), remedy)];
        }
    };
    let tools = config.tools.len();
    let mut findings = vec![Finding::ok(FILE, format!("{} has {tools} tools", file.display()))];
    for tool in &config.tools {
        let folder = tool.folder_in(&serve::base_of(Some(file)));
        if !folder.is_dir() {
            let what = format!("the folder of `{}` is not there: {}", tool.name, folder.display());
            findings.push(Finding::failure(FILE, what, "make it, or name another with `folder`"));
        } else if !is_there(tool.program(), &folder) {
            let what = format!("`{}` runs `{}`, which is not there", tool.name, tool.program());
            findings.push(Finding::failure(FILE, what, "install it, or write its whole path"));
        }
    }
    findings
}

/// Whether a program would be found: by its path, or by its name in one of the folders of PATH.
fn is_there(program: &str, folder: &Path) -> bool {
    if program.contains('/') {
        return folder.join(program).is_file();
    }
    let paths = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&paths).any(|place| place.join(program).is_file())
}

fn tokens(file: &Path) -> Finding {
    const CHECK: &str = "tokens";
    let place = file.display();
    match (StaticTokens::from_file(file), open_to_others(file)) {
        (Err(error), _) => {
            Finding::failure(CHECK, error.to_string(), "a `name token` on each line")
        }
        (Ok(_), Some(why)) => Finding::failure(CHECK, why, format!("chmod 600 {place}")),
        (Ok(tokens), None) => {
            Finding::ok(CHECK, format!("{place} is its owner's alone: {tokens:?}"))
        }
    }
}

fn keys(file: &Path) -> Finding {
    const CHECK: &str = "keys";
    let place = file.display();
    if !file.exists() {
        return Finding::ok(CHECK, format!("{place} will be made"));
    }
    match (open_to_others(file), SealKeys::from_file(file)) {
        (Some(why), _) => Finding::failure(CHECK, why, format!("chmod 600 {place}")),
        (None, Err(error)) => Finding::failure(
            CHECK,
            error.to_string(),
            "restore it, or name another: --key-file FILE",
        ),
        (None, Ok(_)) => Finding::ok(CHECK, format!("{place} is its owner's alone, and has keys")),
    }
}

/// Why others than this user can do something with a file, if they can.
#[cfg(unix)]
fn open_to_others(file: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let about = fs::metadata(file).ok()?;
    let (mode, place) = (about.mode() & 0o777, file.display());
    let user = rustix::process::geteuid().as_raw();
    if about.uid() != user {
        return Some(format!("{place} belongs to user {}, and this is user {user}", about.uid()));
    }
    (mode & 0o077 != 0).then(|| format!("others may read or write {place} (mode {mode:03o})"))
}

#[cfg(not(unix))]
fn open_to_others(_file: &Path) -> Option<String> {
    None
}
