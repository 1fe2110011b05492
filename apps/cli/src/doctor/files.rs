//! Files: outlive.toml, tokens of callers, keys that seal.

use std::{
    fs,
    path::{Path, PathBuf},
};

use outlive::{http::StaticTokens, server::SealKeys};

use super::{Args, Finding};

pub(super) fn check(args: &Args, data: &Path) -> Vec<Finding> {
    let mut findings = Vec::new();
    let here = || Some(PathBuf::from("outlive.toml")).filter(|file| file.exists());
    match args.file.clone().or_else(here) {
        Some(file) => findings.push(check_file(&file)),
        None => findings.push(Finding::ok("file", "no outlive.toml here: a demo is served")),
    }
    if let Some(file) = &args.token_file {
        findings.push(tokens(file));
    }
    match &args.key_file {
        Some(file) => findings.push(keys(file)),
        None => findings.extend(own_keys(data).iter().map(|file| keys(file))),
    }
    findings
}

/// The key files that are in a data folder: each server has its own.
fn own_keys(data: &Path) -> Vec<PathBuf> {
    let servers = fs::read_dir(data.join("servers")).into_iter().flatten().flatten();
    let folders = servers.map(|server| server.path()).chain([data.to_owned()]);
    let mut found: Vec<_> = folders.map(|folder| folder.join("seal.key")).collect();
    found.retain(|file| file.exists());
    found.sort();
    found
}

/// Whether a file with tools can be read, and is what it should be.
pub(crate) fn check_file(file: &Path) -> Finding {
    const CHECK: &str = "file";
    let place = file.display();
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => {
            let what = format!("{place} cannot be read: {error}");
            return Finding::failure(CHECK, what, "name another file, or none");
        }
    };
    match text.parse::<toml::Table>() {
        Ok(_) => Finding::ok(CHECK, format!("{place} is TOML")),
        Err(error) => {
            let what = format!("{place}: {}", error.to_string().trim_end());
            Finding::failure(CHECK, what, "correct it: the line is named")
        }
    }
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
