//! Follows a command to its end: its lines become the result, its questions are asked, its standard
//! error is what the task is doing.

use std::{pin::pin, sync::Arc, time::Duration};

use outlive::server::{CallToolResult, ContentBlock, Durable, Error, Result};
use serde_json::value::RawValue;

use super::super::{
    config::{Output, ToolConfig, in_words},
    marked::{self, Marked},
    runner::{Attendance, Runner},
    text::{Decoder, one_line},
};
use super::unreachable;
use crate::job::{Ask, Event, Exit, How, Job};

/// How an attempt ended.
pub(super) enum Ended {
    /// The command is over.
    Result(Result<CallToolResult>),
    /// It ended with its machine or its supervisor; this is why.
    Lost(String),
}

/// How often to see whether the call has become a task meanwhile.
const LOOK: Duration = Duration::from_millis(250);

pub(super) async fn follow(
    run: &Durable,
    config: &ToolConfig,
    runner: &Arc<Runner>,
    mut job: Job,
    id: String,
) -> Result<Ended> {
    let mut attendance = runner.attend(id, run)?;
    let mut gathered = Gathered::new(run, config);
    let exit = loop {
        attendance.label(&job);
        let event = tokio::select! {
            event = job.next() => event.map_err(unreachable)?,
            () = run.cancelled() => return cancelled(&job, attendance).await,
            // Nothing happens, but it may have become a task, and somebody may be able to read what there is.
            () = tokio::time::sleep(LOOK), if !attendance.is_labelled() => {
                gathered.let_go(run).await?;
                continue;
            }
        };
        match event {
            Event::Exit(exit) => break exit,
            event => {
                let Some(ask) = gathered.take(run, event).await? else { continue };
                match answer(run, &mut job, &mut gathered, &mut attendance, ask).await? {
                    Asked::Answered => {}
                    Asked::Over(exit) => break exit,
                    Asked::Cancelled => return cancelled(&job, attendance).await,
                }
            }
        }
    };
    if let How::Code(code) = &exit.how {
        run.exit_code(*code);
    }
    let ended = match &exit.how {
        How::Lost => Ended::Lost("its supervisor was ended, or the machine was".to_owned()),
        How::Orphaned => Ended::Lost("its server was away for too long".to_owned()),
        _ => Ended::Result(gathered.result(run, &exit).await),
    };
    attendance.over(matches!(ended, Ended::Result(_)));
    Ok(ended)
}

/// How a question ended.
enum Asked {
    Answered,
    /// The command did not wait for the answer.
    Over(Exit),
    Cancelled,
}

/// Asks the user while the command goes on, and gives the command the answer. A question that comes
/// while one is open waits for it.
async fn answer(
    run: &Durable,
    job: &mut Job,
    gathered: &mut Gathered<'_>,
    attendance: &mut Attendance,
    ask: Ask,
) -> Result<Asked> {
    let mut waiting = vec![ask];
    while !waiting.is_empty() {
        let ask = waiting.remove(0);
        gathered.questions += 1;
        let number = gathered.questions;
        attendance.asks(true);
        let line = {
            let mut put = pin!(marked::put(&ask, run, number));
            loop {
                let event = tokio::select! {
                    biased;
                    line = put.as_mut() => break line,
                    event = job.next() => event.map_err(unreachable)?,
                    () = run.cancelled() => return Ok(Asked::Cancelled),
                };
                match event {
                    // Dropping the question takes it back.
                    Event::Exit(exit) => return Ok(Asked::Over(exit)),
                    event => waiting.extend(gathered.take(run, event).await?),
                }
            }
        };
        attendance.asks(false);
        job.answer(number, &line).await.map_err(unreachable)?;
    }
    Ok(Asked::Answered)
}

async fn cancelled(job: &Job, mut attendance: Attendance) -> Result<Ended> {
    job.end().await.map_err(unreachable)?;
    attendance.over(true);
    Ok(Ended::Result(Err(Error::new("cancelled; the command and all its processes were ended"))))
}

/// What a command has printed so far.
struct Gathered<'c> {
    config: &'c ToolConfig,
    /// Lines that nobody can read before the end: a call that is no task has one block in the end.
    held: Option<String>,
    decoder: Decoder,
    questions: u32,
}

impl<'c> Gathered<'c> {
    fn new(run: &Durable, config: &'c ToolConfig) -> Self {
        let whole = matches!(config.output, Output::Json { .. });
        let held = (whole || run.task_id().is_none()).then(String::new);
        Self { config, held, decoder: Decoder::default(), questions: 0 }
    }

    /// Whether lines are held back that could be read if the call were a task.
    fn holds_back(&self) -> bool {
        self.held.is_some() && matches!(self.config.output, Output::Text)
    }

    /// Takes what a command has to say; a question is for the caller.
    async fn take(&mut self, run: &Durable, event: Event) -> Result<Option<Ask>> {
        match event {
            Event::Status(status) => run.status(one_line(&status)),
            Event::Line(line) => {
                let text = self.decoder.decode(line.bytes, line.ended);
                match marked::read(&text) {
                    Some(Marked::Progress(far)) => {
                        run.progress(far.progress, far.total, far.message)
                    }
                    Some(Marked::Ask(ask)) if self.config.asks => return Ok(Some(ask)),
                    _ => self.line(run, text, line.ended).await?,
                }
            }
            Event::Exit(_) => {}
        }
        Ok(None)
    }

    async fn line(&mut self, run: &Durable, text: String, ended: bool) -> Result<()> {
        match &mut self.held {
            None => run.emit(text).await,
            Some(held) => {
                held.push_str(&text);
                if ended {
                    held.push('\n');
                }
                self.let_go(run).await
            }
        }
    }

    /// Emits what was held back, line by line, once the call is a task. It is the same lines, in the
    /// same order, whenever that happens.
    async fn let_go(&mut self, run: &Durable) -> Result<()> {
        if !self.holds_back() || run.task_id().is_none() {
            return Ok(());
        }
        for line in self.held.take().iter().flat_map(|held| held.lines()) {
            run.emit(line).await?;
        }
        Ok(())
    }

    /// What the caller is told in the end.
    async fn result(mut self, run: &Durable, exit: &Exit) -> Result<CallToolResult> {
        let rest = self.decoder.finish();
        if !rest.is_empty() {
            self.line(run, rest, true).await?;
        }
        self.let_go(run).await?;
        let cut = self.cut(exit);
        let held = self.held.take().unwrap_or_default();
        let failure = self.failure(exit);
        if let (None, Output::Json { .. }) = (&failure, &self.config.output) {
            if let Some(cut) = cut {
                return Err(Error::new(format!("its JSON cannot be read: {cut}")));
            }
            return json(&held);
        }
        let mut result = CallToolResult::default();
        let held = held.strip_suffix('\n').unwrap_or(&held);
        if !held.is_empty() {
            result.content.push(ContentBlock::text(held));
        }
        result.content.extend(cut.map(|cut| ContentBlock::text(format!("[{cut}]"))));
        if let Some(failure) = failure {
            result.content.push(ContentBlock::text(failure));
            result.is_error = Some(true);
        }
        Ok(result)
    }

    /// What was not kept, in words.
    fn cut(&self, exit: &Exit) -> Option<String> {
        let Exit { bytes_dropped, lines_dropped, trouble, .. } = exit;
        if let Some(trouble) = trouble {
            return Some(format!("output is missing: {trouble}"));
        }
        (*bytes_dropped > 0 || *lines_dropped > 0).then(|| {
            format!(
                "output cut: {bytes_dropped} more bytes in {lines_dropped} lines were not kept; the tool keeps {} bytes and {} lines",
                self.config.max_output, self.config.max_lines
            )
        })
    }

    /// Why the command failed, if it did, with what it said on standard error.
    fn failure(&self, exit: &Exit) -> Option<String> {
        let what = match &exit.how {
            How::Code(code) if self.config.ok_codes.contains(code) => return None,
            How::Code(code) => format!("the command ended with exit code {code}"),
            How::Signal(signal) => format!("the command was ended by signal {signal}"),
            How::TimedOut => {
                format!(
                    "the command ran for longer than {} and was ended",
                    in_words(self.config.time_limit)
                )
            }
            How::Ended => "the command was ended".to_owned(),
            How::NotStarted(why) => format!("the command could not be started: {why}"),
            How::Orphaned | How::Lost => "the command was interrupted".to_owned(),
        };
        let said = exit.stderr_tail.trim();
        Some(if said.is_empty() { what } else { format!("{what}; it said:\n{said}") })
    }
}

fn json(printed: &str) -> Result<CallToolResult> {
    let json: Box<RawValue> = serde_json::from_str(printed).map_err(|error| {
        let begins: String = printed.chars().take(80).collect();
        Error::new(format!(
            "the command must print JSON and nothing else: {error}; it begins with: {begins}"
        ))
    })?;
    Ok(CallToolResult::text(json.get()).with_structured_content(json))
}
