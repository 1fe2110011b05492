//! `[upstreams.NAME.tools.TOOL]`: settings that override the definition of an upstream's tool.

use std::collections::BTreeMap;

use outlive::server::hosts::RESERVED_TOOL_NAMES;

use super::{
    asked::Asked,
    policy_keys::{Hints, PolicyKeys, PolicyOf},
    reader::{At, Problem, Result, Section, Value},
    units::Bytes,
};

/// Section of the documentation.
const SECTION: &str = "upstreams.NAME.tools.TOOL";

/// Settings of one tool. An absent key has the value of the upstream.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct UpstreamToolConfig {
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) hide: bool,
    pub(crate) read_only: Option<bool>,
    pub(crate) destructive: Option<bool>,
    pub(crate) idempotent: Option<bool>,
    pub(crate) max_result: Option<Bytes>,
    pub(crate) eager: bool,
    pub(crate) policy: PolicyKeys,
}

impl UpstreamToolConfig {
    /// Reads the settings of a tool of an upstream with the policy `base`, and reports mistakes.
    fn read(section: &mut Section<'_>, base: &PolicyKeys, asked: &mut Asked) -> Result<Self> {
        let name = section.attempt(name).flatten();
        let read_only = section.read("read_only")?;
        let destructive = section.read("destructive")?;
        let idempotent = section.read("idempotent")?;
        let hints = Hints {
            repeatable: read_only == Some(true) || idempotent == Some(true),
            destructive: destructive == Some(true),
        };
        Ok(Self {
            name,
            description: section.read("description")?,
            hide: section.read("hide")?.unwrap_or(false),
            read_only,
            destructive,
            idempotent,
            max_result: section.read("max_result")?,
            eager: section.read("eager")?.unwrap_or(false),
            policy: PolicyKeys::read(section, PolicyOf::UpstreamTool(base), hints, asked)?,
        })
    }
}

/// Reads the tables of an upstream's tools, in the order of the file.
pub(super) fn tools(
    table: Option<Section<'_>>,
    base: &PolicyKeys,
    asked: &mut Asked,
) -> Result<Vec<(String, UpstreamToolConfig)>> {
    // The documentation test needs the keys of this table even if the file has no such table.
    let mut none = Section::empty();
    let _ = UpstreamToolConfig::read(&mut none, base, asked);
    asked.note(SECTION, none.finish()?);
    let mut tools = Vec::new();
    let mut shown = BTreeMap::new();
    for (tool, value) in table.map(Section::entries).into_iter().flatten() {
        let (line, report) = (value.line, value.reported());
        match one(value, base, asked) {
            Ok(config) => {
                let other = config.name.clone().and_then(|name| shown.insert(name, tool.clone()));
                if let Some(other) = other {
                    let what = format!("`{other}` and `{tool}` have the same `name`");
                    report.add(Problem::at(line, what).remedy("choose another `name`"));
                }
                tools.push((tool, config));
            }
            Err(problem) => report.add(problem),
        }
    }
    Ok(tools)
}

fn one(value: Value<'_>, base: &PolicyKeys, asked: &mut Asked) -> Result<UpstreamToolConfig> {
    let mut section = value.section()?;
    let config = UpstreamToolConfig::read(&mut section, base, asked);
    asked.note(SECTION, section.finish()?);
    config
}

/// Reads the name under which clients see the tool.
fn name(section: &mut Section<'_>) -> Result<Option<String>> {
    let Some(At { value, line }) = section.read::<At<String>>("name")? else { return Ok(None) };
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    if RESERVED_TOOL_NAMES.contains(&value.as_str()) {
        let what = format!("`{value}` is the name of a tool that Outlive adds");
        return Err(Problem::at(line, what).remedy("choose another `name`"));
    }
    match (1..=64).contains(&value.len()) && value.bytes().all(fine) {
        true => Ok(Some(value)),
        false => Err(Problem::at(line, format_args!("`{value}` is not a valid name for a tool"))
            .remedy("use 1 to 64 letters, digits, `_`, `-` or `.`")),
    }
}
