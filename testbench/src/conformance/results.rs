//! The result files of the suite: `server-<scenario>-<time>/checks.json` for every scenario. Client
//! results lack the prefix, and `auth/` is a folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use super::leg::Side;

/// The checks of every scenario of a leg.
pub(super) type Results = BTreeMap<String, Vec<Check>>;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Check {
    pub(super) id: String,
    pub(super) status: Status,
    /// The failure message of the suite.
    pub(super) message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Passed,
    Failed,
    Warned,
    /// Skipped or informational.
    Skipped,
}

/// Creates the folder of the results in `folder`, and removes those of the last run.
pub(super) fn emptied(folder: &Path) -> Result<PathBuf> {
    let results = folder.join("results");
    if results.exists() {
        fs::remove_dir_all(&results).context("could not remove the results of the last run")?;
    }
    fs::create_dir_all(&results).context("could not create the folder conformance/results")?;
    Ok(results)
}

/// Reads the results of one leg.
pub(super) fn read(folder: &Path, side: Side) -> Result<Results> {
    let mut results = Results::new();
    read_into(folder, side, "", &mut results)?;
    Ok(results)
}

fn read_into(folder: &Path, side: Side, above: &str, results: &mut Results) -> Result<()> {
    for entry in fs::read_dir(folder).context("the suite wrote no results")? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let file = path.join("checks.json");
        let Some(scenario) = scenario(&name, side).filter(|_| file.exists()) else {
            if path.is_dir() {
                read_into(&path, side, &format!("{above}{name}/"), results)?;
            }
            continue;
        };
        let text = fs::read_to_string(&file)
            .with_context(|| format!("could not read {}", file.display()))?;
        let checks =
            checks(&text).with_context(|| format!("could not parse {}", file.display()))?;
        results.entry(format!("{above}{scenario}")).or_default().extend(checks);
    }
    Ok(())
}

/// Returns the scenario in `server-tools-list-2026-11-15T04-38-36-979Z`.
fn scenario(folder: &str, side: Side) -> Option<&str> {
    let time = "-2026-11-15T04-38-36-979Z".len();
    let name = match side {
        Side::Server => folder.strip_prefix("server-")?,
        Side::Client => folder,
    };
    let (name, behind) = name.split_at_checked(name.len().checked_sub(time)?)?;
    (behind.starts_with('-') && behind.ends_with('Z')).then_some(name)
}

/// Parses a `checks.json`.
fn checks(text: &str) -> Result<Vec<Check>> {
    let checks: Vec<Value> = serde_json::from_str(text)?;
    let check = |check: &Value| -> Result<Check> {
        let id = check["id"].as_str().context("a check has no ID")?.to_owned();
        let status = match check["status"].as_str() {
            Some("SUCCESS") => Status::Passed,
            Some("FAILURE") => Status::Failed,
            Some("WARNING") => Status::Warned,
            Some("SKIPPED" | "INFO") => Status::Skipped,
            // An unknown status may be a failure.
            other => anyhow::bail!("check `{id}` has the unknown status {other:?}"),
        };
        let message = check["errorMessage"].as_str().unwrap_or_default().to_owned();
        Ok(Check { id, status, message })
    };
    checks.iter().map(check).collect()
}

#[cfg(test)]
mod tests {
    use super::{Check, Side, Status, checks, scenario};

    #[test]
    fn checks_of_scenario_are_parsed() {
        let text = r#"[
            {"id": "tools-list", "name": "ToolsList", "status": "FAILURE", "errorMessage": "fetch failed", "specReferences": []},
            {"id": "wire-schema-valid", "status": "SUCCESS", "details": {"messagesValidated": 1}},
            {"id": "tools-name-format", "status": "WARNING"},
            {"id": "told", "status": "INFO"}
        ]"#;
        let read = checks(text).unwrap();
        let statuses: Vec<Status> = read.iter().map(|check| check.status).collect();
        assert_eq!(statuses, [Status::Failed, Status::Passed, Status::Warned, Status::Skipped]);
        let first = Check {
            id: "tools-list".into(),
            status: Status::Failed,
            message: "fetch failed".into(),
        };
        assert_eq!(read[0], first);
    }

    #[test]
    fn unknown_checks_format_is_an_error() {
        assert!(checks(r#"[{"id": "a", "status": "EXPLODED"}]"#).is_err());
        assert!(checks(r#"[{"status": "SUCCESS"}]"#).is_err());
        assert!(checks(r#"{"checks": []}"#).is_err());
    }

    #[test]
    fn scenario_is_parsed_from_folder_name() {
        assert_eq!(
            scenario("server-json-schema-2020-12-2026-11-15T04-38-36-931Z", Side::Server),
            Some("json-schema-2020-12")
        );
        assert_eq!(
            scenario("server-server-stateless-2026-11-15T04-38-36-735Z", Side::Server),
            Some("server-stateless")
        );
        assert_eq!(scenario("suite.log", Side::Server), None);
    }
}
