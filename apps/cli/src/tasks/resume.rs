//! Resumes a call: to show its status, to answer it, or to wait for its result.

use std::{collections::BTreeSet, process::ExitCode, sync::Arc};

use outlive::{
    client::{
        Client, ClientError, Error, ServerErrorKind,
        saved::CallStage,
        tasks::{TaskHandle, TaskSnapshot, TaskStatus},
    },
    schema,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::snapshot::seen;
use super::{Which, WithResult, describe::described, page, target::Taken};
use crate::{
    call::{
        PATIENCE,
        input::{Desk, Prepared},
        outcome::Outcome,
        run_call::{Attendant, Left, SentCall},
        saved_calls::Handles,
        screen::Screen,
        server::{Connection, trouble},
    },
    error::{CliError, Kind, Result},
};

/// A resumed call.
pub(super) struct Resumed {
    screen: Arc<Screen>,
    handles: Handles,
    taken: Taken,
    pub(super) client: Client,
    pub(super) attendant: Attendant,
}

impl Resumed {
    pub(super) async fn connect(
        taken: Taken,
        connection: &Connection,
        prepared: Prepared,
    ) -> Result<Self> {
        let screen = Screen::new();
        let handles = Handles::open(&screen);
        let server = taken.server()?;
        let (desk, asked) = Desk::new();
        let book = handles.clone();
        let connection = taken.connection(connection);
        let connecting = connection.connect(&server, &screen, |builder| {
            let builder = builder.input_handler(desk).call_store(book);
            // No client timeout, as in `outlive call`: the user decides how long to wait.
            builder.limits(|limits| limits.max_total_timeout = PATIENCE)
        });
        let client = connecting.await?;
        let mut attendant = Attendant::new(&screen, asked, prepared);
        attendant.way_back = Some(taken.command("result"));
        Ok(Self { screen, handles, taken, client, attendant })
    }

    /// Resumes the call that the command line names.
    async fn open(which: &Which, prepared: Prepared) -> Result<Self> {
        let taken = match (&which.server, &which.handle) {
            (Some(server), Some(task)) => Taken::task(server, task),
            (_, named) => Taken::saved(&Handles::open(&Screen::new()), named.as_deref())?,
        };
        Self::connect(taken, &which.connection, prepared).await
    }

    /// Deletes the handle, if there is one.
    pub(super) fn forget(&self) {
        if let Taken::Saved(saved) = &self.taken {
            self.handles.forget(&saved.call.id);
        }
    }

    /// Resumes the call. Sends a call without a response again only if that is safe.
    async fn begin(&mut self) -> Result<SentCall> {
        if let Taken::Saved(saved) = &self.taken
            && let CallStage::Calling(_) = saved.call.stage
            && saved.call.key.is_none()
            && !saved.call.idempotent
        {
            let error = Error::from(ClientError::MaybeExecuted(saved.call.tool.clone()));
            return Err(CliError::new(Kind::Failed, error).remedy(self.taken.command("remove")));
        }
        self.attendant.begin(self.taken.resume(&self.client)).await
    }

    pub(super) async fn handle(&mut self) -> Result<TaskHandle> {
        match self.begin().await? {
            SentCall::Handle(handle) => Ok(handle),
            SentCall::Left(Left::Interrupted) => {
                Err(CliError::new(Kind::Interrupted, "interrupted"))
            }
            SentCall::Left(_) => Err(CliError::new(
                Kind::Unanswered,
                "the call is not a task yet, and input is required",
            )
            .remedy(self.taken.command("answer"))),
        }
    }
}

/// `outlive tasks get`.
pub(super) async fn get(which: &Which, is_json: bool) -> Result<ExitCode> {
    let screen = Screen::new();
    if which.server.is_none() {
        // An ended call needs no server.
        let saved = Handles::open(&screen).find(which.handle.as_deref())?;
        if !matches!(saved.call.stage, CallStage::Task(_)) {
            tell(&screen, &described(&saved), is_json);
            return Ok(ExitCode::SUCCESS);
        }
    }
    let mut resumed = Resumed::open(which, Prepared::default()).await?;
    let handle = resumed.handle().await?;
    let looked = handle.get().await;
    let snapshot = looked.map_err(|error| unknown(&error, &resumed.taken))?;
    let known = resumed.taken.described();
    let seen = match &snapshot {
        Some(snapshot) => seen(known, snapshot),
        None => known,
    };
    tell(&screen, &seen, is_json);
    if snapshot.is_some_and(|snapshot| snapshot.status == TaskStatus::InputRequired) {
        screen.talk(&format!("input required; answer with: {}", resumed.taken.command("answer")));
    }
    resumed.client.close().await;
    Ok(ExitCode::SUCCESS)
}

fn tell(screen: &Screen, seen: &Value, is_json: bool) {
    match is_json {
        true => screen.data(&format!("{seen:#}")),
        false => page::tell(screen, seen),
    }
}

/// Converts the error of a status query. If the server does not know the task, suggests deleting
/// the handle.
fn unknown(error: &Error, taken: &Taken) -> CliError {
    let trouble = trouble(error, None);
    match (error.kind(), taken) {
        (Some(ServerErrorKind::TaskGone), Taken::Saved(_)) => trouble.remedy(format!(
            "the task may have expired or belong to another caller; to delete the handle, run {}",
            taken.command("remove")
        )),
        _ => trouble,
    }
}

/// `outlive tasks answer`.
pub(super) async fn answer(which: &Which, prepared: Prepared, is_json: bool) -> Result<ExitCode> {
    let mut resumed = Resumed::open(which, prepared).await?;
    resumed.attendant.only_answers = true;
    resumed.attendant.shows_parts = false;
    let name = resumed.taken.name().to_owned();
    let begun = resumed.begin().await?;
    let (left, handle) = match begun {
        SentCall::Left(left) => (left, None),
        SentCall::Handle(mut handle) => {
            let looked = handle.get().await;
            let seen = looked.map_err(|error| unknown(&error, &resumed.taken))?;
            let Some(task) = seen.filter(|task| task.status == TaskStatus::InputRequired) else {
                match is_json {
                    true => tell_answered(&resumed.screen, &name, false),
                    false => resumed.screen.talk("the task has no open input requests"),
                }
                resumed.client.close().await;
                return Ok(ExitCode::SUCCESS);
            };
            resumed.attendant.known_fields = field_names(&task);
            (resumed.attendant.attend(&mut handle).await?, Some(handle))
        }
    };
    let outcome = Outcome {
        screen: &resumed.screen,
        handles: &resumed.handles,
        is_json: false,
        keeps: true,
        elsewhere: which.server.as_deref(),
    };
    let code = match left {
        // The task may have ended meanwhile. Its result is left for `tasks result`.
        Left::Done(..) | Left::Answered if is_json => {
            tell_answered(&resumed.screen, &name, true);
            Ok(ExitCode::SUCCESS)
        }
        Left::Done(..) => outcome.tell(Left::Answered, handle.as_ref(), false).await,
        left => outcome.tell(left, handle.as_ref(), false).await,
    };
    resumed.client.close().await;
    code
}

/// Prints as JSON whether an input request was answered.
pub(super) fn tell_answered(screen: &Screen, name: &str, was_asked: bool) {
    screen.data(&json!({"handle": name, "answered": was_asked}).to_string());
}

/// Returns the names of all fields in the task's input requests.
fn field_names(task: &TaskSnapshot) -> BTreeSet<String> {
    let questions: Value = serde_json::to_value(&task.questions).unwrap_or_default();
    let schemas = questions
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(_, question)| question.pointer("/params/requestedSchema"));
    schemas.flat_map(schema::fields).map(|field| field.name).collect()
}

/// `outlive tasks result`.
pub(super) async fn result(args: WithResult) -> Result<ExitCode> {
    let mut resumed = Resumed::open(&args.which, args.prepared).await?;
    resumed.attendant.shows_parts = !args.json;
    resumed.attendant.deadline = args.timeout.map(|timeout| Instant::now() + timeout);
    resumed.screen.begin(resumed.taken.title());
    let came = match resumed.begin().await? {
        SentCall::Left(left) => Ok((left, None)),
        SentCall::Handle(mut handle) => {
            let left = resumed.attendant.attend(&mut handle).await;
            left.map(|left| (left, Some(handle)))
        }
    };
    resumed.screen.end();
    let outcome = Outcome {
        screen: &resumed.screen,
        handles: &resumed.handles,
        is_json: args.json,
        keeps: args.keep_handle,
        elsewhere: resumed.taken.elsewhere(),
    };
    let code = match came {
        Ok((left, handle)) => outcome.tell(left, handle.as_ref(), false).await,
        Err(trouble) => {
            let trouble = outcome.failed(trouble);
            // The call had ended before it was resumed, and its outcome is now reported.
            if !args.keep_handle && resumed.taken.is_terminal() {
                resumed.forget();
            }
            Err(trouble)
        }
    };
    resumed.client.close().await;
    code
}
