//! `outlive tasks list`: lists saved calls, the tasks of a server, or the tasks of all callers.

use std::{collections::BTreeMap, process::ExitCode, sync::Arc};

use outlive::{
    client::{
        Error, ServerErrorKind,
        tasks::{TaskList, TaskSnapshot},
    },
    wire::Version,
};
use serde_json::{Value, json};

use super::describe::{ARGUMENTS, described};
use super::{
    look::{Seen, look},
    operate,
    page::{age, arguments, state_in_words},
    snapshot::seen,
    table,
};
use crate::{
    call::{
        saved_calls::{Handles, SavedHandle, short},
        saved_task::task_id,
        screen::{Screen, shown},
        server::{Connection, Server, trouble},
    },
    error::{CliError, Result},
};

/// Lists saved calls, the tasks that a server lists, or the tasks of all its callers
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  outlive tasks list\n  \
                  outlive tasks list --server http://127.0.0.1:8000/mcp --token-env TOKEN\n  \
                  outlive tasks list --all-callers\n  \
                  outlive tasks list --store postgres://outlive@db/outlive\n\n\
The status comes from the servers. `outlive store list` has more filters for tasks of all callers.")]
pub(crate) struct Args {
    /// Lists your tasks on a server, whichever protocol version created them
    #[arg(long, value_name = "SERVER")]
    server: Option<String>,
    /// Contacts no server: shows the status as last saved
    #[arg(long, conflicts_with = "server")]
    offline: bool,
    /// Prints JSON
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    stores: super::stores::Stores,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) async fn run(args: Args) -> Result<ExitCode> {
    if let Some(url) = args.stores.url()? {
        return operate::list(&url, args.json).await;
    }
    let screen = Screen::new();
    let (head, rows, all) = match &args.server {
        Some(server) => listed(of_server(server, &args.connection, &screen).await?),
        None => {
            let calls = Handles::open(&screen).all()?;
            let looked = match args.offline {
                true => BTreeMap::new(),
                false => look(&calls, &args.connection, &screen).await,
            };
            saved(&calls, &looked)
        }
    };
    if args.json {
        screen.data(&format!("{:#}", Value::Array(all)));
    } else if rows.is_empty() {
        screen.talk("no saved calls or tasks");
    } else {
        screen.data(&table::lines(&head, &rows, None).join("\n"));
    }
    Ok(ExitCode::SUCCESS)
}

type Listed = (Vec<&'static str>, Vec<Vec<String>>, Vec<Value>);

fn saved(calls: &[SavedHandle], looked: &BTreeMap<usize, Seen>) -> Listed {
    let all: Vec<Value> = calls
        .iter()
        .enumerate()
        .map(|(at, saved)| {
            let mut call = described(saved);
            match looked.get(&at) {
                Some(Seen::Task(task)) => return seen(call, task),
                Some(Seen::Gone) => call["state"] = "gone".into(),
                Some(Seen::Unreachable(why)) => {
                    (call["state"], call["message"]) = ("unreachable".into(), json!(why));
                }
                None => {}
            }
            call
        })
        .collect();
    let row = |(saved, call): (&SavedHandle, &Value)| {
        vec![
            short(&saved.call.id).to_owned(),
            shown(&saved.call.tool),
            state_in_words(call["state"].as_str().unwrap_or_default()),
            saved.origin.created.map(age).unwrap_or_default(),
            arguments(&call["arguments"], ARGUMENTS),
            shown(&saved.call.server),
        ]
    };
    let rows = calls.iter().zip(&all).map(row).collect();
    (vec!["HANDLE", "TOOL", "STATE", "AGE", "ARGUMENTS", "SERVER"], rows, all)
}

/// Returns the tasks of a server: those that it lists, and those of saved calls.
async fn of_server(
    server: &str,
    connection: &Connection,
    screen: &Arc<Screen>,
) -> Result<Vec<Value>> {
    let server = Server::read(server)?;
    let mut calls = Handles::open(screen).all().unwrap_or_default();
    calls.retain(|saved| saved.call.server == server.text);
    let mut looked = look(&calls, connection, screen).await;
    let listed = tasks_of(&server, connection, screen).await;
    let (mut tasks, refused) = match listed {
        Ok(tasks) => (tasks, None),
        Err(trouble) => (Vec::new(), Some(trouble)),
    };
    for (at, saved) in calls.iter().enumerate() {
        let (Some(id), Some(Seen::Task(task))) = (task_id(&saved.call), looked.remove(&at)) else {
            continue;
        };
        let at = tasks.iter().position(|task| task["taskId"] == id).unwrap_or_else(|| {
            tasks.push(as_json(&task));
            tasks.len() - 1
        });
        tasks[at]["handle"] = json!(saved.call.id);
        tasks[at]["tool"] = json!(saved.call.tool);
    }
    match (refused, tasks.is_empty()) {
        (Some(refused), true) => Err(refused),
        (Some(refused), false) => {
            let why = shown(&refused.to_string());
            screen.talk(&format!("{why}; showing only the tasks of saved calls"));
            Ok(tasks)
        }
        (None, _) => Ok(tasks),
    }
}

/// Formats a task of a list as JSON.
fn as_json(task: &TaskSnapshot) -> Value {
    json!({
        "taskId": task.id,
        "tool": task.tool,
        "status": task.status.as_str(),
        "createdAt": task.created,
        "lastUpdatedAt": task.updated,
        "statusMessage": task.message,
        "ttl": task.ttl,
    })
}

/// Returns the tasks that a server lists: of every protocol version if it supports that, else of
/// the newest version that has a list.
pub(crate) async fn tasks_of(
    server: &Server,
    connection: &Connection,
    screen: &Arc<Screen>,
) -> Result<Vec<Value>> {
    let (version, listed) = ask(server, connection, screen).await?;
    let is_missing = |error: &Error| error.kind() == Some(ServerErrorKind::MethodNotFound);
    let (version, listed) = match (listed, older_than(version)) {
        (Err(error), Some(older))
            if is_missing(&error) && connection.protocol_version.is_none() =>
        {
            let mut connection = connection.clone();
            connection.protocol_version = Some(older.as_str().to_owned());
            let asked = ask(server, &connection, screen).await;
            asked.map_err(|_| does_not_list(&error, server))?
        }
        (listed, _) => (version, listed),
    };
    let list = listed.map_err(|error| does_not_list(&error, server))?;
    if !list.is_complete {
        screen.talk(&format!(
            "{} lists only the tasks that were created with protocol version {}",
            shown(&server.text),
            version.as_str()
        ));
        screen.talk(
            "  try: run `outlive tasks list` on the machine that created the others; or with a task ID: \
             `outlive tasks get ID --server SERVER`",
        );
    }
    Ok(list.tasks.iter().map(as_json).collect())
}

/// Requests the task list. Returns the negotiated protocol version, too.
async fn ask(
    server: &Server,
    connection: &Connection,
    screen: &Arc<Screen>,
) -> Result<(Version, Result<TaskList, Error>)> {
    let client = connection.connect(server, screen, |builder| builder).await?;
    let version = client.protocol_version().await.map_err(|error| trouble(&error, Some(server)))?;
    let listed = client.list_tasks().await;
    client.close().await;
    Ok((version, listed))
}

/// Returns the protocol version before `version`. An older version may have a task list that the
/// newest lacks.
fn older_than(version: Version) -> Option<Version> {
    Version::ALL.iter().rev().copied().skip_while(|known| *known != version).nth(1)
}

fn listed(tasks: Vec<Value>) -> Listed {
    let text = |task: &Value, key: &str| task[key].as_str().unwrap_or_default().to_owned();
    let row = |task: &Value| {
        vec![
            shown(&text(task, "taskId")),
            shown(&text(task, "tool")),
            state_in_words(&text(task, "status")),
            super::page::millis(&text(task, "createdAt")).map(age).unwrap_or_default(),
            short(&text(task, "handle")).to_owned(),
            shown(&text(task, "statusMessage")),
        ]
    };
    let rows = tasks.iter().map(row).collect();
    (vec!["TASK", "TOOL", "STATE", "AGE", "HANDLE", "MESSAGE"], rows, tasks)
}

fn does_not_list(error: &Error, server: &Server) -> CliError {
    match error.kind() {
        Some(ServerErrorKind::MethodNotFound) => {
            CliError::usage(format!("{} does not list tasks for this caller", server.text)).remedy(
                "log in (outlive login SERVER) or pass --token-env VARIABLE: servers list tasks only for authenticated callers; with a task ID: outlive tasks get ID --server SERVER; as operator of the server: outlive tasks list --all-callers",
            )
        }
        _ => trouble(error, Some(server)),
    }
}
