//! Follows `docs/tutorial-gateway.md`: runs its commands, and compares their output.
//!
//! A block in `json` or `toml` is a file or its end, a block in `sh` is run line by line, and a
//! block in `text` has lines that the last command prints. `…` stands for any text.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use xtask::process;

use super::tools::{self, Tools};
use crate::gateway_process::GatewayProcess;
use crate::page::{Block, Page};

const PAGE: &str = "docs/tutorial-gateway.md";

/// The address in the page.
const ADDRESS: &str = "127.0.0.1:8000";

/// The folder of a reader, and the server that is started in it.
struct Reader {
    folder: PathBuf,
    program: PathBuf,
    /// Variables of every command.
    env: Vec<(String, OsString)>,
    gateway: Option<GatewayProcess>,
    /// Output of the last command.
    output: String,
}

/// Returns what is wrong with the page.
pub(super) fn run(tools: &Tools) -> Result<Option<String>> {
    eprintln!("interop: {PAGE}");
    let page = Page::read(PAGE)?;
    let mut reader = Reader::new(tools)?;
    for Block { language, line, text } in page.blocks() {
        let followed = reader.follow(language, text);
        if let Err(error) = followed {
            let log = reader.gateway.as_ref().map(GatewayProcess::log).unwrap_or_default();
            return Ok(Some(format!("{PAGE}:{line}: {error:#}\n{log}")));
        }
    }
    Ok(None)
}

impl Reader {
    fn new(tools: &Tools) -> Result<Self> {
        let folder = tools::folder("tutorial");
        let programs = folder.join("bin");
        fs::create_dir_all(&programs)?;
        // The packages of the lock file, instead of those of the registry.
        let modules = process::root().join("conformance/servers/node_modules");
        let script = format!(
            "#!/bin/sh\nshift\npackage=$1\nshift\nexec {:?} {:?}/\"$package\"/dist/index.js \"$@\"\n",
            tools.node, modules
        );
        let npx = programs.join("npx");
        fs::write(&npx, script)?;
        fs::set_permissions(&npx, fs::Permissions::from_mode(0o755))?;
        let program = tools.program("outlive");
        let outlive = program.parent().context("a program is in a folder")?;
        let system = std::env::var_os("PATH").unwrap_or_default();
        let path = [programs, outlive.to_owned()].into_iter().chain(std::env::split_paths(&system));
        let env = vec![
            ("PATH".to_owned(), std::env::join_paths(path)?),
            ("HOME".to_owned(), folder.clone().into_os_string()),
            ("OUTLIVE_DATA_DIR".to_owned(), folder.join("home").into_os_string()),
        ];
        Ok(Self { folder, program, env, gateway: None, output: String::new() })
    }

    fn follow(&mut self, language: &str, text: &str) -> Result<()> {
        match language {
            "json" => Ok(fs::write(self.folder.join("mcp.json"), text)?),
            "toml" => self.append(text),
            "sh" => text.lines().try_for_each(|line| {
                self.command(line).with_context(|| format!("`{line}` failed"))
            }),
            "text" => self.compare(text),
            other => anyhow::bail!("a block in `{other}` cannot be followed"),
        }
    }

    fn append(&self, text: &str) -> Result<()> {
        let file = self.folder.join("outlive.toml");
        let before = fs::read_to_string(&file).unwrap_or_default();
        Ok(fs::write(file, format!("{before}\n{text}"))?)
    }

    fn command(&mut self, line: &str) -> Result<()> {
        match (line, &mut self.gateway) {
            // The program is built.
            ("cargo install --path apps/cli", _) => Ok(()),
            ("outlive serve", None) => {
                let config = fs::read_to_string(self.folder.join("outlive.toml"))?;
                let env = self.env.clone();
                let gateway =
                    GatewayProcess::start_with(&self.program, &self.folder, &config, env)?;
                self.gateway = Some(gateway);
                Ok(())
            }
            ("pkill -9 -f 'outlive serve'; outlive serve", Some(gateway)) => {
                gateway.kill()?;
                gateway.restart()
            }
            _ => self.shell(line),
        }
    }

    /// Runs a line, and asserts its success.
    fn shell(&mut self, line: &str) -> Result<()> {
        let mut line = line.to_owned();
        if let Some(gateway) = &self.gateway {
            line = line.replace(ADDRESS, &gateway.address().to_string());
        }
        // The page uses the default folder of the file.
        if line == "outlive upstreams" {
            line.push_str(" --data-dir data");
        }
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(&line).current_dir(&self.folder).envs(self.env.iter().cloned());
        let output = shell.output()?;
        self.output = [output.stdout, output.stderr].map(|bytes| text(&bytes)).concat();
        ensure!(output.status.success(), "{}: {}", output.status, self.output);
        Ok(())
    }

    /// Compares each line of a block with the output of the last command.
    fn compare(&self, expected: &str) -> Result<()> {
        for line in expected.lines().filter(|line| !line.is_empty()) {
            let is_printed = self.output.lines().any(|printed| fits(line, printed));
            ensure!(is_printed, "`{line}` is not printed, but:\n{}", self.output);
        }
        Ok(())
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Whether a printed line has all parts of a pattern, in their order.
fn fits(pattern: &str, printed: &str) -> bool {
    let mut rest = printed;
    pattern.split('…').map(str::trim).all(|part| match rest.find(part) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::{PAGE, Page, fits};

    #[test]
    fn pattern_fits_line_with_its_parts_in_order() {
        assert!(fits("ok … everything … tools", "ok       everything  14 tools (2025-11-25)"));
        assert!(!fits("tools … ok", "ok  14 tools"));
        assert!(fits("whole line", "the whole line"));
    }

    #[test]
    fn tutorial_kills_and_restarts_server() {
        let page = Page::read(PAGE).unwrap();
        let blocks = page.blocks().into_iter();
        let commands: Vec<&str> =
            blocks.filter(|block| block.language == "sh").map(|block| block.text).collect();
        let all = commands.concat();
        assert!(all.contains("outlive serve\n") && all.contains("pkill -9"), "{all}");
    }
}
