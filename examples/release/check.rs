//! Both questions are asked where they should be, and a process that is killed in between costs
//! nothing that was done.

use std::{
    env, fs,
    path::PathBuf,
    process,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Context, Result, bail, ensure};
use outlive::client::{
    ClientBuilder,
    input::{InputCallbacks, InputKind, InputResponse},
    request::result_text,
    saved::SavedCall,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::{
    patterns::Place,
    stage::{Era, Server, Stage, answering, expect, nobody_expected, plain},
};

/// Where each question was asked, and what it said.
type Asked = Arc<Mutex<Vec<(Place, String)>>>;

pub(crate) async fn check(stage: Stage) -> Result<()> {
    let (asked, server) = (Asked::default(), stage.start(&[])?);
    let client = server.connect(going_through_with_it(&asked)).await?;
    let mut handle = client.start_tool("release", arguments()).await?;
    ensure!(handle.task_id().is_some(), "it was no task");
    let result = handle.wait().await?;
    let (places, image) = places(&asked)?;
    expect(result_text(&result), format!("{image} is in staging"))?;
    // Before there was a task, and inside of it; where the caller asks for a task, that is both.
    let expected = match stage.era {
        Era::Modern => [Place::Call, Place::Task],
        Era::Legacy => [Place::Task, Place::Task],
    };
    ensure!(places == expected, "asked in {places:?}");

    // Callers that hold no tasks use the same tool: they wait.
    let inline = client.call_tool("release", arguments()).inline().await?;
    expect(result_text(&inline), format!("{image} is in staging"))?;

    outlive(stage).await
}

/// Begins in one process, which is killed while the task waits for its user, and ends in another.
async fn outlive(stage: Stage) -> Result<()> {
    let folder = Folder::new()?;
    let store = folder.0.join("tasks.db");
    let store = ["--store", store.to_str().context("the folder has no plain name")?];

    let server = stage.start(&store)?;
    let (saved, question) = begin(&server).await?;
    drop(server); // kill -9

    let (asked, server) = (Asked::default(), stage.start(&store)?);
    // The next process listens elsewhere, and is the same server.
    let client = server.connect(going_through_with_it(&asked).label("release")).await?;
    let result = client.resume(saved).await?.wait().await?;
    let (_, image) = places(&asked)?;
    expect(result_text(&result), format!("{image} is in staging"))?;
    let asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
    // What had been built is not built again: it has the number of the process that was killed.
    ensure!(*asked == [(Place::Task, question)], "asked {asked:?}");
    Ok(())
}

/// Begins a release, up to the question that is left open; the call, and that question.
async fn begin(server: &Server) -> Result<(SavedCall, String)> {
    let (open, mut is_open) = mpsc::channel(1);
    let answers = InputCallbacks::new().form(move |question| {
        let open = open.clone();
        async move {
            let InputKind::Form(form) = &question.request else {
                return nobody_expected(&question);
            };
            match answer(&form.message) {
                Some(answer) if !is_approval(&form.message) => InputResponse::accept(answer),
                Some(_) => {
                    // A user who has gone for lunch.
                    let _ = open.try_send(form.message.clone());
                    std::future::pending().await
                }
                None => nobody_expected(&question),
            }
        }
    });
    let client = server.connect(plain().input_handler(answers).label("release")).await?;
    let mut handle = client.start_tool("release", arguments()).await?;
    let question = tokio::select! {
        question = is_open.recv() => question.context("nobody asks")?,
        result = handle.wait() => bail!("it did not ask: {result:?}"),
    };
    Ok((handle.to_saved().await, question))
}

/// A user who goes through with it, and what they were asked.
fn going_through_with_it(asked: &Asked) -> ClientBuilder {
    let asked = Arc::clone(asked);
    answering(move |question, message| {
        let place = Place::of(&question.origin);
        asked.lock().unwrap_or_else(PoisonError::into_inner).push((place, message.to_owned()));
        answer(message).map_or_else(|| nobody_expected(question), InputResponse::accept)
    })
}

/// Where it was asked, and the name of what was built.
fn places(asked: &Asked) -> Result<(Vec<Place>, String)> {
    let asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
    let image = asked.iter().find_map(|(_, message)| message.split_once(" is built. "));
    let (image, _) = image.context("nothing was built")?;
    ensure!(image.starts_with("shop:7-"), "{image}");
    Ok((asked.iter().map(|(place, _)| *place).collect(), image.to_owned()))
}

fn arguments() -> Value {
    json!({"version": "7"})
}

fn answer(message: &str) -> Option<Value> {
    match message {
        "Where should it go?" => Some(json!({"environment": "staging"})),
        _ => is_approval(message).then(|| json!({"yes": true})),
    }
}

fn is_approval(message: &str) -> bool {
    message.ends_with("Roll it out to staging?")
}

/// A folder for a store, gone with this.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self> {
        let folder = env::temp_dir().join(format!("outlive-release-{}", process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
