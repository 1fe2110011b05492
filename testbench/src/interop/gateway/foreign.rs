//! Servers of other authors, behind one gateway, called by a 2024-11-05 and a 2026-07-28 client.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use xtask::process;

use super::tools::{self, Tools};
use super::versions::Version;
use crate::conformance::suite;
use crate::gateway_process::GatewayProcess;

/// Where a server comes from.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// A script below `node_modules`.
    Npm(&'static str),
    /// A program of the Python environment of a requirements file.
    Pypi(&'static str, &'static str),
}

/// A server that is not of this project, with one call of a tool.
#[derive(Debug)]
pub(super) struct ForeignServer {
    /// Name of the upstream.
    upstream: &'static str,
    /// Name and version of the package, as in the lock files.
    package: &'static str,
    source: Source,
    args: &'static [&'static str],
    tool: &'static str,
    /// Arguments of the tool, as JSON.
    arguments: &'static str,
    /// A part of its result.
    says: &'static str,
    /// Whether it is in a short run.
    is_short: bool,
}

/// The packages with the second major version of the SDK, and with the first.
const PYTHON: &str = "servers/requirements.txt";
const PYTHON_1: &str = "servers/requirements-mcp-1.txt";

/// A folder for the files of the servers, in arguments.
const FOLDER: &str = "@FOLDER@";
/// The address of the gateway, in arguments.
const GATEWAY: &str = "@GATEWAY@";

const SERVERS: &[ForeignServer] = &[
    ForeignServer {
        upstream: "everything",
        package: "@modelcontextprotocol/server-everything 2026.8.31",
        source: Source::Npm("@modelcontextprotocol/server-everything/dist/index.js"),
        args: &[],
        tool: "echo",
        arguments: r#"{"message": "hello"}"#,
        says: "Echo: hello",
        is_short: true,
    },
    ForeignServer {
        upstream: "filesystem",
        package: "@modelcontextprotocol/server-filesystem 2026.8.31",
        source: Source::Npm("@modelcontextprotocol/server-filesystem/dist/index.js"),
        args: &[FOLDER],
        tool: "read_text_file",
        arguments: r#"{"path": "@FOLDER@/note.txt"}"#,
        says: "a note",
        is_short: true,
    },
    ForeignServer {
        upstream: "memory",
        package: "@modelcontextprotocol/server-memory 2026.8.31",
        source: Source::Npm("@modelcontextprotocol/server-memory/dist/index.js"),
        args: &[],
        tool: "read_graph",
        arguments: "{}",
        says: "writes programs",
        is_short: false,
    },
    ForeignServer {
        upstream: "thinking",
        package: "@modelcontextprotocol/server-sequential-thinking 2026.8.31",
        source: Source::Npm("@modelcontextprotocol/server-sequential-thinking/dist/index.js"),
        args: &[],
        tool: "sequentialthinking",
        arguments: r#"{"thought": "one", "thoughtNumber": 1, "totalThoughts": 1, "nextThoughtNeeded": false}"#,
        says: "thoughtHistoryLength",
        is_short: false,
    },
    ForeignServer {
        upstream: "time",
        package: "mcp-server-time 2026.10.19",
        source: Source::Pypi("mcp-server-time", PYTHON),
        args: &[],
        tool: "convert_time",
        arguments: r#"{"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}"#,
        says: "21:00",
        is_short: false,
    },
    ForeignServer {
        upstream: "fetch",
        package: "mcp-server-fetch 2026.10.24",
        source: Source::Pypi("mcp-server-fetch", PYTHON),
        args: &["--ignore-robots-txt", "--allow-private-ips"],
        tool: "fetch",
        arguments: r#"{"url": "http://@GATEWAY@/healthz", "raw": true}"#,
        says: "/healthz",
        is_short: false,
    },
    ForeignServer {
        upstream: "git",
        package: "mcp-server-git 2026.10.19",
        source: Source::Pypi("mcp-server-git", PYTHON),
        args: &["--repository", FOLDER],
        tool: "git_log",
        arguments: r#"{"repo_path": "@FOLDER@"}"#,
        says: "the first commit",
        is_short: false,
    },
    ForeignServer {
        upstream: "sqlite",
        package: "mcp-server-sqlite 2025.4.25",
        source: Source::Pypi("mcp-server-sqlite", PYTHON_1),
        args: &["--db-path", "@FOLDER@/test.db"],
        tool: "read_query",
        arguments: r#"{"query": "SELECT 6 * 7 AS answer"}"#,
        says: "42",
        is_short: false,
    },
    ForeignServer {
        upstream: "excel",
        package: "excel-mcp-server 2.2.2",
        source: Source::Pypi("excel-mcp-server", PYTHON),
        args: &["stdio"],
        tool: "create_workbook",
        arguments: r#"{"path": "@FOLDER@/book.xlsx"}"#,
        says: "book.xlsx",
        is_short: false,
    },
    ForeignServer {
        upstream: "eslint",
        package: "@eslint/mcp 0.3.13",
        source: Source::Npm("@eslint/mcp/src/mcp-cli.js"),
        args: &[],
        tool: "lint-files",
        arguments: r#"{"filePaths": ["@FOLDER@/program.mjs"]}"#,
        says: "program.mjs",
        is_short: false,
    },
];

/// The versions of the clients, and the packages that play them (`conformance/interop/calls.mjs`).
const CLIENTS: [(Version, &str); 2] = [
    (Version::V24, "@modelcontextprotocol/sdk 1.32.2 over HTTP+SSE"),
    (Version::V26, "@modelcontextprotocol/client 2.4.0"),
];

/// The outcome of a server.
#[derive(Debug)]
pub(super) struct Called {
    server: &'static ForeignServer,
    /// Number of its tools.
    tools: usize,
    /// Errors by version of the client.
    errors: Vec<String>,
}

/// Runs the servers behind one gateway.
pub(super) fn run(tools: &Tools, short: bool) -> Result<Vec<Called>> {
    let servers: Vec<&'static ForeignServer> =
        SERVERS.iter().filter(|server| !short || server.is_short).collect();
    let folder = tools::folder("servers");
    files(&folder.join("files"))?;
    let modules = process::root().join("conformance/servers");
    suite::install_once(&modules, suite::LENIENTLY)?;
    let mut config = String::new();
    for server in &servers {
        let command = server.command(tools, &modules, &folder.join("files"))?;
        let _ = writeln!(config, "[upstreams.{}]\ncommand = {command:?}", server.upstream);
        let memory = folder.join("files/memory.jsonl").display().to_string();
        let _ = writeln!(config, "env = {{ MEMORY_FILE_PATH = {memory:?} }}\n");
    }
    let gateway = GatewayProcess::start(&tools.program("outlive"), &folder, &config)?;
    let mut called: Vec<Called> =
        servers.iter().map(|server| Called { server, tools: 0, errors: Vec::new() }).collect();
    for (version, package) in CLIENTS {
        eprintln!("interop: {} servers, called by {package}", servers.len());
        let reports = call(tools, &gateway, version, &servers, &folder)?;
        for called in &mut called {
            let error = reports.get(called.server.upstream).cloned();
            let error = error.unwrap_or_else(|| Some("the client did not report it".to_owned()));
            called.errors.extend(error.map(|error| format!("{}: {error}", version.name())));
        }
    }
    let status = gateway.status()?;
    for called in &mut called {
        let upstreams = status["upstreams"].as_array().into_iter().flatten();
        let found = upstreams.into_iter().find(|it| it["name"] == called.server.upstream);
        let count = found.and_then(|it| it["tools"].as_u64()).unwrap_or_default();
        called.tools = usize::try_from(count)?;
    }
    gateway.stop()?;
    Ok(called)
}

impl ForeignServer {
    /// The words of its command.
    fn command(&self, tools: &Tools, modules: &Path, files: &Path) -> Result<Vec<String>> {
        let mut words = match self.source {
            Source::Npm(script) => {
                let script = modules.join("node_modules").join(script);
                vec![tools.node.display().to_string(), script.display().to_string()]
            }
            Source::Pypi(program, list) => {
                let python = tools.python(list)?;
                vec![python.with_file_name(program).display().to_string()]
            }
        };
        let files = files.display().to_string();
        words.extend(self.args.iter().map(|word| word.replace(FOLDER, &files)));
        Ok(words)
    }

    /// Its call, for the client script.
    fn call(&self, files: &str, gateway: &str) -> Result<Value> {
        let arguments = self.arguments.replace(FOLDER, files).replace(GATEWAY, gateway);
        let arguments: Value = serde_json::from_str(&arguments)?;
        let Self { upstream, tool, says, .. } = self;
        let says = says.replace(FOLDER, files);
        Ok(
            json!({"feature": upstream, "name": format!("{upstream}__{tool}"), "arguments": arguments, "says": says}),
        )
    }
}

/// The reports of a client, by upstream.
type Reports = std::collections::HashMap<String, Option<String>>;

/// Calls one tool of every server with one client.
fn call(
    tools: &Tools,
    gateway: &GatewayProcess,
    version: Version,
    servers: &[&'static ForeignServer],
    folder: &Path,
) -> Result<Reports> {
    let files = folder.join("files").display().to_string();
    let address = gateway.address().to_string();
    let calls: Result<Vec<Value>> =
        servers.iter().map(|server| server.call(&files, &address)).collect();
    let path = if version.is_modern() { "mcp" } else { "sse" };
    let log = folder.join(format!("client-{}.log", version.name()));
    let mut client = Command::new(&tools.node);
    client.arg("calls.mjs").arg(version.name()).arg(format!("http://{address}/{path}"));
    client.env("CALLS", serde_json::to_string(&calls?)?).stdin(Stdio::null());
    client.current_dir(process::root().join("conformance/interop")).stderr(fs::File::create(&log)?);
    let output = client.output().context("could not start the client")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let reports: Reports = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter_map(|line| {
            let error = line["why"].as_str().map(str::to_owned);
            Some((line["feature"].as_str()?.to_owned(), error))
        })
        .collect();
    ensure!(!reports.is_empty(), "the client reported nothing; see {}", log.display());
    Ok(reports)
}

/// Writes the files that the servers read.
fn files(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join("note.txt"), "a note\n")?;
    let entity = json!({"type": "entity", "name": "Ada", "entityType": "person", "observations": ["writes programs"]});
    fs::write(folder.join("memory.jsonl"), format!("{entity}\n"))?;
    fs::write(folder.join("program.mjs"), "const unused = 1;\n")?;
    fs::write(
        folder.join("eslint.config.mjs"),
        "export default [{ rules: { \"no-unused-vars\": \"error\" } }];\n",
    )?;
    let git = |words: &[&str]| {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]).args(words);
        process::run(git.current_dir(folder).stdout(Stdio::null()))
    };
    git(&["init", "--quiet"])?;
    git(&["add", "note.txt"])?;
    git(&["commit", "--quiet", "--message", "the first commit"])
}

/// Every server that fails the command.
pub(super) fn wrong(called: &[Called]) -> Vec<String> {
    let failed = called.iter().flat_map(|called| {
        called.errors.iter().map(|error| format!("{}: {error}", called.server.package))
    });
    failed.collect()
}

/// The section of the page.
pub(super) fn section(called: &[Called]) -> String {
    if called.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "\n## Servers of other authors\n\nThese servers run behind one gateway with all their tools, and both clients call them: ",
    );
    let clients = CLIENTS.map(|(version, package)| format!("{package} ({})", version.name()));
    let _ = writeln!(text, "{}.\n", clients.join(" and "));
    text.push_str("| package | tools | called tool |\n|---|---|---|\n");
    for Called { server, tools, .. } in called {
        let _ = writeln!(text, "| {} | {tools} | `{}` |", server.package, server.tool);
    }
    text
}
