//! Messages at start and stop: the URL, the tools, and how to connect a host.
//!
//! They go to standard error.

use std::path::{Path, PathBuf};

use outlive_console::Console;
use outlive_jobs::State;
use serde_json::json;

use super::{
    command_pool::Runner,
    config::{AuthConfig, Config, TaskMode, ToolConfig},
};
use crate::{
    call::server::quoted,
    print::{self, Paint, paint, talk},
    store::{plain, without_password},
};

pub(super) struct Hello {
    name: String,
    tools: Vec<(String, String)>,
    upstreams: Vec<String>,
    file: Option<PathBuf>,
    data: PathBuf,
    store: String,
    /// Whether callers need a token.
    tokens: bool,
    /// Issuers and resource URL, if callers log in.
    auth: Option<AuthConfig>,
    /// Address of the server for people on other machines.
    public_url: Option<String>,
    console_path: String,
    /// Example call, if the server serves the demo.
    example: Option<&'static str>,
}

impl Hello {
    /// `of_workers` are the names of the tools of tool workers.
    pub(super) fn new(
        config: &Config,
        of_workers: &[String],
        file: Option<&Path>,
        data: &Path,
        store: &str,
    ) -> Self {
        let Config { server, auth, tools, .. } = config;
        let tool = |tool: &ToolConfig| {
            let task = match tool.policy.task {
                TaskMode::Never => "",
                TaskMode::Auto { .. } => "becomes a task if it takes long",
                TaskMode::Always => "always a task",
            };
            (tool.name.clone(), task.to_owned())
        };
        let of_worker = |name: &String| (name.clone(), "of a tool worker".to_owned());
        let is_demo = file.is_none() && config.upstreams.is_empty();
        Self {
            name: server.name.clone(),
            tools: tools.iter().map(tool).chain(of_workers.iter().map(of_worker)).collect(),
            upstreams: config.upstreams.iter().map(|upstream| upstream.name.clone()).collect(),
            file: file.map(Path::to_owned),
            data: data.to_owned(),
            store: without_password(store),
            tokens: server.token_file.is_some(),
            auth: auth.clone(),
            public_url: config.public_url(),
            console_path: config.console.path.clone(),
            example: is_demo.then_some("release project=shop"),
        }
    }

    fn begin(&self) {
        let version = env!("CARGO_PKG_VERSION");
        match &self.file {
            Some(file) => talk!("outlive {version} serves {}", path(file)),
            None if !self.upstreams.is_empty() => talk!("outlive {version} serves MCP servers"),
            None => {
                talk!("outlive {version} serves a demo, because this folder has no outlive.toml.");
                talk!("  to serve your own command:  outlive init");
            }
        }
    }

    pub(super) fn on_stdio(&self) {
        self.begin();
        self.say_upstreams();
        talk!("  data   {}", path(&self.data));
    }

    /// Says where the server listens. `console` is its console, if it has one.
    pub(super) fn at(&self, url: &str, console: Option<&Console>, json: bool) {
        self.begin();
        print::say_painted(&format!("\n  {}", paint(Paint::Bold, url)));
        let width = self.tools.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
        for (index, (name, task)) in self.tools.iter().enumerate() {
            let label = if index == 0 { "tools" } else { "" };
            let line = format!("  {label:<6} {name:<width$}  {}", paint(Paint::Dim, task));
            print::say_painted(line.trim_end());
        }
        self.say_upstreams();
        talk!("  data   {}", path(&self.data));
        talk!("  store  {}", plain(&self.store));
        if let Some(auth) = &self.auth {
            let login = format!("at {}, for {}", auth.places(), auth.resource);
            talk!("  login  {}", plain(&login));
        }
        if let Some(console) = console {
            self.say_console(url, console);
        }
        talk!("");
        // Tokens are valid for the public URL, not for the listen address.
        self.connect(self.auth.as_ref().map_or(url, |auth| &auth.resource));
        if json {
            let tools: Vec<&str> = self.tools.iter().map(|(name, _)| name.as_str()).collect();
            let mut said =
                json!({"url": url, "tools": tools, "data": self.data, "store": self.store});
            if !self.upstreams.is_empty() {
                said["upstreams"] = json!(self.upstreams);
            }
            if console.is_some() {
                said["console"] = json!(format!("{}{}/", origin_of(url), self.console_path));
            }
            // The server runs even if standard output is closed.
            let _ = print::data(&said.to_string());
        }
    }

    /// Names the upstreams. Their tools are not known yet.
    fn say_upstreams(&self) {
        if self.upstreams.is_empty() {
            return;
        }
        let place = match &self.file {
            Some(_) => String::new(),
            None => format!(" --data-dir {}", quoted(&self.data.display().to_string())),
        };
        talk!("  upstreams  {}", plain(&self.upstreams.join(", ")));
        talk!("             their state: outlive upstreams{}", plain(&place));
    }

    /// Says where the console is. A link that signs a browser in is shown only on a terminal: agents
    /// read logs.
    fn say_console(&self, url: &str, console: &Console) {
        if self.tokens || self.auth.is_some() {
            let base = self.public_url.as_deref().unwrap_or_else(|| origin_of(url));
            talk!("  console  {}", plain(&format!("{base}{}/", self.console_path)));
            return;
        }
        match print::is_shown().then(|| console.sign_in_path()).flatten() {
            Some(path) => talk!(
                "  console  {}{path}      signs this browser in: once, within 10 minutes",
                origin_of(url)
            ),
            None => talk!("  console  run `outlive console`"),
        }
    }

    fn connect(&self, address: &str) {
        let Self { name, tokens, .. } = self;
        // The user copies these lines into a shell.
        let (word, url) = (plain(&quoted(name)), plain(&quoted(address)));
        let header = if *tokens { " --header \"Authorization: Bearer $TOKEN\"" } else { "" };
        talk!("  Claude Code   claude mcp add --transport http {word} {url}{header}");
        let mut server = json!({"name": name, "type": "http", "url": address});
        if *tokens {
            server["headers"] = json!({"Authorization": "Bearer ${input:token}"});
        }
        talk!("  VS Code       code --add-mcp {}", plain(&quoted(&server.to_string())));
        let token = if *tokens { " --token-env TOKEN" } else { "" };
        match self.example {
            Some(example) => talk!("  a terminal    outlive call {url}{token} {example}"),
            None => talk!("  a terminal    outlive inspect {url}{token}"),
        }
        talk!("\nCtrl-C stops the server; commands that run as tasks keep running.");
    }
}

/// Returns the address of the listener without the path of the endpoint.
fn origin_of(url: &str) -> &str {
    url.strip_suffix("/mcp").unwrap_or(url)
}

/// Formats a path for display.
fn path(path: &Path) -> String {
    plain(&path.display().to_string())
}

/// Announces the shutdown timeout after Ctrl-C, so that the wait does not look like a hang.
pub(super) async fn stopping() {
    if tokio::signal::ctrl_c().await.is_ok() {
        talk!(
            "\nstopping: running calls have ten seconds to finish; commands of tasks keep running"
        );
    }
}

/// Reports the commands that keep running after the server stops.
pub(super) fn goodbye(runner: &Runner) {
    let jobs = runner.jobs.list().unwrap_or_default();
    let running = jobs.iter().filter(|job| job.state == State::Running).count();
    match running {
        0 => {}
        1 => talk!(
            "1 command keeps running; restart the server to get its result, or run `outlive jobs list`"
        ),
        _ => {
            talk!(
                "{running} commands keep running; restart the server to get their results, or run `outlive jobs list`"
            )
        }
    }
}
