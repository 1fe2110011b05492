//! The file as a whole.

use super::approve::{ApproveConfig, RuleArguments};
use super::asked::Asked;
use super::auth;
use super::auth::AuthConfig;
use super::console::{ConsoleConfig, console};
use super::gateway::gateway;
use super::hosts::{HostsConfig, hosts, results};
use super::notify::{self, KnownTools, NotifyConfig};
use super::policy_keys::PolicyKeys;
use super::problem::Problems;
use super::problem::{Mistake, Mistakes};
use super::public_url::origin;
use super::reader::{Problem, Result as Read, Section};
use super::server::{ServerConfig, is_loopback, server};
use super::tasks::{TasksConfig, tasks};
use super::tool::ToolConfig;
use super::upstream::{UpstreamConfig, upstreams};
use super::upstream_auth::KnownCallers;
use super::upstream_tool::UpstreamToolConfig;
use super::worker::{WorkerConfig, workers};
use outlive::server::hosts::{AnswerBy, Results};
use outlive_gateway::GatewaySettings;
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
    pub(crate) upstreams: Vec<UpstreamConfig>,
    pub(crate) workers: Vec<WorkerConfig>,
    pub(crate) gateway: GatewaySettings,
    pub(crate) notify: Vec<NotifyConfig>,
    /// Rule for destructive tools without a rule of their own.
    pub(crate) approve_destructive: Option<ApproveConfig>,
    pub(crate) console: ConsoleConfig,
    /// Warnings: valid keys that are probably a mistake.
    pub(crate) warnings: Vec<Mistake>,
}

impl Config {
    /// Returns the address of this server for people on other machines: `public_url`, or the origin
    /// of `[auth] resource`.
    pub(crate) fn public_url(&self) -> Option<String> {
        let resource = || self.auth.as_ref().and_then(|auth| origin(&auth.resource));
        self.server.public_url.clone().or_else(|| resource().map(str::to_owned))
    }

    /// Returns the base URL of links to this server: the public one, or the address of a server that
    /// only this machine can reach.
    pub(crate) fn base_url(&self) -> Option<String> {
        let listen = &self.server.listen;
        self.public_url().or_else(|| is_loopback(listen).then(|| format!("http://{listen}")))
    }

    /// Returns whether the server has a console: as the file says, else if only this machine can
    /// reach the server.
    pub(crate) fn has_console(&self) -> bool {
        self.console.enabled.unwrap_or_else(|| is_loopback(&self.server.listen))
    }

    /// Returns every rule for the approval of calls, with the place that has it.
    pub(crate) fn approval_rules<'c>(&'c self) -> Vec<(String, &'c ApproveConfig)> {
        let of_tool = |tool: &ToolConfig| format!("`approve` of the tool `{}`", tool.name);
        let tools = self.tools.iter();
        let rules = tools.filter_map(|tool| Some((of_tool(tool), tool.policy.approve.as_ref()?)));
        let of_upstream = |(name, tool, config): (&str, &str, &'c UpstreamToolConfig)| {
            let place = format!("`approve` of the tool `{tool}` of the upstream `{name}`");
            Some((place, config.policy.approve.as_ref()?))
        };
        let rules = rules.chain(self.upstream_tools().filter_map(of_upstream));
        let of_worker = |(name, tool, policy): (&str, &str, &'c PolicyKeys)| {
            let place = format!("`approve` of the tool `{tool}` of the tool worker `{name}`");
            Some((place, policy.approve.as_ref()?))
        };
        let rules = rules.chain(self.worker_tools().filter_map(of_worker));
        let shared = self.approve_destructive.as_ref();
        rules.chain(shared.map(|rule| ("`destructive` of [approvals]".to_owned(), rule))).collect()
    }

    /// Returns the settings of all tools of upstreams: upstream, tool, settings.
    fn upstream_tools(&self) -> impl Iterator<Item = (&str, &str, &UpstreamToolConfig)> {
        self.upstreams.iter().flat_map(|upstream| {
            let tools = upstream.tools.iter();
            tools.map(|(tool, config)| (upstream.name.as_str(), tool.as_str(), config))
        })
    }

    /// Returns the policies of tools of tool workers: tool worker, tool, policy.
    fn worker_tools(&self) -> impl Iterator<Item = (&str, &str, &PolicyKeys)> {
        self.workers.iter().flat_map(|worker| {
            let tools = worker.tools.iter();
            tools.map(|(tool, policy)| (worker.name.as_str(), tool.as_str(), policy))
        })
    }

    /// Returns whether the answer page is needed: for answers of clients, or for links of people.
    pub(crate) fn has_answer_page(&self) -> bool {
        self.has_links() || self.approval_rules().iter().any(|(_, rule)| rule.links)
    }

    /// Returns whether some input requests can be answered at a link.
    pub(crate) fn has_links(&self) -> bool {
        let has = |answers: &[AnswerBy]| answers.contains(&AnswerBy::Link);
        let of_tool = |tool: &ToolConfig| tool.policy.answers.as_deref().is_some_and(has);
        let of_upstream = |(_, _, tool): (&str, &str, &UpstreamToolConfig)| {
            tool.policy.answers.as_deref().is_some_and(has)
        };
        let of_worker =
            |(_, _, policy): (&str, &str, &PolicyKeys)| policy.answers.as_deref().is_some_and(has);
        self.hosts.hosts.is_some()
            && (has(&self.hosts.answers)
                || self.tools.iter().any(of_tool)
                || self.upstream_tools().any(of_upstream)
                || self.worker_tools().any(of_worker))
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

/// Returns a configuration without tools, upstreams and tool workers, for those of the command line.
pub(crate) fn without_tools() -> Config {
    Config { tools: Vec::new(), ..demo() }
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
    let has_proxy = auth.as_ref().is_some_and(|auth| auth.proxy.is_some());
    let own = auth.as_ref().and_then(|auth| origin(&auth.resource));
    let is_proxy_elsewhere = server.public_url.as_deref().is_some_and(|url| Some(url) != own);
    let callers = KnownCallers { has_auth, has_proxy, is_proxy_elsewhere };
    let upstreams = upstreams(file, callers, asked)?;
    let table = file.section("gateway")?;
    let (gateway, gateway_line) = gateway(table, asked)?;
    if let (Some(line), true) = (gateway_line, upstreams.is_empty()) {
        let what = "[gateway] has no effect, because the file has no upstreams";
        file.report(Problem::at(line, what).remedy("add [upstreams.NAME]").warning());
    }
    let workers = workers(file, has_auth, asked)?;
    let tools = tools(file, has_auth, !upstreams.is_empty() || !workers.is_empty(), asked)?;
    check_scopes(file, line, auth.as_ref(), &tools, (&upstreams, &workers));
    let approve_destructive = approvals(file, asked)?;
    let table = file.section("console")?;
    let console = console(table, has_auth, asked)?;
    let (notify, warnings) = (Vec::new(), Vec::new());
    let mut config = Config {
        server,
        auth,
        tasks,
        hosts,
        results,
        tools,
        upstreams,
        workers,
        gateway,
        notify,
        approve_destructive,
        console,
        warnings,
    };
    let Config { tools, upstreams, workers, .. } = &config;
    let known = KnownTools { tools, upstreams, workers };
    config.notify = notify::notify(file, known, config.base_url().is_some(), asked)?;
    check_links(file, &config);
    Ok(config)
}

/// Reports scopes that no token can have.
fn check_scopes(
    file: &Section<'_>,
    line: usize,
    auth: Option<&AuthConfig>,
    tools: &[ToolConfig],
    (upstreams, workers): (&[UpstreamConfig], &[WorkerConfig]),
) {
    let of_tools = tools.iter().map(|tool| (tool.name.as_str(), tool.policy.scopes.as_slice()));
    let others = || upstreams.iter().flat_map(UpstreamConfig::scopes);
    let of_workers = || workers.iter().flat_map(WorkerConfig::scopes);
    let needed = || of_tools.clone().chain(others()).chain(of_workers());
    if let Some((tool, scope)) = auth.and_then(|auth| auth.ungranted(needed())) {
        let what =
            format!("the tool `{tool}` requires the scope `{scope}`, but no user can get it");
        file.report(Problem::at(line, what).remedy(format_args!(
            "add \"{scope}\" = {{ groups = [\"ops\"] }} or \"{scope}\" = \"all\" to [auth.proxy.grants]"
        )));
    }
}

/// Reports links without the address of the server.
fn check_links(file: &Section<'_>, config: &Config) {
    if config.base_url().is_some() {
        return;
    }
    if config.has_links() {
        let what = "`answers` has \"link\", but links need the address of this server";
        let remedy = "set public_url = \"https://…\" in [server], or remove \"link\"";
        file.report(Problem::at(config.hosts.line, what).remedy(remedy));
    }
    for (place, _) in config.approval_rules().iter().filter(|(_, rule)| rule.links) {
        let what = format!("{place} has `links`, but links need the address of this server");
        let remedy = "set public_url = \"https://…\" in [server], or remove `links`";
        file.report(Problem::at(1, what).remedy(remedy));
    }
}

/// Reads `[approvals]`.
fn approvals(file: &mut Section<'_>, asked: &mut Asked) -> Read<Option<ApproveConfig>> {
    let mut section = file.section("approvals")?.unwrap_or_else(Section::empty);
    let rule = ApproveConfig::read(&mut section, "destructive", RuleArguments::Several, asked)?;
    asked.note("approvals", section.finish()?);
    Ok(rule)
}

pub(super) fn tools(
    file: &mut Section<'_>,
    has_auth: bool,
    has_others: bool,
    asked: &mut Asked,
) -> Read<Vec<ToolConfig>> {
    const EXAMPLE: &str = "add [tools.NAME] with a description and a command, [workers.NAME] with a \
                           script, or [upstreams.NAME] with an MCP server";
    let Some(section) = file.section("tools")? else {
        if has_others {
            return Ok(Vec::new());
        }
        return Err(Problem::at(1, "the file has no tools").remedy(EXAMPLE));
    };
    let line = section.line;
    let entries = section.entries();
    if entries.is_empty() && !has_others {
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
