//! Checks where both input requests appear, and that a killed process loses no completed step.

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
    stage::{Era, Server, Stage, answering, expect, plain, unexpected_request},
};

/// Place and message of each input request.
type Asked = Arc<Mutex<Vec<(Place, String)>>>;

pub(crate) async fn check(stage: Stage) -> Result<()> {
    let (asked, server) = (Asked::default(), stage.start(&[])?);
    let client = server.connect(approving_user(&asked)).await?;
    let mut handle = client.start_tool("release", arguments()).await?;
    ensure!(handle.task_id().is_some(), "the call did not become a task");
    let result = handle.wait().await?;
    let (places, image) = places(&asked)?;
    expect(result_text(&result), format!("{image} is in staging"))?;
    // The first request comes before the task. On 2025-11-25 the client requests the task, so both
    // are inside.
    let expected = match stage.era {
        Era::Modern => [Place::Call, Place::Task],
        Era::Legacy => [Place::Task, Place::Task],
    };
    ensure!(places == expected, "input requested in {places:?}");

    // A client without task support can use the same tool and waits for the result.
    let inline = client.call_tool("release", arguments()).inline().await?;
    expect(result_text(&inline), format!("{image} is in staging"))?;

    outlive(stage).await
}

/// Starts a call in a process that is killed while the task waits for input, and finishes it in
/// another.
async fn outlive(stage: Stage) -> Result<()> {
    let folder = Folder::new()?;
    let store = folder.0.join("tasks.db");
    let store = ["--store", store.to_str().context("the path of the folder is not UTF-8")?];

    let server = stage.start(&store)?;
    let (saved, question) = begin(&server).await?;
    drop(server); // kill -9

    let (asked, server) = (Asked::default(), stage.start(&store)?);
    // The new process has another URL. The label identifies it as the same server.
    let client = server.connect(approving_user(&asked).label("release")).await?;
    let result = client.resume(saved).await?.wait().await?;
    let (_, image) = places(&asked)?;
    expect(result_text(&result), format!("{image} is in staging"))?;
    let asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
    // The recorded build is not repeated: the image name contains the ID of the killed process.
    ensure!(*asked == [(Place::Task, question)], "input requests: {asked:?}");
    Ok(())
}

/// Starts a release up to the open approval. Returns the saved call and the approval message.
async fn begin(server: &Server) -> Result<(SavedCall, String)> {
    let (open, mut is_open) = mpsc::channel(1);
    let answers = InputCallbacks::new().form(move |question| {
        let open = open.clone();
        async move {
            let InputKind::Form(form) = &question.request else {
                return unexpected_request(&question);
            };
            match answer(&form.message) {
                Some(answer) if !is_approval(&form.message) => InputResponse::accept(answer),
                Some(_) => {
                    // The user does not respond.
                    let _ = open.try_send(form.message.clone());
                    std::future::pending().await
                }
                None => unexpected_request(&question),
            }
        }
    });
    let client = server.connect(plain().input_handler(answers).label("release")).await?;
    let mut handle = client.start_tool("release", arguments()).await?;
    let question = tokio::select! {
        question = is_open.recv() => question.context("the input handler is gone")?,
        result = handle.wait() => bail!("the call ended without an input request: {result:?}"),
    };
    Ok((handle.to_saved().await, question))
}

/// Returns a client builder whose user approves. Records the input requests in `asked`.
fn approving_user(asked: &Asked) -> ClientBuilder {
    let asked = Arc::clone(asked);
    answering(move |question, message| {
        let place = Place::of(&question.origin);
        asked.lock().unwrap_or_else(PoisonError::into_inner).push((place, message.to_owned()));
        answer(message).map_or_else(|| unexpected_request(question), InputResponse::accept)
    })
}

/// Returns where input was requested, and the name of the built image.
fn places(asked: &Asked) -> Result<(Vec<Place>, String)> {
    let asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
    let image = asked.iter().find_map(|(_, message)| message.split_once(" is built. "));
    let (image, _) = image.context("no approval request for a built image")?;
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

/// Temporary folder for a store, deleted on drop.
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
