//! The command `outlive tasks watch`.

use super::news::{News, What};
use super::unreachable::UNREACHABLE;
use crate::tasks::watch::view::View;
use crate::tasks::{list::tasks_of, snapshot::seen, target::Taken};
use crate::{
    call::{
        run_call::OUTAGE_GRACE,
        saved_calls::Handles,
        screen::Screen,
        server::{Connection, Server},
        show,
    },
    error::{CliError, Kind, Result},
    print,
};
use outlive::client::{
    Client, Result as Asked,
    tasks::{TaskHandle, TaskSnapshot},
};
use serde_json::Value;
use std::{collections::BTreeSet, pin::pin, process::ExitCode, sync::Arc, time::Duration};
use tokio::{sync::mpsc, task::JoinSet, time::Instant};

/// Default poll interval, and its maximum.
pub(super) const POLL: Duration = Duration::from_secs(1);

pub(super) const FLOOR: Duration = Duration::from_millis(100);

/// Maximum number of output lines shown before an input request.
pub(super) const PRINTED: usize = 40;

/// Watches calls until they end: as a table on a terminal, as lines otherwise
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  outlive tasks watch\n  outlive tasks watch 3f2a91c0\n  outlive tasks watch --json | jq .state\n  \
                  outlive tasks watch --server http://127.0.0.1:8000/mcp --token-env TOKEN"
)]
pub(crate) struct Args {
    /// Handles of the calls [default: all saved calls]
    handles: Vec<String>,
    /// Watches tasks of this server by their IDs, or all of its unfinished tasks, instead of saved
    /// calls
    #[arg(long, value_name = "SERVER")]
    server: Option<String>,
    /// Prints a line of JSON for each change
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) async fn run(args: Args) -> Result<ExitCode> {
    let screen = Screen::new();
    let handles = Handles::open(&screen);
    let calls = args.calls(&handles).await?;
    if calls.is_empty() {
        screen.talk("no saved calls or tasks");
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
            news = told.recv() => match news {
                Some(news) => view.take(news),
                None => break,
            },
            () = &mut reader_left => return Ok(ExitCode::from(Kind::ReaderLeft as u8)),
            _ = tokio::signal::ctrl_c() => return Err(CliError::new(Kind::Interrupted, "stopped watching; the tasks keep running")),
        }
        // A table shows the open input requests. Without a terminal, waiting would hang silently.
        if !view.is_table() && view.all_wait_for_input() {
            return Err(view.unanswered());
        }
    }
    view.hint();
    match view.count(UNREACHABLE) {
        0 => Ok(ExitCode::SUCCESS),
        lost => Err(CliError::unreachable(format_args!(
            "lost contact with {lost} of {} tasks; the tasks may still be running",
            view.len()
        ))
        .remedy("run the same command again when their server is reachable")),
    }
}

impl Args {
    /// Returns the calls to watch.
    async fn calls(&self, handles: &Handles) -> Result<Vec<Taken>> {
        let named = self.handles.iter();
        match &self.server {
            Some(server) if self.handles.is_empty() => {
                let tasks =
                    tasks_of(&Server::read(server)?, &self.connection, &Screen::new()).await?;
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

/// Polls a call until it ends.
pub(super) async fn look(
    at: usize,
    call: Taken,
    connection: &Connection,
    screen: &Arc<Screen>,
    handles: Handles,
    tell: &mpsc::Sender<News>,
) {
    if !call.is_task() {
        return;
    }
    let tell = |what: What| tell.send(News { at, what });
    let failed = |why: String| {
        let mut call = call.described();
        (call["state"], call["message"]) = (UNREACHABLE.into(), why.into());
        What::Seen { call, asks: None }
    };
    let connected = async {
        let connection = call.connection(connection);
        connection.connect(&call.server()?, screen, |builder| builder.call_store(handles)).await
    };
    let client: Client = match connected.await {
        Ok(client) => client,
        Err(trouble) => {
            let _ = tell(failed(trouble.to_string())).await;
            return;
        }
    };
    let mut handle = match call.resume(&client).await {
        Ok(handle) => handle,
        Err(error) => {
            let _ = tell(failed(error.to_string())).await;
            return;
        }
    };
    let (mut asking, mut outage) = (Asking::default(), Outage::default());
    loop {
        let pause = match asking.look(&mut handle).await {
            Ok(Some((task, asks))) => {
                if outage.ends() {
                    let _ = tell(What::Reachable).await;
                }
                let (is_terminal, pause) = (task.status.is_terminal(), pause(&task));
                let call = seen(call.described(), &task);
                let _ = tell(What::Seen { call, asks }).await;
                if is_terminal {
                    break;
                }
                pause
            }
            Ok(None) => break,
            Err(error) if error.is_transient() => {
                if outage.goes_on() {
                    let _ = tell(What::Unreachable(error.to_string())).await;
                }
                POLL
            }
            Err(error) => {
                let _ = tell(failed(error.to_string())).await;
                break;
            }
        };
        tokio::time::sleep(pause).await;
    }
    client.close().await;
}

/// Input requests and output of a task so far.
#[derive(Default)]
pub(super) struct Asking {
    /// Keys of the open input requests.
    open: BTreeSet<String>,
    /// Number of the last segment that was read.
    after: u64,
}

impl Asking {
    /// Queries a task. If it has a new input request, also reads the output before that.
    async fn look(
        &mut self,
        handle: &mut TaskHandle,
    ) -> Asked<Option<(TaskSnapshot, Option<Vec<String>>)>> {
        let Some(task) = handle.get().await? else { return Ok(None) };
        let questions = task.questions.iter().flat_map(|questions| questions.iter());
        let open: BTreeSet<String> = questions.map(|(key, _)| key.to_owned()).collect();
        if open.is_subset(&self.open) {
            self.open = open;
            return Ok(Some((task, None)));
        }
        let segments = handle.emitted(self.after).await?;
        self.after = segments.last().map_or(self.after, |last| last.number);
        self.open = open;
        let lines: Vec<String> = segments
            .iter()
            .flat_map(|it| show::text(&it.block).lines().map(str::to_owned).collect::<Vec<_>>())
            .collect();
        let skipped = lines.len().saturating_sub(PRINTED);
        let mark = (skipped > 0).then(|| format!("[{skipped} earlier lines]"));
        Ok(Some((task, Some(mark.into_iter().chain(lines.into_iter().skip(skipped)).collect()))))
    }
}

/// Start of an outage, and whether it was reported.
#[derive(Default)]
pub(super) struct Outage(Option<(Instant, bool)>);

impl Outage {
    /// Records a failed request. Returns whether the outage is due to be reported.
    fn goes_on(&mut self) -> bool {
        let (since, is_told) = self.0.get_or_insert_with(|| (Instant::now(), false));
        let is_due = !*is_told && since.elapsed() >= OUTAGE_GRACE;
        *is_told |= is_due;
        is_due
    }

    /// Ends the outage. Returns whether the recovery must be reported.
    fn ends(&mut self) -> bool {
        self.0.take().is_some_and(|(_, is_told)| is_told)
    }
}

pub(super) fn pause(task: &TaskSnapshot) -> Duration {
    task.poll.map_or(POLL, Duration::from_millis).clamp(FLOOR, POLL)
}
