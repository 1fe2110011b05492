//! The file as a whole.

use super::asked::Asked;
use super::auth;
use super::auth::AuthConfig;
use super::hosts::{HostsConfig, hosts, results};
use super::problem::Problems;
use super::problem::{Mistake, Mistakes};
use super::public_url::origin;
use super::reader::{Problem, Result as Read, Section};
use super::server::{ServerConfig, is_loopback, server};
use super::tasks::{TasksConfig, tasks};
use super::tool::ToolConfig;
use outlive::server::hosts::{AnswerBy, Results};
use std::{fs, path::Path};

/// A file, parsed and validated.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) server: ServerConfig,
    pub(crate) auth: Option<AuthConfig>,
    pub(crate) tasks: TasksConfig,
    pub(crate) hosts: HostsConfig,
    pub(crate) results: Results,
    pub(crate) tools: Vec<ToolConfig>,
    /// Warnings: valid keys that are probably a mistake.
    pub(crate) warnings: Vec<Mistake>,
}

impl Config {
    /// Returns the base URL of links to this server: `public_url`, the origin of `[auth] resource`,
    /// or the address of a server that only this machine can reach.
    pub(crate) fn base_url(&self) -> Option<String> {
        let resource = || self.auth.as_ref().and_then(|auth| origin(&auth.resource));
        let listen = &self.server.listen;
        let local = || is_loopback(listen).then(|| format!("http://{listen}"));
        let url = self.server.public_url.clone();
        url.or_else(|| resource().map(str::to_owned)).or_else(local)
    }

    /// Returns whether some input requests can be answered at a link.
    pub(crate) fn has_links(&self) -> bool {
        let has = |answers: &[AnswerBy]| answers.contains(&AnswerBy::Link);
        let of_tool = |tool: &ToolConfig| tool.policy.answers.as_deref().is_some_and(has);
        self.hosts.hosts.is_some() && (has(&self.hosts.answers) || self.tools.iter().any(of_tool))
    }
}

/// The demo, which is served without a file.
pub(crate) const DEMO: &str = include_str!("../demo.toml");

/// JSON Schema of the file, for editors. A test generates it from the keys that the reader
/// requests.
pub(crate) const SCHEMA: &str = include_str!("../../../outlive.schema.json");

/// Reads a file. Every command of the program uses this function, so all report the same mistakes.
///
/// # Errors
///
/// Returns all mistakes of the file, in the order of its lines.
pub(crate) fn load(path: &Path) -> Result<Config, Mistakes> {
    let text = fs::read_to_string(path).map_err(|error| {
        let what = format!("cannot read {}: {error}", path.display());
        let remedy = "create a file from the demo: outlive serve --print-demo > outlive.toml";
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

/// Returns the demo, which is served without a file.
pub(crate) fn demo() -> Config {
    parse(DEMO).expect("the demo is checked by the tests")
}

pub(super) fn parse(text: &str) -> Result<Config, Problems> {
    parse_noting(text, &mut Asked::default()).map(|(config, _)| config)
}

/// Parses a text. Returns the configuration and the warnings, or all mistakes.
pub(super) fn parse_noting(
    text: &str,
    asked: &mut Asked,
) -> Result<(Config, Vec<Problem>), Problems> {
    let mut file = Section::of(text)?;
    let report = file.reported();
    let config = file.attempt(|file| whole(file, asked));
    asked.note("", file.finish().unwrap_or_default());
    let warnings = Problems::sorted(report.problems())?;
    Ok((config.expect("a failed read is reported as a mistake"), warnings))
}

pub(super) fn whole(file: &mut Section<'_>, asked: &mut Asked) -> Read<Config> {
    let table = file.section("server")?;
    let server = server(table, asked)?;
    let table = file.section("auth")?;
    let line = table.as_ref().map_or(1, |table| table.line);
    let has_auth = table.is_some();
    let auth = file.attempt(|_| auth::auth(table, asked)).flatten();
    if has_auth && server.token_file.is_some() {
        file.report(
            Problem::at(line, "`token_file` cannot be combined with [auth]")
                .remedy("remove one of them"),
        );
    }
    let table = file.section("tasks")?;
    let tasks = tasks(table, asked)?;
    let table = file.section("hosts")?;
    let hosts = hosts(table, asked)?;
    let table = file.section("results")?;
    let results = results(table, asked)?;
    let tools = tools(file, has_auth, asked)?;
    if let Some(auth) = &auth
        && let Some((tool, scope)) = auth.ungranted(&tools)
    {
        let what =
            format!("the tool `{tool}` requires the scope `{scope}`, but no user can get it");
        file.report(Problem::at(line, what).remedy(format_args!(
            "add \"{scope}\" = {{ groups = [\"ops\"] }} or \"{scope}\" = \"all\" to [auth.proxy.grants]"
        )));
    }
    let config = Config { server, auth, tasks, hosts, results, tools, warnings: Vec::new() };
    if config.has_links() && config.base_url().is_none() {
        let what = "`answers` has \"link\", but links need the address of this server";
        let remedy = "set public_url = \"https://…\" in [server], or remove \"link\"";
        file.report(Problem::at(config.hosts.line, what).remedy(remedy));
    }
    Ok(config)
}

pub(super) fn tools(
    file: &mut Section<'_>,
    has_auth: bool,
    asked: &mut Asked,
) -> Read<Vec<ToolConfig>> {
    const EXAMPLE: &str = "add [tools.NAME] with a description and a command";
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
        // Only an issuer grants scopes. Without one, every call of the tool would be rejected.
        if !tool.policy.scopes.is_empty() && !has_auth {
            let what = format!(
                "the tool `{}` requires scopes, but without [auth] no token has scopes",
                tool.name
            );
            file.report(
                Problem::at(line, what).remedy("add [auth] with an issuer, or remove `scopes`"),
            );
        }
        tools.push(tool);
    }
    Ok(tools)
}
