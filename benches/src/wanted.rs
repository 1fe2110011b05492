//! The selected third-party programs, and their installation commands.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};

/// The selected peers and third-party gateways.
#[derive(Clone, Debug)]
pub(crate) enum Wanted {
    All,
    None,
    /// Those with one of these names.
    Named(Vec<String>),
}

/// Whether a name on the command line means an entry with this name. Its first word is enough.
pub(crate) fn is_named(name: &str, wanted: &str) -> bool {
    name.eq_ignore_ascii_case(wanted)
        || name.split(' ').next().is_some_and(|word| word.eq_ignore_ascii_case(wanted))
}

/// Runs an installation command.
pub(crate) fn run(words: &[String], folder: &Path) -> Result<()> {
    let (program, words) = words.split_first().context("an empty command")?;
    let status = Command::new(program)
        .args(words)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .with_context(|| format!("could not start `{program}`"))?;
    ensure!(status.success(), "`{program} {}` failed: {status}", words.join(" "));
    Ok(())
}
