//! The command `outlive call`.

use super::span::span;
use super::{arguments, run_call};
use crate::call::{
    input::{Desk, Prepared},
    outcome::Outcome,
    run_call::{Attendant, SentCall},
    saved_calls::Handles,
    screen::Screen,
    server::{Connection, Server, trouble},
};
use crate::{
    error::{CliError, Result},
    runtime::block_on,
};
use outlive::{
    client::{Client, tasks::TaskHandle},
    wire::Tool,
};
use std::{
    future::{Future, IntoFuture},
    process::ExitCode,
    time::Duration,
};
use tokio::time::Instant;

/// Default limit of a call without `--timeout`.
pub(crate) const PATIENCE: Duration = Duration::from_secs(365 * 24 * 3600);

/// Maximum time to close a connection.
pub(super) const PARTING: Duration = Duration::from_secs(3);

// One line per paragraph: the help is wrapped at the terminal's width.
pub(super) const EXAMPLES: &str = "\
SERVER is a URL, or a command that starts a server on stdio: quoted as one word, or after `--` at \
the end. Arguments are key=value, typed by the tool's schema, or key:=JSON for any JSON value. \
Repeat a key to make a list. A single '{…}', @FILE or - (standard input) is the whole arguments object.

Examples:
  outlive call http://127.0.0.1:8000/mcp add a=1 b=2
  outlive call 'my-server --stdio' add a=1 b=2
  outlive call add a=1 b=2 -- my-server --stdio
  outlive call http://127.0.0.1:8000/mcp add --json '{\"a\": 1, \"b\": 2}'
  outlive call --detach http://127.0.0.1:8000/mcp render frames=1000
  outlive call http://127.0.0.1:8000/mcp deploy version=7 --answer yes=true

Ctrl-C opens a menu: continue, detach or cancel. A second Ctrl-C exits at once. `outlive tasks` \
resumes a call whose program was killed.";

/// Calls a tool of an MCP server.
#[derive(clap::Args)]
#[command(
    after_help = EXAMPLES,
    override_usage = "outlive call [OPTIONS] SERVER TOOL [KEY=VALUE]…\n       \
                      outlive call [OPTIONS] TOOL [KEY=VALUE]… -- COMMAND…"
)]
pub(crate) struct Args {
    /// Server, tool, and arguments of the tool
    #[arg(required = true, value_name = "SERVER TOOL KEY=VALUE")]
    words: Vec<String>,
    /// Command that starts the server, instead of SERVER
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    /// Prints the complete result as JSON when the call ends
    #[arg(long)]
    pub(super) json: bool,
    /// Prints the handle of the task and exits; the task keeps running
    #[arg(long)]
    detach: bool,
    /// Exits after this time: 30, 30s, 5m, 2h. A task keeps running
    #[arg(long, value_name = "TIME", value_parser = span)]
    timeout: Option<Duration>,
    /// Requested TTL of the task and its result, for servers that let clients choose
    #[arg(long, value_name = "TIME", value_parser = span)]
    task_ttl: Option<Duration>,
    /// Idempotency key: the server executes calls with the same key once
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    #[command(flatten)]
    prepared: Prepared,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    block_on(Box::pin(call(args)))
}

pub(super) async fn call(args: Args) -> Result<ExitCode> {
    let (server, words) = Server::of_words(&args.words, args.command.clone())?;
    let Some((name, words)) = words.split_first() else {
        return Err(CliError::usage("missing argument: the tool to call")
            .remedy(format!("run `outlive inspect {}` to list the tools", server.text)));
    };
    let screen = Screen::new();
    let handles = Handles::open(&screen).made_at(&server, &args.connection);
    let (desk, asked) = Desk::new();
    let client = args
        .connection
        .connect(&server, &screen, |builder| {
            builder
                .input_handler(desk)
                .call_store(handles.clone())
                .limits(|limits| limits.max_total_timeout = PATIENCE)
        })
        .await?;
    let tool = tool(&client, &server, name).await?;
    let schema = serde_json::to_value(&tool.input_schema).unwrap_or_default();
    let arguments = arguments::arguments(name, &schema, words)?;
    arguments::check(&tool, &arguments)?;

    let mut attendant = Attendant::new(&screen, asked, args.prepared.clone());
    attendant.deadline = args.timeout.map(|timeout| Instant::now() + timeout);
    (attendant.shows_parts, attendant.detaches) = (!args.json, args.detach);
    attendant.makes_tasks = makes_tasks(&client).await?;
    let mut starting =
        client.start_tool(name.as_str(), &arguments).no_timeout().max_total_timeout(PATIENCE);
    if let Some(ttl) = args.task_ttl {
        starting = starting.task_ttl(ttl);
    }
    if let Some(key) = &args.idempotency_key {
        starting = starting.idempotency_key(key);
    }
    let shown = std::sync::Arc::clone(&screen);
    let starting = starting.on_progress(move |far| {
        shown.progress(far.progress, far.total, far.message.as_deref());
    });
    let outcome = Outcome {
        screen: &screen,
        handles: &handles,
        is_json: args.json,
        keeps: false,
        elsewhere: None,
    };
    screen.begin(name);
    let came = attend(&mut attendant, starting.into_future(), &outcome).await;
    screen.end();
    let code = match came {
        Ok((left, handle)) => outcome.tell(left, handle.as_ref(), args.detach).await,
        Err(trouble) => Err(outcome.failed(trouble)),
    };
    // The process exits anyway after this timeout.
    let _ = tokio::time::timeout(PARTING, client.close()).await;
    code
}

pub(super) async fn attend(
    attendant: &mut Attendant,
    starting: impl Future<Output = outlive::client::Result<TaskHandle>>,
    outcome: &Outcome<'_>,
) -> Result<(run_call::Left, Option<TaskHandle>)> {
    match attendant.begin(starting).await? {
        SentCall::Left(left) => Ok((left, None)),
        SentCall::Handle(mut handle) => {
            attendant.way_back =
                outcome.handles.mine().map(|saved| outcome.command("result", &saved));
            let left = attendant.attend(&mut handle).await?;
            Ok((left, Some(handle)))
        }
    }
}

/// Returns the tool with this name. Fails before any call is sent if the server has no such tool.
pub(super) async fn tool(client: &Client, server: &Server, name: &str) -> Result<Tool> {
    let tools =
        client.list_tools().collect().await.map_err(|error| trouble(&error, Some(server)))?;
    let names: Vec<String> = tools.iter().map(|tool| tool.name.clone()).collect();
    tools.into_iter().find(|tool| tool.name == name).ok_or_else(|| {
        let trouble = CliError::usage(format!("{} has no tool `{name}`", server.text));
        match names.is_empty() {
            true => trouble.remedy("check the server: it has no tools"),
            false => trouble.remedy(format!("one of its tools: {}", names.join(", "))),
        }
    })
}

/// Returns whether the server can turn calls into tasks.
pub(super) async fn makes_tasks(client: &Client) -> Result<bool> {
    let server = client.server_info().await.map_err(|error| trouble(&error, None))?;
    let extensions = server.capabilities.extensions;
    Ok(extensions
        .is_some_and(|extensions| extensions.contains_key("io.modelcontextprotocol/tasks")))
}
