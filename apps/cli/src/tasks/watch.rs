//! `outlive tasks watch`: a live table of calls. On a terminal it is drawn over itself, elsewhere each
//! change is a line.

use std::{
    collections::BTreeMap,
    io::{self, IsTerminal},
    pin::pin,
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use console::Term;
use outlive::client::{Client, TaskSnapshot};
use serde_json::Value;
use tokio::{sync::mpsc, task::JoinSet};

use super::{list::tasks_of, page::state_in_words, resume::seen, table, taken::Taken};
use crate::{
    call::{
        handles::Handles,
        screen::{Screen, shown},
        server::{Connection, Server},
    },
    print,
    trouble::{Kind, Result, Trouble},
};

/// How often to look at a task whose server names no interval, and at most.
const POLL: Duration = Duration::from_secs(1);
const FLOOR: Duration = Duration::from_millis(100);

/// The state of a call that nothing more is heard of.
const UNREACHABLE: &str = "unreachable";

/// The state of a task that waits for an answer.
const INPUT_REQUIRED: &str = "input_required";

/// How wide a bar is in the table.
const BAR: usize = 16;

/// Watches calls until they are over: a table on a terminal, lines elsewhere
#[derive(clap::Args)]
#[command(
    disable_version_flag = true,
    after_help = "Examples:\n  outlive tasks watch\n  outlive tasks watch 3f2a91c0\n  outlive tasks watch --json | jq .state\n  \
                  outlive tasks watch --server http://127.0.0.1:8000/mcp --token-env TOKEN"
)]
pub(crate) struct Args {
    /// Which calls; all that are saved otherwise
    handles: Vec<String>,
    /// Means tasks of this server by their ids, or all that it lists and that go on, in place of
    /// saved calls
    #[arg(long, value_name = "SERVER")]
    server: Option<String>,
    /// Prints a line of JSON for each change
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

/// One look at a call.
struct Seen {
    at: usize,
    call: Value,
}

pub(crate) async fn run(args: Args) -> Result<ExitCode> {
    let screen = Screen::new();
    let handles = Handles::open(&screen);
    let calls = args.calls(&handles).await?;
    if calls.is_empty() {
        screen.talk("nothing is going on");
        return Ok(ExitCode::SUCCESS);
    }
    let (tell, mut told) = mpsc::channel(16);
    let mut looking = JoinSet::new();
    for (at, call) in calls.iter().cloned().enumerate() {
        let (tell, connection, screen, handles) =
            (tell.clone(), args.connection.clone(), Arc::clone(&screen), handles.clone());
        looking.spawn(async move { look(at, call, &connection, &screen, handles, &tell).await });
    }
    drop(tell);
    let mut view = View::new(&screen, args.json, calls);
    view.draw();
    let mut reader_left = pin!(print::reader_left());
    loop {
        tokio::select! {
            seen = told.recv() => match seen {
                Some(seen) => view.change(seen),
                None => break,
            },
            () = &mut reader_left => return Ok(ExitCode::from(Kind::ReaderLeft as u8)),
            _ = tokio::signal::ctrl_c() => return Err(Trouble::new(Kind::Interrupted, "no longer watched; the tasks go on")),
        }
        // A table shows what it waits for; the reader of a pipe would not know.
        if view.term.is_none() && view.all_wait_for_input() {
            return Err(view.unanswered());
        }
    }
    view.hint();
    match view.count(UNREACHABLE) {
        0 => Ok(ExitCode::SUCCESS),
        lost => Err(Trouble::unreachable(format_args!(
            "{lost} of {} could not be watched to the end; what they do goes on",
            view.calls.len()
        ))
        .remedy("the same command again, once their server can be reached")),
    }
}

impl Args {
    /// What is to be watched.
    async fn calls(&self, handles: &Handles) -> Result<Vec<Taken>> {
        let named = self.handles.iter();
        match &self.server {
            Some(server) if self.handles.is_empty() => {
                let tasks = tasks_of(&Server::read(server)?, &self.connection).await?;
                let goes_on = |task: &&Value| {
                    matches!(task["status"].as_str(), Some("working" | "input_required"))
                };
                let ids = tasks.iter().filter(goes_on).filter_map(|task| task["taskId"].as_str());
                Ok(ids.map(|id| Taken::task(server, id)).collect())
            }
            Some(server) => Ok(named.map(|id| Taken::task(server, id)).collect()),
            None if self.handles.is_empty() => {
                Ok(handles.all()?.into_iter().map(Taken::from).collect())
            }
            None => named.map(|handle| Taken::saved(handles, Some(handle))).collect(),
        }
    }
}

/// Looks at a call again and again, until it is over.
async fn look(
    at: usize,
    call: Taken,
    connection: &Connection,
    screen: &Arc<Screen>,
    handles: Handles,
    tell: &mpsc::Sender<Seen>,
) {
    let failed = |why: String| {
        let mut call = call.described();
        (call["state"], call["message"]) = (UNREACHABLE.into(), why.into());
        Seen { at, call }
    };
    if !call.is_task() {
        return;
    }
    let connected = async {
        let connection = call.connection(connection);
        connection.connect(&call.server()?, screen, |builder| builder.notebook(handles)).await
    };
    let client: Client = match connected.await {
        Ok(client) => client,
        Err(trouble) => {
            let _ = tell.send(failed(trouble.to_string())).await;
            return;
        }
    };
    let handle = match call.resume(&client).await {
        Ok(handle) => handle,
        Err(error) => {
            let _ = tell.send(failed(error.to_string())).await;
            return;
        }
    };
    loop {
        let pause = match handle.look().await {
            Ok(Some(task)) => {
                let (is_over, pause) = (task.status.is_over(), pause(&task));
                let _ = tell.send(Seen { at, call: seen(call.described(), &task) }).await;
                if is_over {
                    break;
                }
                pause
            }
            Ok(None) => break,
            Err(error) if error.is_transient() => POLL,
            Err(error) => {
                let _ = tell.send(failed(error.to_string())).await;
                break;
            }
        };
        tokio::time::sleep(pause).await;
    }
    client.close().await;
}

fn pause(task: &TaskSnapshot) -> Duration {
    task.poll.map_or(POLL, Duration::from_millis).clamp(FLOOR, POLL)
}

/// A call that is watched.
struct Call {
    taken: Taken,
    seen: Value,
}

/// What is shown.
struct View<'a> {
    screen: &'a Screen,
    is_json: bool,
    term: Option<Term>,
    calls: Vec<Call>,
    /// What was last said of each, where changes are lines.
    said: BTreeMap<usize, String>,
    drawn: usize,
}

impl<'a> View<'a> {
    fn new(screen: &'a Screen, is_json: bool, calls: Vec<Taken>) -> Self {
        let calls = calls.into_iter().map(|taken| Call { seen: taken.described(), taken });
        let calls = calls.collect();
        let term = (!is_json && io::stdout().is_terminal()).then(Term::stdout);
        Self { screen, is_json, term, calls, said: BTreeMap::new(), drawn: 0 }
    }

    fn change(&mut self, seen: Seen) {
        if let Some(call) = self.calls.get_mut(seen.at) {
            call.seen = seen.call;
        }
        self.draw();
    }

    fn draw(&mut self) {
        let rows: Vec<Vec<String>> = self.calls.iter().map(Call::row).collect();
        let Some(term) = &self.term else {
            for (at, row) in rows.iter().enumerate() {
                let line = match self.is_json {
                    true => {
                        self.calls.get(at).map(|call| call.seen.to_string()).unwrap_or_default()
                    }
                    false => row.join("  ").trim_end().to_owned(),
                };
                if self.said.get(&at) != Some(&line) {
                    self.screen.data(&line);
                    self.said.insert(at, line);
                }
            }
            return;
        };
        let width = usize::from(term.size().1).saturating_sub(1);
        let lines =
            table::lines(&["HANDLE", "TOOL", "STATE", "PROGRESS", "MESSAGE"], &rows, Some(width));
        // A terminal that went away shows nothing, and that is no failure.
        let _ = term.clear_last_lines(self.drawn);
        for line in &lines {
            let _ = term.write_line(line);
        }
        self.drawn = lines.len();
    }

    fn count(&self, state: &str) -> usize {
        self.calls.iter().filter(|call| call.seen["state"] == state).count()
    }

    /// Whether everything that is not over waits for an answer, and something does.
    fn all_wait_for_input(&self) -> bool {
        let is = |call: &Call, states: &[&str]| {
            call.seen["state"].as_str().is_some_and(|state| states.contains(&state))
        };
        self.count(INPUT_REQUIRED) > 0
            && self.calls.iter().all(|call| {
                is(
                    call,
                    &["calling", INPUT_REQUIRED, UNREACHABLE, "completed", "failed", "cancelled"],
                )
            })
    }

    /// All tasks that are left wait for input, and there is no terminal.
    fn unanswered(&self) -> Trouble {
        self.hint();
        let asking = self.calls.iter().filter(|call| call.seen["state"] == INPUT_REQUIRED);
        let commands: Vec<String> = asking.map(|call| call.taken.command("answer")).collect();
        let what = match commands.len() {
            1 => "a task waits for an answer".to_owned(),
            count => format!("{count} tasks wait for answers"),
        };
        Trouble::new(Kind::Unanswered, format!("{what}, and nothing else goes on"))
            .remedy(commands.join("\n       "))
    }

    /// How to get the results that are there.
    fn hint(&self) {
        for call in self.calls.iter().filter(|call| call.seen["state"] == "completed") {
            self.screen.talk(&call.taken.command("result"));
        }
    }
}

impl Call {
    fn row(&self) -> Vec<String> {
        let text = |key: &str| shown(self.seen[key].as_str().unwrap_or_default());
        let state = state_in_words(self.seen["state"].as_str().unwrap_or_default());
        let questions = self.seen["questions"].as_object();
        let message = match questions.and_then(|questions| questions.values().next()) {
            Some(question) => {
                let asked = question.pointer("/params/message").and_then(Value::as_str);
                format!("asks: {}", shown(asked.unwrap_or("a question")))
            }
            None => text("message"),
        };
        let far = bar(&self.seen["progress"]);
        vec![shown(self.taken.name()), text("tool"), state, far, message]
    }
}

/// How far a task is, as a bar where there is a total.
fn bar(far: &Value) -> String {
    let Some(done) = far["progress"].as_f64() else { return String::new() };
    match far["total"].as_f64().filter(|total| *total > 0.0) {
        Some(total) => {
            let part = (done / total).clamp(0.0, 1.0);
            let full = (part * BAR as f64) as usize;
            format!("[{}{}] {:>3.0}%", "=".repeat(full), " ".repeat(BAR - full), part * 100.0)
        }
        None => done.to_string(),
    }
}
