//! Starts other programs from the root of the project.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::args::Args;

/// The root of the project.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the root of the project")
}

/// The folder of cargo's build results.
pub fn target_folder() -> PathBuf {
    let folder = env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    root().join(folder)
}

/// Returns the number of cores that this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The cargo that runs this program, started from the root of the project.
///
/// `RUSTFLAGS` and the target folder are unchanged, so that every command shares one cache with
/// manual cargo commands.
pub fn cargo(args: &[&str]) -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")));
    cargo.args(args).current_dir(root());
    forget_package(&mut cargo);
    cargo
}

/// Removes the variables in which cargo describes the package of this program. Build scripts that
/// depend on them, such as that of `ring`, would run again after every manual cargo command.
pub fn forget_package(command: &mut Command) {
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
}

/// Runs a program with inherited input and output. An exit code other than zero is an error.
pub fn run(command: &mut Command) -> Result<()> {
    let status =
        command.status().with_context(|| format!("could not start `{}`", shown(command)))?;
    if !status.success() {
        bail!("`{}` failed: {status}", shown(command));
    }
    Ok(())
}

/// Returns the standard output of a program; `None` if it cannot be started or fails.
pub fn answer(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether a binary is built alone or as a step of `cargo xtask test`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Build {
    /// Built alone.
    Alone,
    /// Built together with the tests. Test dependencies enable features of crates that the product
    /// uses too; without the tests those crates, and ours above them, would be compiled a second
    /// time.
    WithTests,
}

impl Build {
    /// Removes `--with-tests` from the arguments.
    pub fn wanted(args: &mut Args) -> Self {
        if args.flag("--with-tests") { Self::WithTests } else { Self::Alone }
    }
}

/// Builds every other binary of the workspace and returns the path of one.
///
/// Building all of them selects the same dependency features as the other steps, so that nothing is
/// compiled twice.
pub fn built(package: &str, bin: &str, how: Build) -> Result<PathBuf> {
    let mut build = cargo(&["build", "--workspace", "--exclude", "xtask", "--bins"]);
    if how == Build::WithTests {
        build.arg("--tests");
    }
    reported(&mut build, bin)?.with_context(|| {
        format!(
            "package {package} has no binary `{bin}`; add src/bin/{bin}.rs or src/bin/{bin}/main.rs"
        )
    })
}

/// Builds programs of `peers`, which has its own lock file, and returns the path of the first; the
/// others are in the same folder.
pub fn built_peers(bins: &[&str]) -> Result<PathBuf> {
    let mut build = cargo(&["build", "--locked", "--manifest-path", "peers/Cargo.toml"]);
    for bin in bins {
        build.args(["--bin", bin]);
    }
    let first = bins.first().context("no program was named")?;
    reported(&mut build, first)?.with_context(|| format!("`peers` has no binary `{first}`"))
}

/// Builds the optimized program for instruction counts and returns its path. It is built alone,
/// because it needs few crates of the workspace.
pub fn built_to_count() -> Result<PathBuf> {
    let mut build = cargo(&["build", "--profile", "counts", "--package", "outlive-counts"]);
    reported(&mut build, "outlive-counts")?
        .context("cargo did not report the binary `outlive-counts`")
}

/// Returns the command of an optimized benchmark program; its help needs no optimized build.
pub fn measuring(bin: &str, words: &[String]) -> Command {
    let asks_for_help = words.iter().any(|word| matches!(word.as_str(), "help" | "--help" | "-h"));
    let profile = if asks_for_help { "dev" } else { "dist" };
    let mut run = cargo(&["run", "--profile", profile, "--package", "outlive-benches"]);
    run.args(["--bin", bin, "--"]).args(words);
    run
}

/// Runs a build command, and finds a binary in the messages of cargo.
pub fn reported(build: &mut Command, bin: &str) -> Result<Option<PathBuf>> {
    build.arg("--message-format=json-render-diagnostics").stderr(Stdio::inherit());
    let output = build.output().context("could not start cargo")?;
    if !output.status.success() {
        bail!("`{}` failed: {}", shown(build), output.status);
    }
    Ok(executable(&String::from_utf8_lossy(&output.stdout), bin))
}

/// Finds the path of a binary in the messages of cargo.
fn executable(messages: &str, bin: &str) -> Option<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["target"]["name"] == bin && message["target"]["kind"][0] == "bin")
        // With tests there is a second executable of the same name: the tests of the binary.
        .filter(|message| message["profile"]["test"] != true)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
}

/// Returns a command as text.
pub fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::executable;

    #[test]
    fn executable_is_found_in_cargo_messages() {
        let messages = concat!(
            r#"{"reason":"compiler-artifact","target":{"name":"check","kind":["lib"]},"executable":null}"#,
            "\n",
            r#"{"reason":"compiler-artifact","target":{"name":"check","kind":["bin"]},"profile":{"test":true},"executable":"debug/deps/check"}"#,
            "\n",
            r#"{"reason":"compiler-artifact","target":{"name":"check","kind":["bin"]},"profile":{"test":false},"executable":"debug/check"}"#,
            "\n",
            r#"{"reason":"build-finished","success":true}"#,
        );
        assert_eq!(executable(messages, "check"), Some("debug/check".into()));
        assert_eq!(executable(messages, "other"), None);
    }
}
