//! `[workers.NAME]`: a command whose processes run tools, and the policy of its tools.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use outlive::server::hosts::RESERVED_TOOL_NAMES;
use serde_json::json;

use super::{
    asked::Asked,
    policy_keys::{Hints, PolicyKeys, PolicyOf},
    reader::{Problem, Read as _, Result, Section, Value},
    reference::Reference,
    tool::KILL_GRACE,
    units::Span,
    upstream::is_upstream_name,
    upstream_target::{command_words, variable},
};

/// Sections of the documentation.
const SECTION: &str = "workers.NAME";
const TOOL_SECTION: &str = "workers.NAME.tools.TOOL";

/// Defaults. docs/outlive-toml.md lists them.
const PROCESSES: u32 = 1;
const MAX_CONCURRENT: u32 = 16;
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// A tool worker.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WorkerConfig {
    pub(crate) name: String,
    /// Program and arguments.
    pub(crate) words: Vec<String>,
    /// Working folder, relative to the folder of the file.
    folder: Option<PathBuf>,
    pub(crate) env: Vec<(String, Reference)>,
    pub(crate) pass_env: Vec<String>,
    pub(crate) inherit_env: bool,
    pub(crate) kill_grace: Duration,
    pub(crate) processes: u32,
    pub(crate) max_concurrent: u32,
    pub(crate) start_timeout: Duration,
    pub(crate) watch: Vec<String>,
    /// Policies of tools, which override their declarations.
    pub(crate) tools: Vec<(String, PolicyKeys)>,
}

impl WorkerConfig {
    /// Creates a tool worker with defaults.
    pub(crate) fn new(name: String, words: Vec<String>) -> Self {
        Self {
            name,
            words,
            folder: None,
            env: Vec::new(),
            pass_env: Vec::new(),
            inherit_env: false,
            kill_grace: KILL_GRACE,
            processes: PROCESSES,
            max_concurrent: MAX_CONCURRENT,
            start_timeout: START_TIMEOUT,
            watch: Vec::new(),
            tools: Vec::new(),
        }
    }

    /// Returns the working folder. A relative folder is relative to the folder of the file.
    pub(crate) fn folder_in(&self, base: &Path) -> PathBuf {
        self.folder.as_ref().map_or_else(|| base.to_owned(), |folder| base.join(folder))
    }

    /// Returns each tool with the scopes that the file sets.
    pub(super) fn scopes(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.tools.iter().filter_map(|(tool, keys)| Some((tool.as_str(), keys.scopes.as_deref()?)))
    }

    /// Reads `[workers.NAME]`, and reports mistakes. After a mistake, it must not be used.
    fn read(name: String, section: &mut Section<'_>, asked: &mut Asked) -> Result<Self> {
        let line = section.line;
        section.attempt(|_| check_name(&name, line));
        let words = section.attempt(command).unwrap_or_default();
        let defaults = Self::new(name, words);
        Ok(Self {
            folder: section.read::<String>("working_dir")?.map(PathBuf::from),
            env: environment(section)?,
            pass_env: section.read("pass_env")?.unwrap_or_default(),
            inherit_env: section.read("inherit_env")?.unwrap_or(false),
            kill_grace: span(section, "kill_grace", defaults.kill_grace)?,
            processes: section.read("processes")?.unwrap_or(PROCESSES),
            max_concurrent: section.read("max_concurrent")?.unwrap_or(MAX_CONCURRENT),
            start_timeout: span(section, "start_timeout", defaults.start_timeout)?,
            watch: section.read("watch")?.unwrap_or_default(),
            tools: {
                let table = section.section("tools")?;
                tools(table, asked)?
            },
            ..defaults
        })
    }
}

fn span(section: &mut Section<'_>, key: &'static str, otherwise: Duration) -> Result<Duration> {
    Ok(section.read(key)?.map_or(otherwise, |Span(span)| span))
}

fn command(section: &mut Section<'_>) -> Result<Vec<String>> {
    let words = json!({"type": "array", "items": {"type": "string"}, "minItems": 1});
    let Some(command) = section.take_as("command", words) else {
        let what = format!("[{}] has no command", section.path());
        let lacking = section.lacks("command", what);
        return Err(lacking.or_remedy("add command = [\"uv\", \"run\", \"tools.py\"]"));
    };
    command_words(command)
}

fn environment(section: &mut Section<'_>) -> Result<Vec<(String, Reference)>> {
    let schema = json!({"type": "object", "additionalProperties": Reference::schema()});
    let Some(value) = section.take_as("env", schema) else { return Ok(Vec::new()) };
    let Some(table) = section.attempt(|_| value.section()) else { return Ok(Vec::new()) };
    let mut pairs = Vec::new();
    for (name, value) in table.entries() {
        let line = value.line;
        pairs.extend(section.attempt(|_| Ok((variable(&name, line)?, Reference::read(value)?))));
    }
    Ok(pairs)
}

/// Reads the policies of tools, in the order of the file.
fn tools(table: Option<Section<'_>>, asked: &mut Asked) -> Result<Vec<(String, PolicyKeys)>> {
    // The documentation test needs the keys of this table even if the file has no such table.
    let mut none = Section::empty();
    let _ = policy(&mut none, asked);
    asked.note(TOOL_SECTION, none.finish()?);
    let mut tools = Vec::new();
    for (tool, value) in table.map(Section::entries).into_iter().flatten() {
        let report = value.reported();
        match one(&tool, value, asked) {
            Ok(keys) => tools.push((tool, keys)),
            Err(problem) => report.add(problem),
        }
    }
    Ok(tools)
}

fn one(tool: &str, value: Value<'_>, asked: &mut Asked) -> Result<PolicyKeys> {
    let line = value.line;
    let mut section = value.section()?;
    let keys = policy(&mut section, asked);
    asked.note(TOOL_SECTION, section.finish()?);
    if RESERVED_TOOL_NAMES.contains(&tool) {
        let what = format!("`{tool}` is the name of a tool that Outlive adds");
        return Err(Problem::at(line, what).remedy("rename the tool in its code"));
    }
    keys
}

fn policy(section: &mut Section<'_>, asked: &mut Asked) -> Result<PolicyKeys> {
    // Only the code declares whether the tool is destructive or can be rerun.
    let hints = Hints { repeatable: false, destructive: false };
    PolicyKeys::read(section, PolicyOf::WorkerTool, hints, asked)
}

/// Reads `[workers]`.
pub(super) fn workers(
    file: &mut Section<'_>,
    has_auth: bool,
    asked: &mut Asked,
) -> Result<Vec<WorkerConfig>> {
    let mut workers: Vec<WorkerConfig> = Vec::new();
    let table = file.section("workers")?;
    for (name, value) in table.map(Section::entries).into_iter().flatten() {
        let line = value.line;
        let Some(mut section) = file.attempt(|_| value.section()) else { continue };
        let read = section.attempt(|section| WorkerConfig::read(name, section, asked));
        asked.note(SECTION, section.finish()?);
        let Some(worker) = read else { continue };
        // Only an issuer grants scopes. Without one, every call of the tool would be rejected.
        if !has_auth && worker.scopes().any(|(_, scopes)| !scopes.is_empty()) {
            let what = format!(
                "the tool worker `{}` requires scopes, but without [auth] no token has scopes",
                worker.name
            );
            let remedy = "add [auth] with an issuer, or remove `scopes`";
            file.report(Problem::at(line, what).remedy(remedy));
        }
        workers.push(worker);
    }
    // The documentation test needs the keys of this table even if the file has no such table.
    let mut none = Section::empty();
    let _ = WorkerConfig::read(String::new(), &mut none, asked);
    asked.note(SECTION, none.finish()?);
    Ok(workers)
}

fn check_name(name: &str, line: usize) -> Result<()> {
    match is_upstream_name(name) {
        true => Ok(()),
        false => {
            Err(Problem::at(line, format_args!("`{name}` is not a valid name for a tool worker"))
                .remedy("use at most 32 small letters, digits and `-`, and start with a letter"))
        }
    }
}
