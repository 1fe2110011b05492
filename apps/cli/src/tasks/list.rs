//! `outlive tasks list`: what is written down here, or what a server lists.

use std::process::ExitCode;

use outlive::{
    client::{Error, Reason, SavedCall, Stage},
    wire::Method,
};
use serde_json::{Value, json};

use super::table;
use crate::{
    call::{
        handles::{Handles, short, task_id},
        screen::{Screen, shown},
        server::{Connection, Server, trouble},
    },
    trouble::{Result, Trouble},
};

/// How many pages of a server's list are read.
const PAGES: usize = 1_000;

/// Lists the calls that are written down, or the tasks that a server lists
#[derive(clap::Args)]
#[command(
    disable_version_flag = true,
    after_help = "Examples:\n  outlive tasks list\n  \
                  outlive tasks list --server http://127.0.0.1:8000/mcp --version 2025-11-25 --token-env TOKEN"
)]
pub(crate) struct Args {
    /// Asks this server for its tasks, in place of what is written down here
    #[arg(long, value_name = "SERVER")]
    server: Option<String>,
    /// Prints JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) async fn run(args: Args) -> Result<ExitCode> {
    let screen = Screen::new();
    let (head, rows, all) = match &args.server {
        Some(server) => listed(tasks_of(&Server::read(server)?, &args.connection).await?),
        None => saved(&Handles::open()?.all()?),
    };
    if args.json {
        screen.data(&format!("{:#}", Value::Array(all)));
    } else if rows.is_empty() {
        screen.talk("nothing is going on");
    } else {
        screen.data(&table::lines(&head, &rows, None).join("\n"));
    }
    Ok(ExitCode::SUCCESS)
}

type Listed = (Vec<&'static str>, Vec<Vec<String>>, Vec<Value>);

fn saved(calls: &[SavedCall]) -> Listed {
    let row = |call: &SavedCall| {
        let state = state(call).to_owned();
        vec![short(&call.id).to_owned(), shown(&call.tool), state, shown(&call.server)]
    };
    let all = calls.iter().map(described).collect();
    (vec!["HANDLE", "TOOL", "STATE", "SERVER"], calls.iter().map(row).collect(), all)
}

/// A call as plain JSON.
pub(crate) fn described(call: &SavedCall) -> Value {
    json!({
        "handle": call.id,
        "server": call.server,
        "tool": call.tool,
        "arguments": call.arguments,
        "state": state(call),
        "task": task_id(call),
    })
}

/// How far a call is, as it was last written down.
fn state(call: &SavedCall) -> &'static str {
    match call.stage {
        Stage::Calling(_) => "calling",
        Stage::Task(_) => "task",
        Stage::Done(_) => "done",
        Stage::Failed(_) => "failed",
        _ => "unknown",
    }
}

/// The tasks that a server lists.
pub(crate) async fn tasks_of(server: &Server, connection: &Connection) -> Result<Vec<Value>> {
    let screen = Screen::new();
    let client = connection.connect(server, &screen, |builder| builder).await?;
    let (mut tasks, mut cursor) = (Vec::new(), Value::Null);
    for _ in 0..PAGES {
        let params = match &cursor {
            Value::Null => json!({}),
            cursor => json!({"cursor": cursor}),
        };
        let page = client.call(Method::TasksList.as_str(), params).await;
        let page = page.map_err(|error| does_not_list(&error, server))?;
        let mut page: Value = serde_json::from_str(page.get()).unwrap_or_default();
        if let Some(Value::Array(more)) = page.get_mut("tasks").map(Value::take) {
            tasks.extend(more);
        }
        cursor = page.get("nextCursor").cloned().unwrap_or_default();
        if cursor.is_null() {
            break;
        }
    }
    client.close().await;
    Ok(tasks)
}

fn listed(tasks: Vec<Value>) -> Listed {
    let text =
        |task: &Value, key: &str| shown(task.get(key).and_then(Value::as_str).unwrap_or_default());
    let row = |task: &Value| {
        ["taskId", "status", "lastUpdatedAt", "statusMessage"].map(|key| text(task, key)).to_vec()
    };
    (vec!["TASK", "STATUS", "UPDATED", "MESSAGE"], tasks.iter().map(row).collect(), tasks)
}

fn does_not_list(error: &Error, server: &Server) -> Trouble {
    match error.reason() {
        Some(Reason::NoSuchMethod) => Trouble::usage(format!("{} does not list tasks", server.text))
            .remedy("servers list the tasks of a named caller, and not on every revision: --token-env, --version"),
        _ => trouble(error, Some(server)),
    }
}
