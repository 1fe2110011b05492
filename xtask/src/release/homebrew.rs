//! The step `homebrew`: the formula with the version and the checksums of the archives.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::archive::sha256;
use super::artifacts::{Artifacts, VERSION};
use super::binary::archive_name;
use xtask::{packages, process};

const TEMPLATE: &str = "deploy/homebrew/outlive.rb";

/// Platforms of the formula, as in the names of the archives.
const PLATFORMS: &[(&str, &str)] =
    &[("x86_64", "linux"), ("aarch64", "linux"), ("x86_64", "macos"), ("aarch64", "macos")];

pub(super) fn run(artifacts: &mut Artifacts) -> Result<()> {
    let template = fs::read_to_string(process::root().join(TEMPLATE)).context("no formula")?;
    let mut checksums = Vec::new();
    for (arch, system) in PLATFORMS {
        let archive = artifacts.read(&archive_name(arch, system)).ok();
        let placeholder = placeholder(arch, system);
        match archive {
            Some(archive) => checksums.push((placeholder, sha256(&archive))),
            None => eprintln!("no archive for {arch} {system}; the formula keeps {placeholder}"),
        }
    }
    let formula = filled(&template, &checksums)?;
    artifacts.write("outlive.rb", formula.as_bytes())?;
    match packages::ensure(&packages::RUBY) {
        Ok(ruby) => process::run(Command::new(ruby).arg("-c").arg(artifacts.path("outlive.rb"))),
        Err(error) => {
            eprintln!("the syntax of the formula is not checked: {error:#}");
            Ok(())
        }
    }
}

/// Returns the placeholder of a checksum. Homebrew rejects a formula that still has one.
fn placeholder(arch: &str, system: &str) -> String {
    format!("@SHA256-{arch}-{system}@")
}

/// Replaces the version and the known checksums.
fn filled(template: &str, checksums: &[(String, String)]) -> Result<String> {
    for (arch, system) in PLATFORMS {
        let name = placeholder(arch, system);
        ensure!(template.contains(&name), "{TEMPLATE} has no {name}");
    }
    let text = template.replace("@VERSION@", VERSION);
    Ok(checksums.iter().fold(text, |text, (name, sum)| text.replace(name, sum)))
}

#[cfg(test)]
mod tests {
    use super::{PLATFORMS, TEMPLATE, VERSION, filled, placeholder, process};

    #[test]
    fn formula_has_version_and_checksum_of_every_platform() {
        let template = std::fs::read_to_string(process::root().join(TEMPLATE)).unwrap();
        let known =
            PLATFORMS.iter().map(|(arch, system)| (placeholder(arch, system), "0".repeat(64)));
        let formula = filled(&template, &known.collect::<Vec<_>>()).unwrap();
        assert!(formula.contains(&format!("version \"{VERSION}\"")), "{formula}");
        assert!(!formula.contains('@'), "{formula}");
    }

    #[test]
    fn unknown_checksum_stays_placeholder() {
        let template = std::fs::read_to_string(process::root().join(TEMPLATE)).unwrap();
        assert!(filled(&template, &[]).unwrap().contains("@SHA256-aarch64-macos@"));
        assert!(filled("", &[]).is_err());
    }
}
