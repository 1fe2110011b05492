//! Takes a call up again: to see how far it is, to answer it, to cancel it, to wait for its result.

use std::{process::ExitCode, sync::Arc};

use outlive::client::{Client, Error, GaveUp, Stage, TaskHandle, TaskSnapshot, TaskStatus};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Which, WithResult, list::described, taken::Taken};
use crate::{
    call::{
        attend::{Attendant, Begun, Left},
        desk::{Desk, Prepared},
        handles::Handles,
        outcome::Outcome,
        screen::{Screen, shown},
        server::trouble,
        show,
    },
    trouble::{Kind, Result, Trouble},
};

/// A call that is taken up again.
struct Resumed {
    screen: Arc<Screen>,
    handles: Handles,
    taken: Taken,
    client: Client,
    attendant: Attendant,
}

impl Resumed {
    async fn connect(which: &Which, prepared: Prepared) -> Result<Self> {
        let (screen, handles) = (Screen::new(), Handles::open()?);
        let taken = match (&which.server, &which.handle) {
            (Some(server), Some(task)) => Taken::task(server, task),
            (_, named) => Taken::saved(&handles, named.as_deref())?,
        };
        let server = taken.server()?;
        let (desk, asked) = Desk::new();
        let book = handles.clone();
        let connecting = which
            .connection
            .connect(&server, &screen, |builder| builder.answerer(desk).notebook(book));
        let client = connecting.await?;
        let attendant = Attendant::new(&screen, asked, prepared);
        Ok(Self { screen, handles, taken, client, attendant })
    }

    /// Strikes the handle, if there is one.
    fn forget(&self) {
        if let Taken::Saved(saved) = &self.taken {
            self.handles.forget(&saved.id);
        }
    }

    /// A handle on it. A call of which nothing was heard is made again, if that does no harm.
    async fn begin(&mut self) -> Result<Begun> {
        if let Taken::Saved(saved) = &self.taken
            && let Stage::Calling(_) = saved.stage
            && saved.key.is_none()
            && !saved.idempotent
        {
            let error = Error::from(GaveUp::MaybeExecuted(saved.tool.clone()));
            return Err(Trouble::new(Kind::Failed, error).remedy(self.taken.command("forget")));
        }
        self.attendant.begin(self.taken.resume(&self.client)).await
    }

    async fn handle(&mut self) -> Result<TaskHandle> {
        match self.begin().await? {
            Begun::Handle(handle) => Ok(handle),
            Begun::Left(Left::Interrupted) => Err(Trouble::new(Kind::Interrupted, "interrupted")),
            Begun::Left(_) => {
                Err(Trouble::new(Kind::Unanswered, "the call is not a task yet, and asks")
                    .remedy(self.taken.command("answer")))
            }
        }
    }
}

/// `outlive tasks get`.
pub(super) async fn get(which: &Which, is_json: bool) -> Result<ExitCode> {
    let screen = Screen::new();
    if which.server.is_none() {
        // What is over needs no server.
        let saved = Handles::open()?.find(which.handle.as_deref())?;
        if !matches!(saved.stage, Stage::Task(_)) {
            tell(&screen, &described(&saved), is_json);
            return Ok(ExitCode::SUCCESS);
        }
    }
    let mut resumed = Resumed::connect(which, Prepared::default()).await?;
    let handle = resumed.handle().await?;
    let snapshot = handle.look().await.map_err(|error| trouble(&error, None))?;
    let known = described(&handle.save().await);
    let seen = match &snapshot {
        Some(snapshot) => seen(known, snapshot),
        None => known,
    };
    tell(&screen, &seen, is_json);
    if snapshot.is_some_and(|snapshot| snapshot.status == TaskStatus::InputRequired) {
        screen.talk(&format!("it asks: {}", resumed.taken.command("answer")));
    }
    resumed.client.close().await;
    Ok(ExitCode::SUCCESS)
}

fn tell(screen: &Screen, seen: &Value, is_json: bool) {
    if is_json {
        return screen.data(&format!("{seen:#}"));
    }
    let members = seen.as_object().into_iter().flatten();
    for (name, value) in members.filter(|(_, value)| !value.is_null() && **value != "") {
        let value = match value {
            Value::String(text) => shown(text),
            other => other.to_string(),
        };
        screen.data(&format!("{name:<12}{value}"));
    }
}

/// What is known of a call and what its task looks like, as plain JSON.
pub(super) fn seen(mut seen: Value, snapshot: &TaskSnapshot) -> Value {
    let far = snapshot.progress.as_ref();
    seen["state"] = json!(snapshot.status.as_str());
    seen["message"] = json!(show::doing(snapshot));
    seen["progress"] = json!(
        far.map(|far| json!({"progress": far.done, "total": far.total, "message": far.message}))
    );
    seen["created"] = json!(snapshot.created);
    seen["updated"] = json!(snapshot.updated);
    seen["ttlMs"] = json!(snapshot.ttl);
    seen["questions"] =
        json!(snapshot.questions.as_ref().filter(|questions| !questions.is_empty()));
    seen
}

/// `outlive tasks answer`.
pub(super) async fn answer(which: &Which, prepared: Prepared) -> Result<ExitCode> {
    let mut resumed = Resumed::connect(which, prepared).await?;
    resumed.attendant.only_answers = true;
    resumed.attendant.shows_parts = false;
    let begun = resumed.begin().await?;
    let (left, handle) = match begun {
        Begun::Left(left) => (left, None),
        Begun::Handle(mut handle) => {
            let seen = handle.look().await.map_err(|error| trouble(&error, None))?;
            if seen.is_none_or(|task| task.status != TaskStatus::InputRequired) {
                resumed.screen.talk("it asks nothing");
                resumed.client.close().await;
                return Ok(ExitCode::SUCCESS);
            }
            (resumed.attendant.attend(&mut handle).await?, Some(handle))
        }
    };
    let told = match left {
        // It went on to its end while somebody was here to see it; its result is for `tasks result`.
        Left::Done(..) => Left::Answered,
        left => left,
    };
    let outcome = Outcome {
        screen: &resumed.screen,
        handles: &resumed.handles,
        is_json: false,
        keeps: true,
        elsewhere: which.server.as_deref(),
    };
    let code = outcome.tell(told, handle.as_ref(), false).await;
    resumed.client.close().await;
    code
}

/// `outlive tasks cancel`.
pub(super) async fn cancel(which: &Which, is_json: bool) -> Result<ExitCode> {
    let mut resumed = Resumed::connect(which, Prepared::default()).await?;
    let mut handle = resumed.handle().await?;
    let left = resumed.attendant.cancel(&mut handle).await?;
    let state = match left {
        Left::Cancelled => {
            resumed.forget();
            "cancelled"
        }
        Left::Interrupted => return Err(Trouble::new(Kind::Interrupted, "interrupted")),
        _ => "done",
    };
    resumed.client.close().await;
    match is_json {
        true => {
            let handle = resumed.taken.name();
            resumed.screen.data(&format!("{:#}", json!({"handle": handle, "state": state})))
        }
        false if state == "done" => {
            let result = resumed.taken.command("result");
            resumed.screen.talk(&format!("it was over before: {result}"))
        }
        false => resumed.screen.talk("cancelled"),
    }
    Ok(ExitCode::SUCCESS)
}

/// `outlive tasks result`.
pub(super) async fn result(args: WithResult) -> Result<ExitCode> {
    let mut resumed = Resumed::connect(&args.which, args.prepared).await?;
    resumed.attendant.shows_parts = !args.json;
    resumed.attendant.deadline = args.timeout.map(|timeout| Instant::now() + timeout);
    let what = match &resumed.taken {
        Taken::Saved(saved) => saved.tool.clone(),
        Taken::Task { id, .. } => id.clone(),
    };
    resumed.screen.begin(&what);
    let came = match resumed.begin().await? {
        Begun::Left(left) => Ok((left, None)),
        Begun::Handle(mut handle) => {
            let left = resumed.attendant.attend(&mut handle).await;
            left.map(|left| (left, Some(handle)))
        }
    };
    resumed.screen.end();
    let outcome = Outcome {
        screen: &resumed.screen,
        handles: &resumed.handles,
        is_json: args.json,
        keeps: args.keep,
        elsewhere: args.which.server.as_deref(),
    };
    let code = match came {
        Ok((left, handle)) => outcome.tell(left, handle.as_ref(), false).await,
        Err(trouble) => Err(outcome.failed(trouble)),
    };
    resumed.client.close().await;
    code
}
