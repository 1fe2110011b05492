//! `outlive tasks list`: what is saved here, what a server lists, or the tasks of all callers.

use std::{collections::BTreeMap, process::ExitCode, sync::Arc};

use outlive::{
    client::{CallStage, Client, Error, ServerErrorKind},
    wire::{Method, Version},
};
use serde_json::{Value, json};

use super::{
    look::{Seen, look},
    operate,
    page::{age, arguments, state_in_words},
    resume::seen,
    table,
};
use crate::{
    call::{
        saved_calls::{Handles, SavedHandle, short, task_id, task_version},
        screen::{Screen, shown},
        server::{Connection, Server, trouble},
    },
    error::{CliError, Result},
    store::stamp,
};

/// How many pages of a server's list are read.
const PAGES: usize = 1_000;

/// How many characters of the arguments a table has room for.
const ARGUMENTS: usize = 40;

/// Lists the calls that are saved here, the tasks that a server lists, or those of all its callers
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  outlive tasks list\n  \
                  outlive tasks list --server http://127.0.0.1:8000/mcp --token-env TOKEN\n  \
                  outlive tasks list --all-callers\n  \
                  outlive tasks list --store postgres://outlive@db/outlive\n\n\
Servers are asked how far their tasks are; `outlive store list` can find tasks of all callers by more.")]
pub(crate) struct Args {
    /// Asks this server for its tasks, on whatever version it lists them
    #[arg(long, value_name = "SERVER")]
    server: Option<String>,
    /// Asks no server: what was saved last
    #[arg(long, conflicts_with = "server")]
    offline: bool,
    /// Prints JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    stores: operate::Stores,
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
        screen.talk("nothing is going on");
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

/// A call as plain JSON.
pub(crate) fn described(saved: &SavedHandle) -> Value {
    let SavedHandle { call, origin } = saved;
    json!({
        "handle": call.id,
        "server": call.server,
        "folder": origin.folder(),
        "version": task_version(call).or(origin.protocol_version.as_deref()),
        "tool": call.tool,
        "arguments": call.arguments,
        "state": state(&call.stage),
        "saved": origin.created.map(stamp),
        "task": task_id(call),
    })
}

/// How far a call is, as it was last saved.
fn state(stage: &CallStage) -> &'static str {
    match stage {
        CallStage::Calling(_) => "calling",
        CallStage::Task(_) => "task",
        CallStage::Done(result) if result.is_error == Some(true) => "failed",
        CallStage::Done(_) => "completed",
        CallStage::Failed(error) => {
            let data = error.data.as_ref().and_then(|data| serde_json::from_str(data.get()).ok());
            let data: Value = data.unwrap_or_default();
            if data["status"] == "cancelled" { "cancelled" } else { "failed" }
        }
        _ => "unknown",
    }
}

/// The tasks of a server: those that it lists, and those that were made from here.
async fn of_server(
    server: &str,
    connection: &Connection,
    screen: &Arc<Screen>,
) -> Result<Vec<Value>> {
    let server = Server::read(server)?;
    let mut calls = Handles::open(screen).all().unwrap_or_default();
    calls.retain(|saved| saved.call.server == server.text);
    let mut looked = look(&calls, connection, screen).await;
    let listed = tasks_of(&server, connection).await;
    let (mut tasks, refused) = match listed {
        Ok(tasks) => (tasks, None),
        Err(trouble) => (Vec::new(), Some(trouble)),
    };
    for (at, saved) in calls.iter().enumerate() {
        let (Some(id), Some(Seen::Task(task))) = (task_id(&saved.call), looked.remove(&at)) else {
            continue;
        };
        let handle = json!(saved.call.id);
        match tasks.iter_mut().find(|task| task["taskId"] == id) {
            Some(task) => task["handle"] = handle,
            None => tasks.push(json!({
                "taskId": id,
                "status": task.status.as_str(),
                "createdAt": task.created,
                "lastUpdatedAt": task.updated,
                "statusMessage": task.message,
                "ttl": task.ttl,
                "handle": handle,
            })),
        }
    }
    match (refused, tasks.is_empty()) {
        (Some(refused), true) => Err(refused),
        (Some(refused), false) => {
            screen.talk(&format!("{}; these were made from here", shown(&refused.to_string())));
            Ok(tasks)
        }
        (None, _) => Ok(tasks),
    }
}

/// The tasks that a server lists, on whatever version it does.
pub(crate) async fn tasks_of(server: &Server, connection: &Connection) -> Result<Vec<Value>> {
    let screen = Screen::new();
    let client = connection.connect(server, &screen, |builder| builder).await?;
    let spoken = client.protocol_version().await.map_err(|error| trouble(&error, Some(server)))?;
    let pages = pages(&client).await;
    client.close().await;
    let refused = match pages {
        Err(error)
            if error.reason() == Some(ServerErrorKind::MethodNotFound)
                && connection.protocol_version.is_none() =>
        {
            error
        }
        pages => return pages.map_err(|error| does_not_list(&error, server)),
    };
    // The newest version may have no list where an older one has.
    let older = Version::ALL.iter().rev().map(|version| version.as_str());
    let Some(older) = older.skip_while(|version| *version != spoken.as_str()).nth(1) else {
        return Err(does_not_list(&refused, server));
    };
    let mut connection = connection.clone();
    connection.protocol_version = Some(older.to_owned());
    let client = connection.connect(server, &screen, |builder| builder).await;
    let client = client.map_err(|_| does_not_list(&refused, server))?;
    let listed = self::pages(&client).await.map_err(|error| does_not_list(&error, server));
    client.close().await;
    listed
}

/// All pages of a list.
async fn pages(client: &Client) -> Result<Vec<Value>, Error> {
    let (mut tasks, mut cursor) = (Vec::new(), Value::Null);
    for _ in 0..PAGES {
        let params = match &cursor {
            Value::Null => json!({}),
            cursor => json!({"cursor": cursor}),
        };
        let page = client.request(Method::TasksList.as_str(), params).await?;
        let mut page: Value = serde_json::from_str(page.get()).unwrap_or_default();
        if let Some(Value::Array(more)) = page.get_mut("tasks").map(Value::take) {
            tasks.extend(more);
        }
        cursor = page.get("nextCursor").cloned().unwrap_or_default();
        if cursor.is_null() {
            break;
        }
    }
    Ok(tasks)
}

fn listed(tasks: Vec<Value>) -> Listed {
    let text = |task: &Value, key: &str| task[key].as_str().unwrap_or_default().to_owned();
    let row = |task: &Value| {
        vec![
            shown(&text(task, "taskId")),
            state_in_words(&text(task, "status")),
            super::page::millis(&text(task, "createdAt")).map(age).unwrap_or_default(),
            short(&text(task, "handle")).to_owned(),
            shown(&text(task, "statusMessage")),
        ]
    };
    let rows = tasks.iter().map(row).collect();
    (vec!["TASK", "STATE", "AGE", "HANDLE", "MESSAGE"], rows, tasks)
}

fn does_not_list(error: &Error, server: &Server) -> CliError {
    match error.reason() {
        Some(ServerErrorKind::MethodNotFound) => CliError::usage(format!("{} does not list tasks", server.text))
            .remedy("servers list the tasks of callers with a name: --token-env VARIABLE; of a server of your own: outlive tasks list --all-callers"),
        _ => trouble(error, Some(server)),
    }
}
