//! `[upstreams.NAME]`: an MCP server whose tools this server passes on.

use std::collections::BTreeMap;

use outlive::wire::Version;
use outlive_gateway::{InputForwarding, Isolation, LogLevel, Pin, Start};
use serde_json::json;

use super::{
    asked::Asked,
    policy_keys::{Hints, PolicyKeys, PolicyOf},
    reader::{At, Problem, Read, Result, Section, Value},
    units::{Bytes, Span},
    upstream_auth::{KnownCallers, UpstreamAuthConfig},
    upstream_target::{UpstreamTarget, target},
    upstream_tool::{UpstreamToolConfig, tools},
};

/// An upstream. An absent key has the default of the gateway.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct UpstreamConfig {
    pub(crate) name: String,
    pub(crate) target: UpstreamTarget,
    pub(crate) protocol_version: Option<Version>,
    pub(crate) prefix: Option<String>,
    pub(crate) only: Vec<String>,
    pub(crate) hide: Vec<String>,
    pub(crate) isolation: Option<Isolation>,
    pub(crate) start: Option<Start>,
    pub(crate) start_timeout: Option<Span>,
    pub(crate) idle_stop: Option<Span>,
    pub(crate) max_concurrent: Option<u32>,
    pub(crate) input: Option<InputForwarding>,
    pub(crate) pin: Option<Pin>,
    pub(crate) max_result: Option<Bytes>,
    pub(crate) max_tools: Option<u32>,
    pub(crate) instructions: Option<bool>,
    pub(crate) log: Option<LogLevel>,
    pub(crate) policy: PolicyKeys,
    pub(crate) tools: Vec<(String, UpstreamToolConfig)>,
}

/// Most `*` in a pattern.
const MAX_STARS: usize = 8;

/// Longest name or prefix.
const LONGEST: usize = 32;

/// A protocol version, or `auto`.
struct Pinned(Option<Version>);

impl Read for Pinned {
    fn read(value: Value<'_>) -> Result<Self> {
        let versions = Version::ALL.map(|version| format!("\"{version}\""));
        let unfit = value.unfit(&format!("\"auto\" or {}", versions.join(" or ")));
        match value.text() {
            Some("auto") => Ok(Self(None)),
            Some(text) => Version::parse(text).map(|version| Self(Some(version))).ok_or(unfit),
            None => Err(unfit),
        }
    }

    fn schema() -> serde_json::Value {
        let words = Version::ALL.map(|version| version.as_str().to_owned());
        json!({"enum": std::iter::once("auto".to_owned()).chain(words).collect::<Vec<_>>()})
    }
}

impl UpstreamConfig {
    /// Creates an upstream with defaults.
    pub(crate) fn new(name: String, target: UpstreamTarget) -> Self {
        Self {
            name,
            target,
            protocol_version: None,
            prefix: None,
            only: Vec::new(),
            hide: Vec::new(),
            isolation: None,
            start: None,
            start_timeout: None,
            idle_stop: None,
            max_concurrent: None,
            input: None,
            pin: None,
            max_result: None,
            max_tools: None,
            instructions: None,
            log: None,
            policy: PolicyKeys::default(),
            tools: Vec::new(),
        }
    }

    /// Returns whether the server has tokens from an authorization server at the upstream.
    pub(crate) fn has_auth(&self) -> bool {
        matches!(&self.target, UpstreamTarget::Url(target) if target.auth.is_some())
    }

    /// Returns what stands before the names of the tools.
    pub(crate) fn shown_prefix(&self) -> &str {
        self.prefix.as_deref().unwrap_or(&self.name)
    }

    /// Returns each tool with scopes that it requires; the upstream itself stands for its other
    /// tools.
    pub(super) fn scopes(&self) -> impl Iterator<Item = (&str, &[String])> {
        let own = self.policy.scopes.as_deref().unwrap_or_default();
        let tools = self
            .tools
            .iter()
            .filter_map(|(name, tool)| Some((name.as_str(), tool.policy.scopes.as_deref()?)));
        std::iter::once((self.name.as_str(), own)).chain(tools)
    }

    /// Reads `[upstreams.NAME]`, and reports mistakes. After a mistake, it must not be used.
    fn read(
        name: String,
        section: &mut Section<'_>,
        callers: KnownCallers,
        asked: &mut Asked,
    ) -> Result<Self> {
        let line = section.line;
        section.attempt(|_| check_name(&name, line));
        let target = section.attempt(|section| target(section, callers, asked));
        let hints = Hints { repeatable: false, destructive: false };
        let policy = PolicyKeys::read(section, PolicyOf::Upstream, hints, asked)?;
        let start = [("first-use", Start::FirstUse), ("at-start", Start::AtStart)];
        let input = [("client", InputForwarding::Client), ("never", InputForwarding::Never)];
        let pin = [("warn", Pin::Warn), ("deny", Pin::Deny), ("off", Pin::Off)];
        let log = [
            ("off", LogLevel::Off),
            ("error", LogLevel::Error),
            ("warn", LogLevel::Warn),
            ("info", LogLevel::Info),
            ("debug", LogLevel::Debug),
        ];
        let upstream = Self {
            protocol_version: section.read("protocol_version")?.and_then(|Pinned(version)| version),
            prefix: section.attempt(prefix).flatten(),
            only: globs(section, "only")?,
            hide: globs(section, "hide")?,
            start: section.choice("start", &start).map(|chosen| chosen.value),
            isolation: isolation_of(section, target.as_ref()),
            start_timeout: section.read("start_timeout")?,
            idle_stop: section.read("idle_stop")?,
            max_concurrent: section.read("max_concurrent")?,
            input: section.choice("input", &input).map(|chosen| chosen.value),
            pin: section.choice("pin", &pin).map(|chosen| chosen.value),
            max_result: section.read("max_result")?,
            max_tools: section.read("max_tools")?,
            instructions: section.read("instructions")?,
            log: section.choice("log", &log).map(|chosen| chosen.value),
            tools: {
                let table = section.section("tools")?;
                tools(table, &policy, asked)?
            },
            policy,
            ..Self::new(name, target.unwrap_or_else(|| UpstreamTarget::Command(<_>::default())))
        };
        Ok(upstream)
    }
}

/// Reads `[upstreams]`.
pub(super) fn upstreams(
    file: &mut Section<'_>,
    callers: KnownCallers,
    asked: &mut Asked,
) -> Result<Vec<UpstreamConfig>> {
    let mut upstreams = Vec::new();
    let mut prefixes = BTreeMap::new();
    let table = file.section("upstreams")?;
    for (name, value) in table.map(Section::entries).into_iter().flatten() {
        let line = value.line;
        let Some(mut section) = file.attempt(|_| value.section()) else { continue };
        let read = section.attempt(|section| UpstreamConfig::read(name, section, callers, asked));
        asked.note("upstreams.NAME", section.finish()?);
        let Some(upstream) = read else { continue };
        let prefix = upstream.shown_prefix().to_owned();
        if let Some(other) = prefixes.insert(prefix.clone(), upstream.name.clone()) {
            let what = format!(
                "the upstreams `{other}` and `{}` have the prefix \"{prefix}\"",
                upstream.name
            );
            file.report(Problem::at(line, what).remedy("set another `prefix` for one of them"));
        }
        // Only an issuer grants scopes. Without one, every call of the tool would be rejected.
        if !callers.has_auth && upstream.scopes().any(|(_, scopes)| !scopes.is_empty()) {
            let what = format!(
                "the upstream `{}` requires scopes, but without [auth] no token has scopes",
                upstream.name
            );
            let remedy = "add [auth] with an issuer, or remove `scopes`";
            file.report(Problem::at(line, what).remedy(remedy));
        }
        upstreams.push(upstream);
    }
    // The documentation test needs the keys of this table even if the file has no such table.
    let mut none = Section::empty();
    let _ = UpstreamConfig::read(String::new(), &mut none, callers, asked);
    asked.note("upstreams.NAME", none.finish()?);
    Ok(upstreams)
}

fn check_name(name: &str, line: usize) -> Result<()> {
    match is_upstream_name(name) {
        true => Ok(()),
        false => {
            Err(Problem::at(line, format_args!("`{name}` is not a valid name for an upstream"))
                .remedy(format_args!(
                    "use at most {LONGEST} small letters, digits and `-`, and start with a letter"
                )))
        }
    }
}

/// Returns whether a text is a valid name of an upstream.
pub(crate) fn is_upstream_name(name: &str) -> bool {
    let fine = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    name.len() <= LONGEST
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(fine)
}

/// Reads `isolation`, and reports a value that excludes the `auth` of the target.
fn isolation_of(section: &mut Section<'_>, target: Option<&UpstreamTarget>) -> Option<Isolation> {
    let isolation = [
        ("principal", Isolation::Principal),
        ("session", Isolation::Session),
        ("shared", Isolation::Shared),
    ];
    let chosen = section.choice("isolation", &isolation)?;
    let auth = match target {
        Some(UpstreamTarget::Url(target)) => target.auth.as_ref(),
        _ => None,
    };
    if chosen.value == Isolation::Shared && auth.is_some_and(UpstreamAuthConfig::is_of_users) {
        let what = "connections are `shared`, but `auth` has a token for each user";
        section.report(
            Problem::at(chosen.line, what).remedy("remove `isolation`, or use another `auth`"),
        );
    }
    Some(chosen.value)
}

fn prefix(section: &mut Section<'_>) -> Result<Option<String>> {
    let Some(At { value, line }) = section.read::<At<String>>("prefix")? else { return Ok(None) };
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    match value.len() <= LONGEST && value.bytes().all(fine) {
        true => Ok(Some(value)),
        false => Err(Problem::at(line, format_args!("`{value}` is not a valid prefix"))
            .remedy(format_args!("use at most {LONGEST} letters, digits, `_`, `-` and `.`"))),
    }
}

/// Reads patterns of names.
fn globs(section: &mut Section<'_>, key: &'static str) -> Result<Vec<String>> {
    let Some(At { value, line }) = section.read::<At<Vec<String>>>(key)? else {
        return Ok(Vec::new());
    };
    if value.is_empty() {
        let what = format!("`{key}` is empty");
        section.report(Problem::at(line, what).remedy(format_args!(
            "write patterns such as {key} = [\"read_*\"], or remove `{key}`"
        )));
    }
    for glob in value.iter().filter(|glob| glob.matches('*').count() > MAX_STARS) {
        let what = format!("the pattern `{glob}` has more than {MAX_STARS} `*`");
        section.report(Problem::at(line, what).remedy("write several patterns"));
    }
    Ok(value)
}
