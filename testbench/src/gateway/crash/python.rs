//! The Python server of the campaigns.

use std::path::PathBuf;

use anyhow::Result;
use xtask::process;

use crate::gateway::setting::Setting;
use crate::python::{environments, with};

/// Returns the words of the command of the server, for an array in TOML. Its executions go to
/// `FOLDER/executions`.
pub(super) fn command(setting: &Setting) -> Result<String> {
    let root = process::root();
    let list = root.join("conformance/hosts/requirements-mcp-1.txt");
    let python = with(&list, &environments(setting.program())?)?;
    let script = root.join("testbench/src/gateway/crash/studio_server.py");
    let words = [python, script, PathBuf::from("@FOLDER@/executions")];
    let words: Vec<String> = words.iter().map(|word| word.display().to_string()).collect();
    Ok(serde_json::to_string(&words)?)
}
