//! `outlive.toml`: what is served, and how.
//!
//! - `reader`: TOML with lines, and errors that name them.
//! - `units`: spans of time and amounts of bytes.
//! - `auth`: whose tokens are taken.
//! - `proxy`: the identity provider behind our own authorization server.
//! - `argument`: arguments of tools, and their schema.
//! - `template`: commands with placeholders.
//! - `tool`: a tool.

mod argument;
mod auth;
mod proxy;
mod reader;
mod template;
mod tool;
mod units;

use std::{
    fs,
    net::IpAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use reader::{At, Problem, Result as Read, Section};
use tool::Asked;
use units::Span;

pub(crate) use auth::{AuthConfig, Check};
pub(crate) use tool::{OnCrash, Output, Ready, TaskMode, ToolConfig};
pub(crate) use units::in_words;

use crate::trouble::{Result, Trouble};

/// A file, read and checked.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) server: ServerConfig,
    pub(crate) auth: Option<AuthConfig>,
    pub(crate) tasks: TasksConfig,
    pub(crate) tools: Vec<ToolConfig>,
}

/// `[server]`.
#[derive(Clone, Debug)]
pub(crate) struct ServerConfig {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) title: Option<String>,
    pub(crate) instructions: Option<String>,
    pub(crate) listen: String,
    pub(crate) token_file: Option<PathBuf>,
    pub(crate) seal_key_file: Option<PathBuf>,
    pub(crate) allow_hosts: Vec<String>,
    pub(crate) allow_origins: Vec<String>,
    pub(crate) trust_proxies: Vec<IpAddr>,
    pub(crate) open_to_anyone: bool,
}

/// `[tasks]`.
#[derive(Clone, Debug)]
pub(crate) struct TasksConfig {
    pub(crate) store: Option<String>,
    pub(crate) ttl: Duration,
    pub(crate) max_ttl: Duration,
    pub(crate) poll_interval: Duration,
    pub(crate) max_per_caller: u32,
    pub(crate) max_running: u32,
    /// `None` for a quarter of `max_running`.
    pub(crate) max_running_per_caller: Option<u32>,
    pub(crate) lost_after: Duration,
}

pub(crate) const LISTEN: &str = "127.0.0.1:8000";
pub(crate) const TTL: Duration = Duration::from_secs(24 * 3_600);
pub(crate) const MAX_TTL: Duration = Duration::from_secs(30 * 24 * 3_600);
pub(crate) const POLL_INTERVAL: Duration = Duration::from_secs(1);
pub(crate) const MAX_PER_CALLER: u32 = 1_000;
pub(crate) const MAX_RUNNING: u32 = 256;
pub(crate) const LOST_AFTER: Duration = Duration::from_secs(30);

/// What is served where there is no file.
pub(crate) const DEMO: &str = include_str!("../demo.toml");

/// Reads a file.
pub(crate) fn load(path: &Path) -> Result<Config> {
    let text = fs::read_to_string(path).map_err(|error| {
        Trouble::usage(format_args!("{} cannot be read: {error}", path.display()))
            .remedy("outlive serve --print-demo > outlive.toml writes one to begin with")
    })?;
    parse(&text).map_err(|problem| problem.in_file(path))
}

/// What is served where there is no file.
pub(crate) fn demo() -> Config {
    parse(DEMO).expect("the demo is checked by the tests")
}

fn parse(text: &str) -> Read<Config> {
    parse_noting(text, &mut Asked::default())
}

fn parse_noting(text: &str, asked: &mut Asked) -> Read<Config> {
    let mut file = Section::of(text)?;
    let server = server(file.section("server")?, asked)?;
    let table = file.section("auth")?;
    let line = table.as_ref().map_or(1, |table| table.line);
    let auth = auth::auth(table, asked)?;
    if auth.is_some() && server.token_file.is_some() {
        return Err(Problem::at(
            line,
            "callers have tokens of [auth], or of `token_file`, not of both",
        )
        .remedy("leave one of them out"));
    }
    let tasks = tasks(file.section("tasks")?, asked)?;
    let tools = file.section("tools")?;
    file.finish()?;
    let Some(tools) = tools else {
        return Err(Problem::at(1, "the file has no tools")
            .remedy("[tools.NAME] with a description and a command"));
    };
    let line = tools.line;
    let read =
        tools.entries().into_iter().map(|(name, value)| ToolConfig::read(name, value, asked));
    let tools = read.collect::<Read<Vec<_>>>()?;
    if tools.is_empty() {
        return Err(Problem::at(line, "[tools] is empty")
            .remedy("[tools.NAME] with a description and a command"));
    }
    // Nobody but an issuer says who has a scope; without one nobody could ever call the tool.
    let scoped = tools.iter().find(|tool| !tool.scopes.is_empty());
    if let (Some(tool), None) = (scoped, &auth) {
        let what = format!("the tool `{}` needs scopes, and nobody gives them", tool.name);
        return Err(Problem::at(line, what).remedy("[auth] with an issuer; or leave `scopes` out"));
    }
    Ok(Config { server, auth, tasks, tools })
}

fn server(section: Option<Section<'_>>, asked: &mut Asked) -> Read<ServerConfig> {
    let mut section = section.unwrap_or_else(Section::empty);
    let read = ServerConfig {
        name: section.read("name")?.unwrap_or_else(|| "outlive".to_owned()),
        version: section.read("version")?.unwrap_or_else(|| "1".to_owned()),
        title: section.read("title")?,
        instructions: section.read("instructions")?,
        listen: section.read("listen")?.unwrap_or_else(|| LISTEN.to_owned()),
        token_file: section.read::<String>("token_file")?.map(PathBuf::from),
        seal_key_file: section.read::<String>("seal_key_file")?.map(PathBuf::from),
        allow_hosts: section.read("allow_hosts")?.unwrap_or_default(),
        allow_origins: section.read("allow_origins")?.unwrap_or_default(),
        trust_proxies: proxies(section.read("trust_proxies")?.unwrap_or_default())?,
        open_to_anyone: section.read("open_to_anyone")?.unwrap_or(false),
    };
    asked.note("server", section.finish()?);
    Ok(read)
}

fn proxies(written: Vec<At<String>>) -> Read<Vec<IpAddr>> {
    let read = |At { value, line }: At<String>| {
        value.parse().map_err(|_| {
            Problem::at(line, format_args!("`{value}` is no address"))
                .remedy("trust_proxies = [\"10.0.0.7\"]")
        })
    };
    written.into_iter().map(read).collect()
}

fn tasks(section: Option<Section<'_>>, asked: &mut Asked) -> Read<TasksConfig> {
    let mut section = section.unwrap_or_else(Section::empty);
    let time = |span: Option<Span>, default| span.map_or(default, |Span(span)| span);
    let read = TasksConfig {
        store: section.read("store")?,
        ttl: time(section.read("ttl")?, TTL),
        max_ttl: time(section.read("max_ttl")?, MAX_TTL),
        poll_interval: time(section.read("poll_interval")?, POLL_INTERVAL),
        max_per_caller: section.read("max_per_caller")?.unwrap_or(MAX_PER_CALLER),
        max_running: section.read("max_running")?.unwrap_or(MAX_RUNNING),
        max_running_per_caller: section.read("max_running_per_caller")?,
        lost_after: time(section.read("lost_after")?, LOST_AFTER),
    };
    asked.note("tasks", section.finish()?);
    Ok(read)
}

#[cfg(test)]
mod tests;
