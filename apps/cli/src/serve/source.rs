//! The source of a server's tools: a configuration file, a script, or neither.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use super::{
    args::Args,
    config::{self, Config, WorkerConfig},
};
use crate::error::{CliError, Result};

/// Source of the tools of a server.
pub(crate) enum Source {
    /// A configuration file.
    File(PathBuf),
    /// A script of a tool worker.
    Script(PathBuf),
    /// The demo, or upstreams of the command line.
    None { has_upstreams: bool },
}

impl Source {
    /// Returns the source: the named file, or `outlive.toml` of this folder if it exists.
    pub(super) fn of(args: &Args) -> Self {
        let here = || Some(PathBuf::from("outlive.toml")).filter(|file| file.exists());
        match args.file.clone().or_else(here) {
            Some(path) => Self::at(path),
            None => Self::None { has_upstreams: !args.upstream.is_empty() },
        }
    }

    /// Returns the source at a path.
    pub(crate) fn at(path: PathBuf) -> Self {
        match extension(&path).is_some() {
            true => Self::Script(path),
            false => Self::File(path),
        }
    }

    /// Returns the path, whose folder is the start of relative paths.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path) | Self::Script(path) => Some(path),
            Self::None { .. } => None,
        }
    }

    /// Returns the configuration file.
    pub(super) fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Script(_) | Self::None { .. } => None,
        }
    }

    /// Reads the configuration.
    ///
    /// # Errors
    ///
    /// Returns all mistakes of the file, or the reason why the script cannot be run.
    pub(crate) fn config(&self) -> Result<Config> {
        match self {
            Self::File(path) => Ok(config::load(path)?),
            Self::Script(path) => of_script(path),
            Self::None { has_upstreams: true } => Ok(config::without_tools()),
            Self::None { has_upstreams: false } => Ok(config::demo()),
        }
    }
}

/// Extensions of scripts.
const EXTENSIONS: [&str; 5] = ["py", "mjs", "js", "ts", "mts"];

/// Name of a tool worker whose script has no suitable name.
const NAME: &str = "tools";

/// Remedy for a version of Node that cannot run TypeScript.
const TYPES: &str =
    "install Node 22.18 or later, which removes types itself; or compile the script to JavaScript";

fn extension(path: &Path) -> Option<&'static str> {
    let extension = path.extension()?.to_str()?;
    EXTENSIONS.into_iter().find(|known| *known == extension)
}

/// Returns a configuration with one tool worker.
fn of_script(script: &Path) -> Result<Config> {
    if !script.is_file() {
        return Err(CliError::usage(format_args!("cannot read {}", script.display()))
            .remedy("name a script with tools, such as tools.py"));
    }
    let whole = std::path::absolute(script).unwrap_or_else(|_| script.to_owned());
    let mut words = interpreter(&whole)?;
    words.push(whole.display().to_string());
    let stem = script.file_stem().and_then(|stem| stem.to_str()).unwrap_or(NAME);
    let name = stem.to_lowercase().replace(['_', '.'], "-");
    let name = if config::is_upstream_name(&name) { name } else { NAME.to_owned() };
    let worker = WorkerConfig::new(name, words);
    Ok(Config { workers: vec![worker], ..config::without_tools() })
}

/// Returns the program that runs a script.
fn interpreter(script: &Path) -> Result<Vec<String>> {
    match extension(script) {
        Some("py") => Ok(vec![python(script)]),
        Some("ts" | "mts") if !strips_types() => Err(CliError::usage(format_args!(
            "this version of Node cannot run {}",
            script.display()
        ))
        .remedy(TYPES)),
        _ => Ok(vec!["node".to_owned()]),
    }
}

/// Returns the Python of the active environment, else that of `.venv` beside the script, else
/// `python3`.
fn python(script: &Path) -> String {
    const IN_ENVIRONMENT: &str = if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" };
    let active = env::var_os("VIRTUAL_ENV").map(PathBuf::from);
    let beside = script.parent().map(|folder| folder.join(".venv"));
    let environments = active.into_iter().chain(beside);
    let mut pythons = environments.map(|folder| folder.join(IN_ENVIRONMENT));
    let found = pythons.find(|python| python.is_file());
    let otherwise = if cfg!(windows) { "python" } else { "python3" };
    found.map_or_else(|| otherwise.to_owned(), |python| python.display().to_string())
}

/// Returns whether Node runs TypeScript by removing its types.
fn strips_types() -> bool {
    let said = Command::new("node").args(["-p", "process.features.typescript"]).output();
    said.is_ok_and(|said| matches!(said.stdout.trim_ascii(), b"strip" | b"transform"))
}

/// Returns the pattern of the files that `--dev` watches for a command: those of the same kind as its
/// script.
pub(super) fn pattern_of(words: &[String]) -> Option<String> {
    let extension = words.iter().find_map(|word| extension(Path::new(word)))?;
    Some(format!("*.{extension}"))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{Source, pattern_of};

    #[test]
    fn file_with_extension_of_script_is_a_script() {
        let is_script = |path: &str| matches!(Source::at(PathBuf::from(path)), Source::Script(_));
        assert!(is_script("tools.py") && is_script("a/tools.mjs") && is_script("tools.ts"));
        assert!(!is_script("outlive.toml") && !is_script("py") && !is_script("tools.pyc"));
    }

    #[test]
    fn watched_files_are_of_the_kind_of_the_script() {
        let pattern = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            pattern_of(&words)
        };
        assert_eq!(pattern(&["uv", "run", "tools.py"]).as_deref(), Some("*.py"));
        assert_eq!(pattern(&["node", "tools.mjs"]).as_deref(), Some("*.mjs"));
        assert_eq!(pattern(&["my-worker"]), None);
    }
}
