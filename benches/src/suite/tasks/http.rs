//! Tasks over HTTP: created, polled until completion, result read.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context, Result, bail};
use memchr::memmem;

use super::{Bench, rate};
use crate::{
    child::Server,
    load::{
        Loaded,
        talk::{Say, Talk, Talks},
    },
    machine::{pin, spread},
    messages::{CREATE_TASK_HEADERS, TEXT, create_task, get_task, http_request, task_id},
    report::{Bar, Report},
    slices::{Slice, Target},
};

const CONNECTIONS: usize = 256;

/// Poll interval of a client.
const PAUSE: Duration = Duration::from_millis(10);

pub(super) fn measure(bench: &Bench<'_>, report: &mut Report) -> Result<()> {
    let (control, control_address) =
        Server::keeping("control-tasks", &bench.folder.place("bare-http"), bench.cores)?;
    let (outlive, outlive_address) =
        Server::keeping("outlive-tasks", &bench.folder.place("http"), bench.cores)?;
    pin(bench.cores.generator)?;
    let mut targets: [Box<dyn Target>; 2] = [
        open("bare axum", &control, control_address, bare)?,
        open("Outlive", &outlive, outlive_address, modern)?,
    ];
    let series = bench.take(&mut targets)?;
    spread(bench.cores)?;
    let [control, ours] = &series[..] else { return Ok(()) };
    let ratio = ours.ratio(control, rate);
    report.title(&format!("tasks over HTTP, {CONNECTIONS} connections: made, polled, completed"));
    report.ratio("Outlive / bare axum (tasks/s)", ratio);
    report.ratio("Outlive / bare axum (CPU)", ours.ratio(control, |slice: &Slice| slice.cpu));
    report.series(&series);
    let share = Some(ratio.spread.median * 100.0);
    report.bar(Bar::at_least("tasks over HTTP, tasks/s of bare axum", share, 40.0, "%"));
    Ok(())
}

/// Builds the next request of a client.
type Wire = fn(Option<&str>) -> Vec<u8>;

/// The requests to our server: a call, or a poll of this task.
fn modern(task: Option<&str>) -> Vec<u8> {
    match task {
        None => http_request("POST", "/mcp", CREATE_TASK_HEADERS, &create_task()),
        Some(id) => get_task(id),
    }
}

/// The requests to the control.
fn bare(task: Option<&str>) -> Vec<u8> {
    match task {
        None => http_request("POST", "/tasks", &[], &format!(r#"{{"message":"{TEXT}"}}"#)),
        Some(id) => http_request("GET", &format!("/tasks/{id}"), &[], ""),
    }
}

/// One client: creates a task and polls it until completion.
struct Client {
    wire: Wire,
    task: Option<String>,
}

impl Talk for Client {
    fn next(&mut self, answer: Option<&[u8]>) -> Result<Say> {
        let Some(answer) = answer else { return Ok(Say::Now((self.wire)(None))) };
        if self.task.is_none() {
            let id = task_id(answer);
            let id =
                id.with_context(|| format!("not a task: {}", String::from_utf8_lossy(answer)))?;
            self.task = Some(id);
        } else if memmem::find(answer, br#""status":"completed""#).is_some() {
            self.task = None;
            return match memmem::find(answer, TEXT.as_bytes()) {
                Some(_) => Ok(Say::Done),
                None => bail!("not the result: {}", String::from_utf8_lossy(answer)),
            };
        } else if memmem::find(answer, br#""status":"working""#).is_none() {
            bail!("neither working nor completed: {}", String::from_utf8_lossy(answer));
        }
        Ok(Say::Later((self.wire)(self.task.as_deref())))
    }
}

fn open(name: &str, server: &Server, at: SocketAddr, wire: Wire) -> Result<Box<dyn Target>> {
    let clients = (0..CONNECTIONS).map(|_| Client { wire, task: None });
    Ok(Box::new(Loaded::new(name, server, Talks::open(at, PAUSE, clients)?)))
}
