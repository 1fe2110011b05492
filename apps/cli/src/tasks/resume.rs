//! Takes a call up again: to see how far it is, to answer it, to cancel it, to wait for its result.

use std::{process::ExitCode, sync::Arc};

use outlive::client::{Client, Error, GaveUp, SavedCall, Stage, TaskHandle, TaskSnapshot};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{WithResult, list::described};
use crate::{
    call::{
        attend::{Attendant, Begun, Left},
        desk::{Desk, Prepared},
        handles::{Handles, short},
        outcome::Outcome,
        screen::{Screen, shown},
        server::{Connection, Server, trouble},
        show,
    },
    trouble::{Kind, Result, Trouble},
};

/// A call that is taken up again.
struct Resumed {
    screen: Arc<Screen>,
    handles: Handles,
    saved: SavedCall,
    client: Client,
    attendant: Attendant,
}

impl Resumed {
    async fn connect(
        named: Option<&str>,
        connection: &Connection,
        prepared: Prepared,
    ) -> Result<Self> {
        let (screen, handles) = (Screen::new(), Handles::open()?);
        let saved = handles.find(named)?;
        let server = Server::read(&saved.server)?;
        let (desk, asked) = Desk::new();
        let book = handles.clone();
        let client = connection
            .connect(&server, &screen, |builder| builder.answerer(desk).notebook(book))
            .await?;
        let attendant = Attendant::new(&screen, asked, prepared);
        Ok(Self { screen, handles, saved, client, attendant })
    }

    /// A handle on it. A call of which nothing was heard is made again, if that does no harm.
    async fn begin(&mut self) -> Result<Begun> {
        if let Stage::Calling(_) = self.saved.stage
            && self.saved.key.is_none()
            && !self.saved.idempotent
        {
            let error = Error::from(GaveUp::MaybeExecuted(self.saved.tool.clone()));
            let handle = short(&self.saved.id);
            return Err(
                Trouble::new(Kind::Failed, error).remedy(format!("outlive tasks forget {handle}"))
            );
        }
        self.attendant.begin(self.client.resume(self.saved.clone())).await
    }

    async fn handle(&mut self) -> Result<TaskHandle> {
        match self.begin().await? {
            Begun::Handle(handle) => Ok(handle),
            Begun::Left(Left::Interrupted) => Err(Trouble::new(Kind::Interrupted, "interrupted")),
            Begun::Left(_) => {
                Err(Trouble::new(Kind::Unanswered, "the call is not a task yet, and asks")
                    .remedy(format!("outlive tasks answer {}", short(&self.saved.id))))
            }
        }
    }
}

/// `outlive tasks get`.
pub(super) async fn get(
    named: Option<&str>,
    is_json: bool,
    connection: &Connection,
) -> Result<ExitCode> {
    let (screen, handles) = (Screen::new(), Handles::open()?);
    let saved = handles.find(named)?;
    let snapshot = match saved.stage {
        Stage::Task(_) => {
            let mut resumed =
                Resumed::connect(Some(&saved.id), connection, Prepared::default()).await?;
            let handle = resumed.handle().await?;
            let snapshot = handle.look().await.map_err(|error| trouble(&error, None))?;
            resumed.client.close().await;
            snapshot
        }
        _ => None,
    };
    let seen = seen(&saved, snapshot.as_ref());
    if is_json {
        screen.data(&format!("{seen:#}"));
        return Ok(ExitCode::SUCCESS);
    }
    let members = seen.as_object().into_iter().flatten();
    for (name, value) in members.filter(|(_, value)| !value.is_null()) {
        let value = match value {
            Value::String(text) => shown(text),
            other => other.to_string(),
        };
        screen.data(&format!("{name:<12}{value}"));
    }
    if snapshot.is_some_and(|snapshot| snapshot.questions.is_some_and(|it| !it.is_empty())) {
        screen.talk(&format!("it asks: outlive tasks answer {}", short(&saved.id)));
    }
    Ok(ExitCode::SUCCESS)
}

/// A call and its task, as plain JSON.
pub(super) fn seen(saved: &SavedCall, snapshot: Option<&TaskSnapshot>) -> Value {
    let mut seen = described(saved);
    let Some(snapshot) = snapshot else { return seen };
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
pub(super) async fn answer(
    named: Option<&str>,
    prepared: Prepared,
    connection: &Connection,
) -> Result<ExitCode> {
    let mut resumed = Resumed::connect(named, connection, prepared).await?;
    resumed.attendant.only_answers = true;
    resumed.attendant.shows_parts = false;
    let begun = resumed.begin().await?;
    let (left, handle) = match begun {
        Begun::Left(left) => (left, None),
        Begun::Handle(mut handle) => {
            let seen = handle.look().await.map_err(|error| trouble(&error, None))?;
            if !seen.is_some_and(|task| task.status.as_str() == "input_required") {
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
    let outcome =
        Outcome { screen: &resumed.screen, handles: &resumed.handles, is_json: false, keeps: true };
    let code = outcome.tell(told, handle.as_ref(), false).await;
    resumed.client.close().await;
    code
}

/// `outlive tasks cancel`.
pub(super) async fn cancel(
    named: Option<&str>,
    is_json: bool,
    connection: &Connection,
) -> Result<ExitCode> {
    let mut resumed = Resumed::connect(named, connection, Prepared::default()).await?;
    let mut handle = resumed.handle().await?;
    let left = resumed.attendant.cancel(&mut handle).await?;
    let state = match left {
        Left::Cancelled => {
            resumed.handles.forget(&resumed.saved.id);
            "cancelled"
        }
        Left::Interrupted => return Err(Trouble::new(Kind::Interrupted, "interrupted")),
        _ => "done",
    };
    resumed.client.close().await;
    match is_json {
        true => resumed
            .screen
            .data(&format!("{:#}", json!({"handle": resumed.saved.id, "state": state}))),
        false if state == "done" => resumed.screen.talk(&format!(
            "it was over before: outlive tasks result {}",
            short(&resumed.saved.id)
        )),
        false => resumed.screen.talk("cancelled"),
    }
    Ok(ExitCode::SUCCESS)
}

/// `outlive tasks result`.
pub(super) async fn result(args: WithResult) -> Result<ExitCode> {
    let mut resumed =
        Resumed::connect(args.handle.as_deref(), &args.connection, args.prepared).await?;
    resumed.attendant.shows_parts = !args.json;
    resumed.attendant.deadline = args.timeout.map(|timeout| Instant::now() + timeout);
    resumed.screen.begin(&resumed.saved.tool);
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
    };
    let code = match came {
        Ok((left, handle)) => outcome.tell(left, handle.as_ref(), false).await,
        Err(trouble) => Err(outcome.failed(trouble)),
    };
    resumed.client.close().await;
    code
}
