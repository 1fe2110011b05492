//! `outlive.toml`: what is served, and how.
//!
//! - `reader`: TOML with lines; it gathers mistakes. `problem`: a mistake, and all of them.
//! - `units`: spans of time and amounts of bytes.
//! - `auth`: whose tokens are taken.
//! - `limits`: what callers may use of the server.
//! - `proxy`: the identity provider behind our own authorization server.
//! - `grants`: which of its users get which scopes.
//! - `argument`: arguments of tools, and their schema.
//! - `template`: commands with placeholders.
//! - `tool`: a tool. `trial`: whether the server takes its schemas.

mod argument;
mod auth;
mod grants;
mod limits;
mod problem;
mod proxy;
mod reader;
mod template;
mod tool;
mod trial;
mod units;

use std::{
    fs,
    net::IpAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use problem::Problems;
use reader::{At, Problem, Result as Read, Section, Value};
use serde_json::json;
use tool::Asked;
use units::{Bytes, Span};

pub(crate) use auth::{AuthConfig, Check};
pub(crate) use limits::ServerLimits;
pub(crate) use problem::{Mistake, Mistakes};
pub(crate) use tool::{OnCrash, Output, Ready, TaskMode, ToolConfig};
pub(crate) use units::in_words;

/// A file, read and checked.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) server: ServerConfig,
    pub(crate) auth: Option<AuthConfig>,
    pub(crate) tasks: TasksConfig,
    pub(crate) tools: Vec<ToolConfig>,
    /// What is probably not meant as it is written.
    pub(crate) warnings: Vec<Mistake>,
}

/// `[server]`.
#[derive(Clone, Debug)]
pub(crate) struct ServerConfig {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) title: Option<String>,
    pub(crate) instructions: Option<String>,
    /// The folder of skills, from the folder of the file on.
    pub(crate) skills: Option<PathBuf>,
    pub(crate) listen: String,
    pub(crate) token_file: Option<PathBuf>,
    pub(crate) seal_key_file: Option<PathBuf>,
    pub(crate) allow_hosts: Vec<String>,
    pub(crate) allow_origins: Vec<String>,
    pub(crate) trusted_proxies: Vec<IpAddr>,
    pub(crate) allow_anonymous: bool,
    /// Where the metrics are served, if not at `listen`.
    pub(crate) metrics_listen: Option<String>,
    /// Token that opens the metrics at `listen`.
    pub(crate) metrics_token_file: Option<PathBuf>,
    pub(crate) max_waiting_jobs_per_caller: u32,
    pub(crate) limits: ServerLimits,
}

/// `[tasks]`.
#[derive(Clone, Debug)]
pub(crate) struct TasksConfig {
    pub(crate) store: Option<String>,
    pub(crate) ttl: Duration,
    pub(crate) max_ttl: Duration,
    pub(crate) poll_interval: Duration,
    pub(crate) max_tasks_per_caller: u32,
    pub(crate) max_store_bytes_per_caller: u64,
    pub(crate) max_audit_events: u32,
    pub(crate) max_anonymous_store: u64,
    pub(crate) max_store: u64,
    pub(crate) max_running: u32,
    /// `None` for a quarter of `max_running`.
    pub(crate) max_running_per_caller: Option<u32>,
    pub(crate) replica_timeout: Duration,
}

pub(crate) const LISTEN: &str = "127.0.0.1:8000";
pub(crate) const MAX_WAITING_JOBS: u32 = 8;
pub(crate) const TTL: Duration = Duration::from_secs(24 * 3_600);
pub(crate) const MAX_TTL: Duration = Duration::from_secs(30 * 24 * 3_600);
pub(crate) const POLL_INTERVAL: Duration = Duration::from_secs(1);
pub(crate) const MAX_PER_CALLER: u32 = 1_000;
pub(crate) const MAX_STORE_BYTES_PER_CALLER: u64 = 64 << 20;
pub(crate) const MAX_AUDIT_EVENTS: u32 = 1_000_000;
pub(crate) const MAX_ANONYMOUS_STORE: u64 = 256 << 20;
pub(crate) const MAX_STORE: u64 = 4 << 30;
pub(crate) const MAX_RUNNING: u32 = 256;
pub(crate) const REPLICA_TIMEOUT: Duration = Duration::from_secs(30);

/// What is served where there is no file.
pub(crate) const DEMO: &str = include_str!("../demo.toml");

/// The JSON Schema of a file, for editors; the tests make it from the keys that are read here.
pub(crate) const SCHEMA: &str = include_str!("../../../../../docs/outlive.schema.json");

/// Reads a file. It is the only judge of a file, for every command of the program.
///
/// # Errors
///
/// All mistakes of the file, in the order of its lines.
pub(crate) fn load(path: &Path) -> Result<Config, Mistakes> {
    let text = fs::read_to_string(path).map_err(|error| {
        let what = format!("{} cannot be read: {error}", path.display());
        let remedy = "outlive serve --print-demo > outlive.toml writes one to begin with";
        Mistakes(vec![Mistake { what, remedy: Some(remedy.to_owned()) }])
    })?;
    let told = |problem: Problem| problem.in_file(path);
    match parse_noting(&text, &mut Asked::default()) {
        Ok((config, warnings)) => {
            Ok(Config { warnings: warnings.into_iter().map(told).collect(), ..config })
        }
        Err(Problems(problems)) => Err(Mistakes(problems.into_iter().map(told).collect())),
    }
}

/// What is served where there is no file.
pub(crate) fn demo() -> Config {
    parse(DEMO).expect("the demo is checked by the tests")
}

fn parse(text: &str) -> Result<Config, Problems> {
    parse_noting(text, &mut Asked::default()).map(|(config, _)| config)
}

/// Reads a text: what it says and what to warn of, or all its mistakes.
fn parse_noting(text: &str, asked: &mut Asked) -> Result<(Config, Vec<Problem>), Problems> {
    let mut file = Section::of(text)?;
    let report = file.reported();
    let config = file.attempt(|file| whole(file, asked));
    asked.note("", file.finish().unwrap_or_default());
    let warnings = Problems::sorted(report.problems())?;
    Ok((config.expect("what cannot be read is reported"), warnings))
}

fn whole(file: &mut Section<'_>, asked: &mut Asked) -> Read<Config> {
    let table = file.section("server")?;
    let server = server(table, asked)?;
    let table = file.section("auth")?;
    let line = table.as_ref().map_or(1, |table| table.line);
    let has_auth = table.is_some();
    let auth = file.attempt(|_| auth::auth(table, asked)).flatten();
    if has_auth && server.token_file.is_some() {
        file.report(
            Problem::at(line, "callers have tokens of [auth], or of `token_file`, not of both")
                .remedy("leave one of them out"),
        );
    }
    let table = file.section("tasks")?;
    let tasks = tasks(table, asked)?;
    let tools = tools(file, has_auth, asked)?;
    if let Some(auth) = &auth
        && let Some((tool, scope)) = auth.ungranted(&tools)
    {
        let what = format!("the tool `{tool}` needs the scope `{scope}`, and no user can get it");
        file.report(Problem::at(line, what).remedy(format_args!(
            "[auth.proxy.grants] with \"{scope}\" = {{ groups = [\"ops\"] }}; or \"{scope}\" = \"all\""
        )));
    }
    Ok(Config { server, auth, tasks, tools, warnings: Vec::new() })
}

fn tools(file: &mut Section<'_>, has_auth: bool, asked: &mut Asked) -> Read<Vec<ToolConfig>> {
    const EXAMPLE: &str = "[tools.NAME] with a description and a command";
    let Some(section) = file.section("tools")? else {
        return Err(Problem::at(1, "the file has no tools").remedy(EXAMPLE));
    };
    let line = section.line;
    let entries = section.entries();
    if entries.is_empty() {
        file.report(Problem::at(line, "[tools] is empty").remedy(EXAMPLE));
    }
    let mut tools = Vec::new();
    for (name, value) in entries {
        let line = value.line;
        let Some(tool) = file.attempt(|_| ToolConfig::read(name, value, asked)) else { continue };
        // Only an issuer grants scopes: without one, no caller could ever call the tool.
        if !tool.scopes.is_empty() && !has_auth {
            let what = format!("the tool `{}` needs scopes, and nobody gives them", tool.name);
            file.report(
                Problem::at(line, what).remedy("[auth] with an issuer; or leave `scopes` out"),
            );
        }
        tools.push(tool);
    }
    Ok(tools)
}

fn server(section: Option<Section<'_>>, asked: &mut Asked) -> Read<ServerConfig> {
    let mut section = section.unwrap_or_else(Section::empty);
    let read = ServerConfig {
        name: section.read("name")?.unwrap_or_else(|| "outlive".to_owned()),
        version: section.read("version")?.unwrap_or_else(|| "1".to_owned()),
        title: section.read("title")?,
        instructions: section.read("instructions")?,
        skills: section.read::<String>("skills")?.map(PathBuf::from),
        listen: section.read("listen")?.map_or_else(|| LISTEN.to_owned(), |Address(it)| it),
        token_file: section.read::<String>("token_file")?.map(PathBuf::from),
        seal_key_file: section.read::<String>("seal_key_file")?.map(PathBuf::from),
        allow_hosts: section.read("allow_hosts")?.unwrap_or_default(),
        allow_origins: section.read("allow_origins")?.unwrap_or_default(),
        trusted_proxies: section.attempt(proxies).unwrap_or_default(),
        allow_anonymous: section.read("allow_anonymous")?.unwrap_or(false),
        metrics_listen: section.read("metrics_listen")?.map(|Address(it)| it),
        metrics_token_file: section.read::<String>("metrics_token_file")?.map(PathBuf::from),
        max_waiting_jobs_per_caller: section
            .read("max_waiting_jobs_per_caller")?
            .unwrap_or(MAX_WAITING_JOBS),
        limits: ServerLimits::read(&mut section)?,
    };
    asked.note("server", section.finish()?);
    Ok(read)
}

/// An address to listen at, with its port.
struct Address(String);

impl reader::Read for Address {
    fn read(value: Value<'_>) -> Read<Self> {
        let unfit = value.unfit("an address and a port such as \"127.0.0.1:8000\"");
        let text = String::read(value)?;
        if is_address(&text) { Ok(Self(text)) } else { Err(unfit) }
    }

    fn schema() -> serde_json::Value {
        json!({"type": "string", "pattern": ":[0-9]+$"})
    }
}

/// Whether a text is an address, or a name, with a port.
pub(crate) fn is_address(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let is_six = host.starts_with('[') && host.ends_with(']');
    !host.is_empty() && (is_six || !host.contains(':')) && port.parse::<u16>().is_ok()
}

fn proxies(section: &mut Section<'_>) -> Read<Vec<IpAddr>> {
    let written: Vec<At<String>> = section.read("trusted_proxies")?.unwrap_or_default();
    let mut read = Vec::new();
    for At { value, line } in written {
        match value.parse() {
            Ok(address) => read.push(address),
            Err(_) => section.report(
                Problem::at(line, format_args!("`{value}` is no address"))
                    .remedy("trusted_proxies = [\"10.0.0.7\"]"),
            ),
        }
    }
    Ok(read)
}

/// Where tasks are kept.
struct StoreUrl(String);

impl reader::Read for StoreUrl {
    fn read(value: Value<'_>) -> Read<Self> {
        let line = value.line;
        let text = String::read(value)?;
        // What stands behind the scheme may be a password.
        match text.split_once(':').map(|(scheme, _)| scheme) {
            Some("sqlite" | "postgres" | "postgresql" | "memory") => Ok(Self(text)),
            Some(scheme) => Err(Problem::at(
                line,
                format_args!("`store` begins with `{scheme}:`, which is no store"),
            )),
            None => Err(Problem::at(line, "`store` does not say what kind of store it is")),
        }
        .map_err(|problem| {
            problem.remedy("store = \"sqlite:FILE\", or \"postgres://…\" for replicas")
        })
    }

    fn schema() -> serde_json::Value {
        json!({"type": "string", "pattern": "^(sqlite|postgres|postgresql|memory):"})
    }
}

fn tasks(section: Option<Section<'_>>, asked: &mut Asked) -> Read<TasksConfig> {
    let mut section = section.unwrap_or_else(Section::empty);
    let time = |span: Option<Span>, default| span.map_or(default, |Span(span)| span);
    let ttl: Option<At<Span>> = section.read("ttl")?;
    let max_ttl: Option<At<Span>> = section.read("max_ttl")?;
    if let (Some(ttl), Some(max_ttl)) = (&ttl, &max_ttl)
        && ttl.value.0 > max_ttl.value.0
    {
        let (ttl_shown, max_shown) = (in_words(ttl.value.0), in_words(max_ttl.value.0));
        let what = format!("`ttl` is {ttl_shown}, and `max_ttl` {max_shown} is less");
        section.report(Problem::at(ttl.line, what).remedy("`ttl` of at most `max_ttl`"));
    }
    let max_ttl = time(max_ttl.map(|it| it.value), MAX_TTL);
    let read = TasksConfig {
        store: section.read("store")?.map(|StoreUrl(url)| url),
        // A default never contradicts what is written.
        ttl: time(ttl.map(|it| it.value), TTL.min(max_ttl)),
        max_ttl,
        poll_interval: time(section.read("poll_interval")?, POLL_INTERVAL),
        max_tasks_per_caller: section.read("max_tasks_per_caller")?.unwrap_or(MAX_PER_CALLER),
        max_store_bytes_per_caller: section
            .read("max_store_bytes_per_caller")?
            .map_or(MAX_STORE_BYTES_PER_CALLER, |Bytes(bytes)| bytes),
        max_audit_events: section.read("max_audit_events")?.unwrap_or(MAX_AUDIT_EVENTS),
        max_anonymous_store: section
            .read("max_anonymous_store")?
            .map_or(MAX_ANONYMOUS_STORE, |Bytes(bytes)| bytes),
        max_store: section.read("max_store")?.map_or(MAX_STORE, |Bytes(bytes)| bytes),
        max_running: section.read("max_running")?.unwrap_or(MAX_RUNNING),
        max_running_per_caller: section.read("max_running_per_caller")?,
        replica_timeout: time(section.read("replica_timeout")?, REPLICA_TIMEOUT),
    };
    asked.note("tasks", section.finish()?);
    Ok(read)
}

#[cfg(test)]
mod tests;
