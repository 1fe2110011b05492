//! Follows a call until it ends.
//!
//! Shows its progress and partial results, passes input requests to the user, and shows a menu on
//! Ctrl-C.

use std::{collections::BTreeSet, future::Future, pin::pin, sync::Arc, time::Duration};

use outlive::{
    client::{
        self, Error, ServerErrorKind,
        input::{InputKind, PendingInput},
        tasks::{TaskEvent, TaskHandle, TaskSnapshot},
    },
    wire::CallToolResult,
};
use tokio::{sync::mpsc, task::JoinSet, time::Instant};

use super::{
    form::{self, Wish},
    input::{Asked, Filled, Prepared, fields},
    screen::{OutputFailure, Screen, shown},
    server::trouble,
    show,
};
use crate::{
    error::{CliError, Kind, Result},
    print,
};

/// Time to wait for a response after the user stops waiting: it may carry a task ID, under which
/// the call can be resumed.
const LAST_WORD: Duration = Duration::from_millis(100);

/// Time that a server may be unreachable before the program tells the user.
pub(crate) const OUTAGE_GRACE: Duration = Duration::from_secs(3);

/// Reason why the program stopped following a call.
#[derive(Debug)]
pub(crate) enum Left {
    /// The call ended. The number is the count of content blocks already shown.
    Done(Box<CallToolResult>, usize),
    /// The task keeps running.
    Detached,
    /// The user cancelled the call.
    Cancelled,
    /// The user interrupted the program.
    Interrupted,
    /// The timeout elapsed.
    TimedOut,
    /// The server requires this input, and the program has no terminal.
    Unanswered(String),
    /// All input requests have responses, and the user wanted nothing else.
    Answered,
    /// The prepared answer is invalid for the input request.
    Misanswered(CliError),
    /// The reader of standard output closed the pipe, or standard output cannot be written.
    OutputFailed(OutputFailure),
}

/// Result of sending a call.
pub(crate) enum SentCall {
    Handle(TaskHandle),
    Left(Left),
}

/// A server that does not respond.
struct Outage {
    why: String,
    /// Time at which the program tells the user; `None` afterwards.
    tell_at: Option<Instant>,
}

/// Follower of a call.
pub(crate) struct Attendant {
    pub(crate) screen: Arc<Screen>,
    /// Answers from the command line.
    pub(crate) prepared: Prepared,
    /// End of the timeout.
    pub(crate) deadline: Option<Instant>,
    /// Whether to print content blocks as they arrive.
    pub(crate) shows_parts: bool,
    /// Whether to exit as soon as the call is a task.
    pub(crate) detaches: bool,
    /// Whether to exit as soon as no input request is open.
    pub(crate) only_answers: bool,
    /// Whether the server can turn calls into tasks.
    pub(crate) makes_tasks: bool,
    /// Fields of the task's open input requests that are known so far.
    pub(crate) known_fields: BTreeSet<String>,
    /// Command that returns to the task.
    pub(crate) way_back: Option<String>,
    outage: Option<Outage>,
    asked: mpsc::Receiver<Asked>,
    interrupts: mpsc::Receiver<()>,
    _listening: JoinSet<()>,
    /// Choice of the user before the call became a task.
    left: Option<Left>,
    came: usize,
    has_answered: bool,
    cancels: bool,
}

impl Attendant {
    pub(crate) fn new(
        screen: &Arc<Screen>,
        asked: mpsc::Receiver<Asked>,
        prepared: Prepared,
    ) -> Self {
        let (interrupt, interrupts) = mpsc::channel(4);
        let mut listening = JoinSet::new();
        listening.spawn(async move {
            while tokio::signal::ctrl_c().await.is_ok() {
                let _ = interrupt.try_send(());
            }
        });
        Self {
            screen: Arc::clone(screen),
            prepared,
            deadline: None,
            shows_parts: true,
            detaches: false,
            only_answers: false,
            makes_tasks: false,
            known_fields: BTreeSet::new(),
            way_back: None,
            outage: None,
            asked,
            interrupts,
            _listening: listening,
            left: None,
            came: 0,
            has_answered: false,
            cancels: false,
        }
    }

    /// Sends a call, and waits for its result or task ID.
    pub(crate) async fn begin(
        &mut self,
        starting: impl Future<Output = client::Result<TaskHandle>>,
    ) -> Result<SentCall> {
        let mut starting = pin!(starting);
        loop {
            let left = tokio::select! {
                made = &mut starting => {
                    return made.map(SentCall::Handle).map_err(|error| trouble(&error, None));
                }
                Some(asked) = self.asked.recv() => self.answer(asked, false).await?,
                Some(()) = self.interrupts.recv() => self.interrupted(false).await?,
                () = until(self.deadline) => Some(Left::TimedOut),
            };
            match left {
                // The call is not a task yet, so detaching waits.
                Some(Left::Detached) => self.detaches = true,
                Some(left) => {
                    // The response with the task ID may already be here, or is about to be saved.
                    let wait = match left {
                        Left::Interrupted | Left::TimedOut => LAST_WORD,
                        _ => Duration::ZERO,
                    };
                    return Ok(match tokio::time::timeout(wait, &mut starting).await {
                        Ok(Ok(handle)) => {
                            self.left = Some(left);
                            SentCall::Handle(handle)
                        }
                        _ => SentCall::Left(left),
                    });
                }
                None => {}
            }
        }
    }

    /// Follows the call until it ends.
    pub(crate) async fn attend(&mut self, handle: &mut TaskHandle) -> Result<Left> {
        if self.detaches && handle.task_id().is_some() {
            return Ok(Left::Detached);
        }
        let mut events = handle.events().with_input_handler();
        let mut reader_left = pin!(print::reader_left());
        loop {
            let left = if let Some(left) = self.left.take() {
                Some(left)
            } else {
                // Kept alive during input: in the legacy era, the input request is part of this
                // future.
                let mut next = pin!(events.next());
                loop {
                    let tell_at = self.outage.as_ref().and_then(|outage| outage.tell_at);
                    let left = tokio::select! {
                        event = &mut next => match event {
                            Some(event) => break self.happened(event)?,
                            None => return Err(CliError::unreachable("the server stopped reporting on the task")),
                        },
                        Some(asked) = self.asked.recv() => self.answer(asked, true).await?,
                        Some(()) = self.interrupts.recv() => self.interrupted(true).await?,
                        () = until(self.deadline) => Some(Left::TimedOut),
                        () = until(tell_at) => {
                            self.tell_outage();
                            None
                        }
                        () = &mut reader_left => Some(Left::OutputFailed(OutputFailure::ReaderLeft)),
                    };
                    if left.is_some() {
                        break left;
                    }
                }
            };
            match left {
                // The task may still complete. Its final status is among the events.
                Some(Left::Cancelled) if !self.cancels => {
                    self.cancels = true;
                    self.screen.status("cancelling");
                    events.cancel().await.map_err(|error| trouble(&error, None))?;
                }
                Some(left) => return Ok(left),
                None => {}
            }
        }
    }

    /// Cancels a call, and waits for its final status.
    pub(crate) async fn cancel(&mut self, handle: &mut TaskHandle) -> Result<Left> {
        self.cancels = true;
        self.shows_parts = false;
        handle.cancel().await.map_err(|error| trouble(&error, None))?;
        self.attend(handle).await
    }

    fn happened(&mut self, event: client::Result<TaskEvent>) -> Result<Option<Left>> {
        match event {
            Ok(TaskEvent::Status(task)) => {
                self.status(&task);
                let is_asking =
                    task.questions.as_ref().is_some_and(|questions| !questions.is_empty());
                Ok((self.only_answers && self.has_answered && !is_asking).then_some(Left::Answered))
            }
            Ok(TaskEvent::Segment(segment)) => {
                if self.shows_parts {
                    self.screen.data(&show::text(&segment.block));
                    self.came = usize::try_from(segment.number).unwrap_or(usize::MAX);
                }
                Ok(self.screen.output_failure().map(Left::OutputFailed))
            }
            Ok(TaskEvent::Done(result)) => Ok(Some(Left::Done(result, self.came))),
            Ok(TaskEvent::Unreachable(why)) => {
                self.outage = Some(Outage { why, tell_at: Some(Instant::now() + OUTAGE_GRACE) });
                Ok(None)
            }
            Ok(TaskEvent::Reachable) => {
                if self.outage.take().is_some_and(|outage| outage.tell_at.is_none()) {
                    self.screen.talk("the server responds again");
                }
                Ok(None)
            }
            Ok(_) => Ok(None),
            Err(error) if error.is_transient() => {
                self.screen.talk(&format!("{}; retrying", shown(&error.to_string())));
                Ok(None)
            }
            Err(error) => self.failed(&error),
        }
    }

    /// Tells the user about the outage, the retries, and the command that returns to the task.
    fn tell_outage(&mut self) {
        let Some(outage) = &mut self.outage else { return };
        outage.tell_at = None;
        let until = match self.deadline {
            Some(_) => "retrying until it responds or --timeout elapses",
            None => "retrying until it responds",
        };
        let mut told = format!("the server does not respond: {}; {until}", shown(&outage.why));
        if let Some(command) = &self.way_back {
            told.push_str(&format!("\n  to return to the task later: {command}"));
        }
        self.screen.talk(&told);
    }

    fn failed(&self, error: &Error) -> Result<Option<Left>> {
        match error.kind() {
            Some(ServerErrorKind::TaskCancelled) if self.cancels => Ok(Some(Left::Cancelled)),
            // Another client cancelled the task, or it ended before.
            Some(ServerErrorKind::TaskCancelled) => {
                Err(CliError::new(Kind::Cancelled, "the task was cancelled"))
            }
            _ => Err(trouble(error, None)),
        }
    }

    fn status(&self, task: &TaskSnapshot) {
        match (&task.progress, show::doing(task)) {
            (Some(far), doing) => self.screen.progress(far.done, far.total, doing),
            (None, Some(doing)) => self.screen.status(doing),
            (None, None) => {}
        }
    }

    /// Responds to an input request: with prepared answers, or by asking the user.
    async fn answer(&mut self, asked: Asked, is_task: bool) -> Result<Option<Left>> {
        let Asked { question, reply } = asked;
        if self.cancels {
            // A task that is being cancelled needs no input.
            return Ok(None);
        }
        let filled = match self.prepared.fill(&question) {
            Ok(filled) => filled,
            Err(trouble) => return Ok(Some(Left::Misanswered(trouble))),
        };
        self.known_fields.extend(fields(&question).into_iter().map(|field| field.name));
        let known = match filled {
            Filled::Answer(answer) => {
                self.has_answered = true;
                let _ = reply.send(answer);
                return Ok(None);
            }
            Filled::Partly(known) => known,
        };
        if (self.only_answers || !Screen::can_ask())
            && let Some(unknown) = self.prepared.unknown(&self.known_fields)
        {
            return Ok(Some(Left::Misanswered(no_field(unknown, &question))));
        }
        if !Screen::can_ask() {
            return Ok(Some(Left::Unanswered(in_words(&question))));
        }
        let answer = loop {
            let (form, known) = (question.clone(), known.clone());
            match self.at_terminal(move || form::ask(&form, &known)).await? {
                Some(answer) => break answer,
                None => match self.wish(is_task, true).await? {
                    Some(Wish::GoOn) => {}
                    Some(Wish::Decline) => break client::input::InputResponse::Decline,
                    Some(Wish::Dismiss) => break client::input::InputResponse::Cancel,
                    Some(Wish::Detach) => return Ok(Some(Left::Detached)),
                    Some(Wish::Cancel) => return Ok(Some(Left::Cancelled)),
                    None => return Ok(Some(Left::Interrupted)),
                },
            }
        };
        self.has_answered = true;
        let _ = reply.send(answer);
        Ok(None)
    }

    /// Handles Ctrl-C.
    async fn interrupted(&mut self, is_task: bool) -> Result<Option<Left>> {
        if !Screen::can_ask() {
            return Ok(Some(Left::Interrupted));
        }
        Ok(match self.wish(is_task, false).await? {
            Some(Wish::Detach) => Some(Left::Detached),
            Some(Wish::Cancel) => Some(Left::Cancelled),
            Some(_) => None,
            None => Some(Left::Interrupted),
        })
    }

    /// Shows the menu after Ctrl-C. Returns `None` if the user pressed Ctrl-C again.
    async fn wish(&mut self, is_task: bool, in_form: bool) -> Result<Option<Wish>> {
        let mut wishes = vec![(Wish::GoOn, "continue".to_owned())];
        if in_form {
            wishes.push((Wish::Decline, "decline the input request".to_owned()));
            wishes.push((Wish::Dismiss, "close the form without a response".to_owned()));
        }
        match (is_task, self.makes_tasks) {
            (true, _) => wishes.push((Wish::Detach, "detach: the task keeps running".to_owned())),
            (false, true) if !in_form => {
                wishes.push((Wish::Detach, "detach as soon as the call becomes a task".to_owned()));
            }
            _ => {}
        }
        let what = if is_task { "cancel the task" } else { "cancel the call" };
        wishes.push((Wish::Cancel, what.to_owned()));
        self.at_terminal(move || form::wish(&wishes)).await
    }

    /// Runs a blocking prompt with exclusive use of the terminal.
    async fn at_terminal<T: Send + 'static>(
        &mut self,
        show: impl FnOnce() -> std::io::Result<T> + Send + 'static,
    ) -> Result<T> {
        self.screen.hold();
        let shown = tokio::task::spawn_blocking(show).await;
        self.screen.release();
        // The prompt has already handled its Ctrl-C: discard the signals of that key press.
        tokio::task::yield_now().await;
        while self.interrupts.try_recv().is_ok() {}
        let shown = shown.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        shown.map_err(|error| {
            CliError::new(Kind::Unanswered, format!("the terminal failed: {error}"))
        })
    }
}

/// Returns the error for an answer to a field that no input request has.
pub(crate) fn no_field(unknown: &str, question: &PendingInput) -> CliError {
    let names: Vec<String> =
        fields(question).iter().map(|field| format!("`{}`", shown(&field.name))).collect();
    let has = match names.is_empty() {
        true => "it has no fields".to_owned(),
        false => format!("its fields are {}", names.join(", ")),
    };
    CliError::usage(format!("the form has no field `{unknown}`; {has}"))
        .remedy(format!("pass --answer FIELD=VALUE; the form asks: {}", in_words(question)))
}

/// Returns the text of an input request in one line.
pub(crate) fn in_words(question: &PendingInput) -> String {
    match &question.request {
        InputKind::Form(form) => shown(&form.message),
        InputKind::Url(url) => format!("{} ({})", shown(&url.message), shown(&url.url)),
        other => other.kind().to_owned(),
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
