//! The file as a whole.

use super::asked::Asked;
use super::auth;
use super::auth::AuthConfig;
use super::problem::Problems;
use super::problem::{Mistake, Mistakes};
use super::reader::{Problem, Result as Read, Section};
use super::server::{ServerConfig, server};
use super::tasks::{TasksConfig, tasks};
use super::tool::ToolConfig;
use std::{fs, path::Path};

/// A file, read and checked.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) server: ServerConfig,
    pub(crate) auth: Option<AuthConfig>,
    pub(crate) tasks: TasksConfig,
    pub(crate) tools: Vec<ToolConfig>,
    /// Warnings: keys that are valid and probably a mistake.
    pub(crate) warnings: Vec<Mistake>,
}

/// The file that is served where there is none.
pub(crate) const DEMO: &str = include_str!("../demo.toml");

/// The JSON Schema of a file, for editors; the tests make it from the keys that are read here.
pub(crate) const SCHEMA: &str = include_str!("../../../outlive.schema.json");

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

/// The file that is served where there is none.
pub(crate) fn demo() -> Config {
    parse(DEMO).expect("the demo is checked by the tests")
}

pub(super) fn parse(text: &str) -> Result<Config, Problems> {
    parse_noting(text, &mut Asked::default()).map(|(config, _)| config)
}

/// Reads a text: what it says and what to warn of, or all its mistakes.
pub(super) fn parse_noting(
    text: &str,
    asked: &mut Asked,
) -> Result<(Config, Vec<Problem>), Problems> {
    let mut file = Section::of(text)?;
    let report = file.reported();
    let config = file.attempt(|file| whole(file, asked));
    asked.note("", file.finish().unwrap_or_default());
    let warnings = Problems::sorted(report.problems())?;
    Ok((config.expect("what cannot be read is reported"), warnings))
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

pub(super) fn tools(
    file: &mut Section<'_>,
    has_auth: bool,
    asked: &mut Asked,
) -> Read<Vec<ToolConfig>> {
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
            let what =
                format!("the tool `{}` needs scopes, and no token has scopes here", tool.name);
            file.report(
                Problem::at(line, what).remedy("[auth] with an issuer; or leave `scopes` out"),
            );
        }
        tools.push(tool);
    }
    Ok(tools)
}
