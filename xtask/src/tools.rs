//! The cargo subcommands that the tests need, installed if they are missing.

use anyhow::{Context, Result};

use crate::process;

/// A cargo subcommand, and its minimum version.
#[derive(Debug)]
pub struct Tool {
    package: &'static str,
    subcommand: &'static str,
    version: Version,
}

type Version = [u32; 3];

/// Runs the tests.
pub const NEXTEST: Tool =
    Tool { package: "cargo-nextest", subcommand: "nextest", version: [0, 9, 143] };
/// Checks licenses, sources and advisories of dependencies.
pub const DENY: Tool = Tool { package: "cargo-deny", subcommand: "deny", version: [0, 20, 2] };

/// Settings to build a tool without optimization: it runs for seconds, and the release profiles of
/// these packages (one codegen unit, LTO) take five times as long.
const QUICK: [(&str, &str); 3] = [
    ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"),
    ("CARGO_PROFILE_RELEASE_LTO", "off"),
    ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0"),
];

/// Installs the tool if it is missing or too old.
pub fn ensure(tool: &Tool) -> Result<()> {
    let installed = process::answer(&mut process::cargo(&[tool.subcommand, "--version"]));
    let installed = installed.as_deref().and_then(version);
    if installed.is_some_and(|installed| installed >= tool.version) {
        return Ok(());
    }
    let [major, minor, patch] = tool.version;
    let wanted = format!("{major}.{minor}.{patch}");
    let found = if installed.is_some() { "is too old" } else { "is missing" };
    eprintln!(
        "{} {found}; installing {wanted} with `cargo install`, which takes a minute or two",
        tool.package
    );
    let mut install = process::cargo(&["install", "--locked", tool.package, "--version", &wanted]);
    process::run(install.envs(QUICK)).with_context(|| {
        format!("could not install {}; install {wanted} or newer manually", tool.package)
    })
}

/// Parses `cargo-nextest 0.9.143 (…)`.
fn version(answer: &str) -> Option<Version> {
    let numbers = answer.split_whitespace().nth(1)?;
    let mut parts = numbers.splitn(3, '.').map(|part| part.parse().ok());
    Some([parts.next()??, parts.next()??, parts.next()??])
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn tool_version_is_parsed_from_its_output() {
        assert_eq!(version("cargo-deny 0.20.2\n"), Some([0, 20, 2]));
        assert_eq!(
            version("cargo-nextest 0.9.143 (60fa45f63 2026-08-04)\nrelease: 0.9.143"),
            Some([0, 9, 143])
        );
        assert_eq!(version("error: no such command"), None);
    }
}
