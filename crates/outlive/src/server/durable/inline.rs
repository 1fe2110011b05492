//! Runs a handler where its call is answered, over the call's journal.
//!
//! The one place where the two wires differ: where the client can be asked while the call waits,
//! its questions are sent and the run goes on with the answers; where it cannot, the run is dropped
//! when it is parked, and the call ends with the questions and the sealed journal. The handler sees
//! neither.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll, ready},
    time::Duration,
};

use outlive_protocol::{InputMode, InputRequired, MethodResult, Outcome, ProtocolError, era};
use outlive_tasks::{IdleDetector, InputFailure, OpenInputRequest, RunPoll, poll_as};
use outlive_wire::{ContentBlock, ElicitRequestParams, InputRequest, OrderedMap};
use pin_project_lite::pin_project;

use super::{
    Durability, DurableError, InputRequestSet, Put, Upgrade, now, request::url_request, run_id,
};
use crate::server::{
    Cx, Error,
    extract::{Rejection, RejectionKind},
    handler::Handler,
};

/// Makes an outcome of what a handler returns.
pub(in crate::server) trait Ending<R>: Send + 'static {
    fn finish(&self, cx: &Cx, returned: R) -> Result<Ended, ProtocolError>;

    /// The outcome of a call that goes no further.
    fn give_up(&self, cx: &Cx, error: Error) -> Result<Outcome, ProtocolError>;

    /// What the registration says about rounds.
    fn upgrade(&self) -> &Upgrade;
}

/// How a run of a handler has ended.
pub(in crate::server) enum Ended {
    Outcome(Outcome),
    /// It asks by itself, and wants to be called again.
    Ask(InputRequestSet),
}

pin_project! {
    /// A handler at work on a call.
    pub(in crate::server) struct Inline<M, H, E>
    where
        H: Handler<M>,
    {
        cx: Cx,
        handler: Arc<H>,
        ending: E,
        #[pin]
        work: Option<H::Future>,
        turns: IdleDetector,
        waiting: Vec<Waiting>,
        // What has to be done with the store before anything else: `None` comes of it if the
        // handler goes on then.
        aside: Option<Aside>,
    }
}

/// Something that is done with the store, and the outcome of the call if it is the end of it.
type Aside = Pin<Box<dyn Future<Output = Result<Option<Outcome>, ProtocolError>> + Send>>;

/// A question that has been sent.
struct Waiting {
    key: String,
    /// Which asking of the key it is: the same key can be asked again in other words.
    serial: u64,
    /// The question, to know it again.
    words: String,
    put: Put,
    timer: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl<M, H, E> Inline<M, H, E>
where
    H: Handler<M>,
    E: Ending<H::Output>,
{
    /// Makes the handler's arguments. Nothing has run yet.
    pub(in crate::server) fn start(
        cx: &Cx,
        handler: &Arc<H>,
        ending: E,
    ) -> Result<Self, (Rejection, E)> {
        match handler.start(cx) {
            Ok(work) => Ok(Self {
                cx: cx.clone(),
                handler: Arc::clone(handler),
                ending,
                work: Some(work),
                turns: IdleDetector::default(),
                waiting: Vec::new(),
                aside: fetch(cx),
            }),
            Err(rejection) => Err((rejection, ending)),
        }
    }

    /// Drops the run and begins another over the same journal.
    fn begin_again(self: Pin<&mut Self>) -> Result<(), ProtocolError> {
        let mut this = self.project();
        let journal = &Durability::of(this.cx).journal;
        journal.close();
        this.work.set(None);
        journal.restart();
        *this.turns = IdleDetector::default();
        match this.handler.start(this.cx) {
            Ok(work) => {
                this.work.set(Some(work));
                Ok(())
            }
            Err(Rejection(RejectionKind::Refused(fault))) => Err(fault),
            Err(Rejection(RejectionKind::Arguments(error))) => Err(ProtocolError::internal(error)),
        }
    }

    /// Opens the questions of a handler that asks by itself.
    fn ask(self: Pin<&mut Self>, questions: InputRequestSet) -> Result<(), Error> {
        let mut this = self.project();
        this.work.set(None);
        let limits = &this.cx.core().profile.limits;
        let durability = Durability::of(this.cx);
        if this.cx.call().rules().input_mode == InputMode::Stream {
            // The rounds that are not rounds of calls are counted here.
            durability.round.fetch_add(1, Ordering::Relaxed);
        }
        if durability.rounds() > limits.max_rounds {
            return Err(too_many_rounds(limits.max_rounds));
        }
        let journal = &durability.journal;
        for (key, mut request) in questions.asked {
            if let InputRequest::Elicit(ElicitRequestParams::Url(params)) = request {
                request = url_request(this.cx, &key, params)?;
            }
            if let Some(required) = era::missing_for(this.cx.call(), &request) {
                return Err(ProtocolError::MissingCapability { required }.into());
            }
            journal.open(&key, request);
        }
        match questions.state {
            Some(state) => Ok(journal.set_state(state).map_err(super::misuse)?),
            None => Ok(()),
        }
    }

    /// Ends the call with what is to be asked; `None` if the store has to keep something before.
    fn suspend(self: Pin<&mut Self>) -> Result<Option<Outcome>, ProtocolError> {
        let mut this = self.project();
        let durability = Durability::of(this.cx);
        let journal = &durability.journal;
        if let Some(why) = journal.malformed() {
            return Err(ProtocolError::InvalidParams(why.into()));
        }
        if let Some(rehearsal) = &this.cx.core().rehearsal {
            rehearsal.ended(journal, &[]);
        }
        let shed = journal.wants_to_shed();
        let questions = journal.open_questions();
        journal.close();
        this.work.set(None);
        let limit = this.cx.core().profile.limits.max_rounds;
        if durability.rounds() >= limit {
            let outcome = this.ending.give_up(this.cx, too_many_rounds(limit))?;
            return Ok(Some(complete(this.cx, outcome)));
        }
        let (state, spill) = durability.seal(this.cx, this.ending.upgrade(), &questions)?;
        let requests = questions.into_iter().map(|question| (question.name, question.request));
        let asked = InputRequired {
            requests: OrderedMap(requests.collect()),
            state,
            retry_after: shed.and_then(|shed| shed.retry_after),
        };
        let Some(spill) = spill else { return Ok(Some(Outcome::InputRequired(Box::new(asked)))) };
        let ending = spill.end(this.cx.clone(), asked);
        *this.aside = Some(Box::pin(async move { ending.await.map(Some) }));
        Ok(None)
    }

    /// Sends what is to be asked, and takes what has been answered. `true` if something was.
    fn gather(self: Pin<&mut Self>, task: &mut Context<'_>, parked: bool) -> bool {
        let this = self.project();
        // A run that has begun again may not have come to all its questions yet.
        let may_ask_again = this.cx.core().replays && !parked;
        let Some(durability) = this.cx.call().attached::<Durability>() else { return false };
        let journal = &durability.journal;
        for question in journal.unsent() {
            let known = this.waiting.iter_mut().find(|waiting| waiting.key == question.key);
            if let Some(waiting) = known.filter(|waiting| waiting.asks(&question)) {
                // A run that has begun again asks what the client is being asked already.
                waiting.serial = question.serial;
                continue;
            }
            match send(this.cx, question) {
                Ok(waiting) => this.waiting.push(waiting),
                Err(key) => {
                    let _ = journal.resolve(&key, Err(InputFailure::TimedOut));
                }
            }
        }
        let mut answered = false;
        this.waiting.retain_mut(|waiting| {
            let open = journal.serial_of(&waiting.key);
            if open != Some(waiting.serial) {
                if open.is_none() && may_ask_again {
                    return true;
                }
                waiting.put.withdraw("the answer is not needed any more");
                return false;
            }
            let answer = match waiting.put.poll(task) {
                Poll::Ready(reply) => reply.map_err(|error| InputFailure::Refused {
                    code: error.code,
                    message: error.message,
                }),
                Poll::Pending if waiting.timer.as_mut().poll(task).is_pending() => return true,
                Poll::Pending => {
                    waiting.put.withdraw("nobody answered in time");
                    Err(InputFailure::TimedOut)
                }
            };
            if journal.resolve(&waiting.key, answer).is_err() {
                // It is far too large to be kept; nothing of it is.
                let _ = journal.resolve(
                    &waiting.key,
                    Err(InputFailure::Refused {
                        code: outlive_wire::code::INVALID_PARAMS,
                        message: "the answer is too large".to_owned(),
                    }),
                );
            }
            answered = true;
            false
        });
        answered
    }
}

impl<M, H, E> Future for Inline<M, H, E>
where
    H: Handler<M>,
    E: Ending<H::Output>,
{
    type Output = Result<Outcome, ProtocolError>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            if let Some(aside) = self.as_mut().project().aside {
                let done = ready!(aside.as_mut().poll(task));
                *self.as_mut().project().aside = None;
                if let Some(outcome) = done? {
                    return Poll::Ready(Ok(outcome));
                }
            }
            let is_task = self.cx.call().attached::<Durability>().is_some_and(Durability::is_task);
            let waits = self.cx.call().rules().input_mode == InputMode::Stream;
            let turned = self.as_mut().poll_work(task);
            if !matches!(turned, Poll::Ready(RunPoll::Done(_))) && crashed(&self.cx) {
                self.as_mut().begin_again()?;
                continue;
            }
            let parked = matches!(turned, Poll::Ready(RunPoll::Parked));
            match turned {
                Poll::Ready(RunPoll::Done(returned)) => {
                    let this = self.as_mut().project();
                    let ended = this.ending.finish(this.cx, returned);
                    if !matches!(ended, Ok(Ended::Ask(_))) {
                        withdraw_all(this.waiting);
                    }
                    match ended? {
                        Ended::Outcome(outcome) => {
                            let outcome = complete(this.cx, outcome);
                            if !runs_once_more(this.cx, &outcome) {
                                return Poll::Ready(Ok(outcome));
                            }
                            self.as_mut().begin_again()?;
                            continue;
                        }
                        Ended::Ask(questions) => {
                            if let Err(error) = self.as_mut().ask(questions) {
                                let outcome = self.ending.give_up(&self.cx, error)?;
                                return Poll::Ready(Ok(complete(&self.cx, outcome)));
                            }
                        }
                    }
                    if !waits && !is_task {
                        match self.as_mut().suspend()? {
                            Some(outcome) => return Poll::Ready(Ok(outcome)),
                            None => continue,
                        }
                    }
                }
                Poll::Ready(RunPoll::Parked) if !waits && !is_task => {
                    match self.as_mut().suspend()? {
                        Some(outcome) => return Poll::Ready(Ok(outcome)),
                        None => continue,
                    }
                }
                Poll::Ready(RunPoll::Parked) | Poll::Pending => {}
            }
            if is_task {
                // Questions go to the store, and whoever runs the task brings the answers.
                if self.work.is_some() || Durability::of(&self.cx).journal.has_open_questions() {
                    return Poll::Pending;
                }
                self.as_mut().begin_again()?;
                continue;
            }
            if !waits {
                return Poll::Pending;
            }
            let durability = self.cx.call().attached::<Durability>();
            if durability.is_some_and(|it| it.journal.has_open_questions() && it.want_task()) {
                // As a task it is asked where its client waits for it.
                return Poll::Pending;
            }
            let answered = self.as_mut().gather(task, parked);
            let asks_by_itself = self.work.is_none();
            if asks_by_itself && !self.waiting.is_empty() || !asks_by_itself && !answered {
                return Poll::Pending;
            }
            if asks_by_itself || self.cx.core().replays {
                self.as_mut().begin_again()?;
            }
        }
    }
}

impl<M, H, E> Inline<M, H, E>
where
    H: Handler<M>,
{
    fn poll_work(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<RunPoll<H::Output>> {
        let this = self.project();
        let Some(work) = this.work.as_pin_mut() else { return Poll::Pending };
        let (cx, turns) = (&*this.cx, this.turns);
        poll_as(run_id(cx), || {
            turns.poll(work, task, || {
                let durability = cx.call().attached::<Durability>();
                durability.is_some_and(|durability| durability.journal.waits_for_answers())
            })
        })
    }
}

/// Reads back what the store has of the journal, before the handler looks for it.
fn fetch(cx: &Cx) -> Option<Aside> {
    cx.call().attached::<Durability>()?.spilled()?;
    let cx = cx.clone();
    Some(Box::pin(async move { Durability::of(&cx).fetch(cx.core()).await.map(|()| None) }))
}

/// Whether a test has the run lost.
fn crashed(cx: &Cx) -> bool {
    let Some(rehearsal) = &cx.core().rehearsal else { return false };
    let durability = cx.call().attached::<Durability>();
    let crashed = durability.is_some_and(|durability| durability.journal.crashed());
    if crashed {
        rehearsal.crashed();
    }
    crashed
}

/// Whether a test has the handler run once more over its whole journal.
fn runs_once_more(cx: &Cx, outcome: &Outcome) -> bool {
    let Some(rehearsal) = &cx.core().rehearsal else { return false };
    let Outcome::Complete(MethodResult::Tool(result)) = outcome else { return false };
    // What uses no journal is the same function of it, whatever it returns.
    cx.call().attached::<Durability>().is_some()
        && rehearsal.returned(serde_json::to_string(result).unwrap_or_default())
}

fn too_many_rounds(rounds: u32) -> Error {
    DurableError::TooManyRounds { rounds }.into()
}

/// The handler has ended: nobody wants to know any more.
fn withdraw_all(waiting: &mut Vec<Waiting>) {
    waiting.drain(..).for_each(|waiting| waiting.put.withdraw("the answer is not needed any more"));
}

impl Waiting {
    /// Whether this is what the client is being asked.
    fn asks(&self, question: &OpenInputRequest) -> bool {
        serde_json::to_string(&question.request).is_ok_and(|text| text == self.words)
    }
}

/// Sends a question on the call's own stream.
fn send(cx: &Cx, question: OpenInputRequest) -> Result<Waiting, String> {
    let OpenInputRequest { key, request, due, serial, .. } = question;
    let words = serde_json::to_string(&request).unwrap_or_default();
    let profile = &cx.core().profile;
    let rest = match due {
        Some(due) => Duration::from_millis(due.saturating_sub(now(cx))),
        None => profile.limits.input_timeout,
    };
    let Some(put) = Put::send(cx.core(), cx.call(), request) else { return Err(key) };
    Ok(Waiting { key, serial, words, put, timer: profile.clock.sleep(rest) })
}

/// Puts what was emitted before what was returned, and looks whether the journal was used up.
fn complete(cx: &Cx, mut outcome: Outcome) -> Outcome {
    let Some(durability) = cx.call().attached::<Durability>() else { return outcome };
    let unused = durability.journal.unused();
    if let Some(rehearsal) = &cx.core().rehearsal {
        rehearsal.ended(&durability.journal, &unused);
    }
    if !unused.is_empty() {
        tracing::warn!(
            target = %cx.call().name().unwrap_or_default(),
            keys = unused.join(", "),
            "a handler did not come to what is recorded; has it changed?"
        );
    }
    let less = durability.journal.missing_segments();
    if !less.is_empty() {
        tracing::warn!(
            target = %cx.call().name().unwrap_or_default(),
            scopes = less.join(", "),
            "a handler has emitted less than before; has it changed?"
        );
    }
    merge(durability, &mut outcome);
    outcome
}

/// Puts what was emitted before what was returned.
pub(super) fn merge(durability: &Durability, outcome: &mut Outcome) {
    let Outcome::Complete(MethodResult::Tool(result)) = outcome else { return };
    let segments = durability.journal.segments();
    let emitted: Vec<ContentBlock> = segments
        .iter()
        .filter_map(|segment| serde_json::from_str(segment.block.get()).ok())
        .collect();
    if !emitted.is_empty() {
        result.content.splice(0..0, emitted);
    }
}
