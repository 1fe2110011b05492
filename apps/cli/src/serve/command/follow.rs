//! Follows a command to its exit: its lines become the result, its input requests go to the user,
//! and its standard error becomes the status message.

use std::{
    collections::{HashMap, VecDeque},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use outlive::server::{CallToolResult, ContentBlock, Durable, Error, Result};
use outlive_jobs::{Event, Exit, How, InputLine, Job, StepLine};
use serde_json::value::RawValue;

use super::super::{
    command_pool::{Attendance, Runner},
    config::{Output, ToolConfig, in_words},
    input,
    text::{Decoder, one_line},
};
use super::{steps, unreachable};

/// Outcome of an attempt.
pub(super) enum Ended {
    /// The command exited.
    Result(Result<CallToolResult>),
    /// The command was lost with its machine or supervisor, for this reason.
    Lost(String),
}

/// Interval at which to check whether the call has become a task.
const LOOK: Duration = Duration::from_millis(250);

/// Contexts of one attempt, each with other keys.
#[derive(Clone, Copy)]
pub(super) struct Contexts<'a> {
    /// For everything else.
    pub(super) run: &'a Durable,
    /// For input requests.
    pub(super) inputs: &'a Durable,
    /// For steps.
    pub(super) steps: &'a Durable,
}

/// Follows a command to its exit.
pub(super) async fn follow(
    contexts: Contexts<'_>,
    config: &ToolConfig,
    runner: &Arc<Runner>,
    mut job: Job,
    id: String,
    caller: String,
) -> Result<Ended> {
    let run = contexts.run;
    let mut attendance = runner.attend(id, caller, run)?;
    let mut gathered = Gathered::new(run, config);
    let followed = follow_on(contexts, &mut job, &mut gathered, &mut attendance).await;
    let exit = match followed {
        Ok(Some(exit)) => exit,
        Ok(None) => return cancelled(&job, attendance).await,
        Err(error) => {
            // A failed call must not leave its command behind.
            job.end().await.map_err(unreachable)?;
            attendance.over(true);
            return Err(error);
        }
    };
    if let How::Code(code) = &exit.how {
        run.exit_code(*code);
    }
    let ended = match &exit.how {
        How::Lost => Ended::Lost("its supervisor or its machine was stopped".to_owned()),
        How::Orphaned => Ended::Lost("its server was unreachable for too long".to_owned()),
        _ => Ended::Result(gathered.result(run, &exit).await),
    };
    attendance.over(matches!(ended, Ended::Result(_)));
    Ok(ended)
}

/// Follows a command to its exit. Returns `None` if the call is cancelled.
async fn follow_on(
    contexts: Contexts<'_>,
    job: &mut Job,
    gathered: &mut Gathered<'_>,
    attendance: &mut Attendance,
) -> Result<Option<Exit>> {
    let run = contexts.run;
    loop {
        attendance.label(job);
        let event = tokio::select! {
            event = job.next() => event.map_err(unreachable)?,
            () = run.cancelled() => return Ok(None),
            // The call may have become a task, whose client can read the lines held so far.
            () = tokio::time::sleep(LOOK), if !attendance.is_labelled() => {
                gathered.let_go(run).await?;
                continue;
            }
        };
        match event {
            Event::Exit(exit) => return Ok(Some(exit)),
            Event::Step { number, request } => {
                record(contexts.steps, job, number, &request).await?;
            }
            event => {
                let Some(input) = gathered.take(run, event).await? else { continue };
                match respond(contexts, job, gathered, attendance, input).await? {
                    Asked::Answered => {}
                    Asked::Over(exit) => return Ok(Some(exit)),
                    Asked::Cancelled => return Ok(None),
                }
            }
        }
    }
}

/// Outcome of an input request.
enum Asked {
    Answered,
    /// The command exited before the response.
    Over(Exit),
    Cancelled,
}

/// An input request, and the output to show above it.
struct Input {
    /// Number of the request in its job.
    number: u32,
    /// Number of requests with this key so far, including this one.
    use_of_key: u32,
    request: InputLine,
    /// Output before the request, if the client cannot read it elsewhere in time.
    printed: Option<String>,
}

/// Requests input while the command runs, and sends it the response. Further requests wait until
/// the open one is answered.
async fn respond(
    contexts: Contexts<'_>,
    job: &mut Job,
    gathered: &mut Gathered<'_>,
    attendance: &mut Attendance,
    input: Input,
) -> Result<Asked> {
    let Contexts { run, inputs, steps } = contexts;
    let mut waiting = VecDeque::from([input]);
    while let Some(Input { number, use_of_key, request, printed }) = waiting.pop_front() {
        attendance.asks(true)?;
        let line = {
            let mut put = pin!(input::request(&request, inputs, use_of_key, printed.as_deref()));
            loop {
                let event = tokio::select! {
                    biased;
                    line = put.as_mut() => break line,
                    event = job.next() => event.map_err(unreachable)?,
                    () = run.cancelled() => return Ok(Asked::Cancelled),
                };
                match event {
                    // Dropping the request withdraws it.
                    Event::Exit(exit) => return Ok(Asked::Over(exit)),
                    Event::Step { number, request } => record(steps, job, number, &request).await?,
                    event => waiting.extend(gathered.take(run, event).await?),
                }
            }
        };
        attendance.asks(false)?;
        job.respond(number, &line).await.map_err(unreachable)?;
    }
    Ok(Asked::Answered)
}

/// Records the start or the end of a step, and responds to the command.
async fn record(cx: &Durable, job: &Job, number: u32, request: &StepLine) -> Result<()> {
    let line = steps::respond(cx, request).await?;
    job.respond(number, &line).await.map_err(unreachable)
}

async fn cancelled(job: &Job, mut attendance: Attendance) -> Result<Ended> {
    job.end().await.map_err(unreachable)?;
    attendance.over(true);
    Ok(Ended::Result(Err(Error::new("cancelled; the command and its child processes were ended"))))
}

/// Output of a command so far.
struct Gathered<'c> {
    config: &'c ToolConfig,
    /// Lines held until the end, because an inline call returns a single content block.
    held: Option<Held>,
    /// Output since the last input request, for clients that can read it only above the next one.
    printed: Option<String>,
    /// Number of input requests with each key.
    uses_of_keys: HashMap<String, u32>,
    decoder: Decoder,
    /// Whether the last piece ended inside a line.
    in_line: bool,
}

impl<'c> Gathered<'c> {
    fn new(run: &Durable, config: &'c ToolConfig) -> Self {
        let whole = matches!(config.output, Output::Json { .. });
        let held = (whole || run.task_id().is_none()).then(Held::default);
        let printed = config.asks.then(String::new);
        let (uses_of_keys, decoder) = (HashMap::new(), Decoder::default());
        Self { config, held, printed, uses_of_keys, decoder, in_line: false }
    }

    /// Returns whether lines are held that a task could emit.
    fn holds_back(&self) -> bool {
        self.held.is_some() && matches!(self.config.output, Output::Text)
    }

    /// Handles an event of a command. Returns its input request, if the event is one.
    async fn take(&mut self, run: &Durable, event: Event) -> Result<Option<Input>> {
        match event {
            Event::Status(status) => run.set_status_message(one_line(&status)),
            Event::Progress(far) => run.progress(far.progress, far.total, far.message),
            Event::Warning(warning) => {
                tracing::error!(tool = self.config.name, %warning, "output of a command was lost");
                run.set_status_message(format!("output was lost: {}", one_line(&warning)));
            }
            Event::Gap { bytes, lines } => {
                self.end_line(run).await?;
                if matches!(self.config.output, Output::Text) {
                    self.line(run, self.gap(bytes, lines), true).await?;
                }
            }
            Event::Line(line) => {
                let text = self.decoder.decode(line.bytes, line.ended);
                self.line(run, text, line.ended).await?;
            }
            Event::Input { number, request } => {
                self.let_go(run).await?;
                let is_read = self.held.is_none() && reads_segments(run);
                let printed = self.printed.replace(String::new()).filter(|_| !is_read);
                let uses = self.uses_of_keys.entry(request.key.clone()).or_default();
                *uses += 1;
                return Ok(Some(Input { number, use_of_key: *uses, request, printed }));
            }
            // Handled before.
            Event::Exit(_) | Event::Step { .. } => {}
        }
        Ok(None)
    }

    async fn line(&mut self, run: &Durable, text: String, ended: bool) -> Result<()> {
        if let Some(printed) = &mut self.printed {
            printed.push_str(&text);
            if ended {
                printed.push('\n');
            }
            input::shorten(printed);
        }
        self.in_line = !ended;
        match &mut self.held {
            None => run.emit(text).await,
            Some(held) => {
                held.push(&text, ended);
                self.let_go(run).await
            }
        }
    }

    /// Ends an incomplete line.
    async fn end_line(&mut self, run: &Durable) -> Result<()> {
        let rest = self.decoder.finish();
        if !rest.is_empty() {
            return self.line(run, rest, true).await;
        }
        if std::mem::take(&mut self.in_line)
            && let Some(held) = &mut self.held
        {
            held.end_line();
        }
        Ok(())
    }

    /// Emits the held lines once the call is a task. A rerun emits the same segments in the same
    /// order.
    async fn let_go(&mut self, run: &Durable) -> Result<()> {
        if !self.holds_back() || run.task_id().is_none() {
            return Ok(());
        }
        for piece in self.held.take().iter().flat_map(Held::pieces) {
            run.emit(piece).await?;
        }
        Ok(())
    }

    /// Builds the result of the call.
    async fn result(mut self, run: &Durable, exit: &Exit) -> Result<CallToolResult> {
        self.end_line(run).await?;
        self.let_go(run).await?;
        let held = self.held.take().unwrap_or_default().text;
        let lost = exit.output_lost.as_ref().map(|lost| format!("output is incomplete: {lost}"));
        let failure = self.failure(exit);
        if let (None, None, Output::Json { .. }) = (&failure, &lost, &self.config.output) {
            if exit.bytes_dropped > 0 {
                let cut = self.gap(exit.bytes_dropped, exit.lines_dropped);
                return Err(Error::new(format!("the JSON output is incomplete: {cut}")));
            }
            return json(&held);
        }
        let mut result = CallToolResult::default();
        let held = held.strip_suffix('\n').unwrap_or(&held);
        if !held.is_empty() {
            result.content.push(ContentBlock::text(held));
        }
        let notices = [&lost, &exit.warning].into_iter().flatten();
        result.content.extend(notices.map(|notice| ContentBlock::text(format!("[{notice}]"))));
        // Callers must not rely on a result with missing output.
        result.is_error = (failure.is_some() || lost.is_some()).then_some(true);
        result.content.extend(failure.map(ContentBlock::text));
        Ok(result)
    }

    /// Returns the text that replaces dropped output.
    fn gap(&self, bytes: u64, lines: u64) -> String {
        format!(
            "[output cut: {bytes} bytes in {lines} lines dropped; the tool keeps {} bytes (`max_output`) and {} lines (`max_lines`)]",
            self.config.max_output, self.config.max_lines
        )
    }

    /// Describes the failure of the command, with its last output on standard error.
    fn failure(&self, exit: &Exit) -> Option<String> {
        let what = match &exit.how {
            How::Code(code) if self.config.success_codes.contains(code) => return None,
            How::Code(code) => format!("the command exited with code {code}"),
            How::Signal(signal) => format!("signal {signal} ended the command"),
            How::TimedOut => {
                format!(
                    "the command exceeded its timeout of {} and was ended",
                    in_words(self.config.policy.timeout)
                )
            }
            How::Ended => "the command was ended".to_owned(),
            How::NotStarted(why) => format!("cannot start the command: {why}"),
            How::Abandoned => {
                "the command waited for input, got no response, and was ended".to_owned()
            }
            How::Orphaned | How::Lost => "the command was interrupted".to_owned(),
        };
        let said = exit.stderr_tail.trim();
        Some(if said.is_empty() {
            what
        } else {
            format!("{what}; its last output on standard error:\n{said}")
        })
    }
}

/// Returns whether the client reads partial results of the task before it ends.
fn reads_segments(run: &Durable) -> bool {
    const PARTIALS: &str = "dev.outlive/task-partials";
    let declared = run.client_capabilities().extensions;
    run.task_id().is_some() && declared.is_some_and(|declared| declared.contains_key(PARTIALS))
}

/// Output that is not emitted yet.
#[derive(Debug, Default)]
struct Held {
    text: String,
    /// End of each piece in `text`, including its newline.
    ends: Vec<usize>,
}

impl Held {
    fn push(&mut self, piece: &str, ended: bool) {
        self.text.push_str(piece);
        if ended {
            self.text.push('\n');
        }
        self.ends.push(self.text.len());
    }

    fn end_line(&mut self) {
        self.text.push('\n');
        if let Some(last) = self.ends.last_mut() {
            *last = self.text.len();
        }
    }

    fn pieces(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let piece = |(start, end): (usize, &usize)| &self.text[start..*end];
        starts.zip(&self.ends).map(piece).map(|piece| piece.strip_suffix('\n').unwrap_or(piece))
    }
}

fn json(printed: &str) -> Result<CallToolResult> {
    let json: Box<RawValue> = serde_json::from_str(printed).map_err(|error| {
        let begins: String = printed.chars().take(80).collect();
        Error::new(format!(
            "the command must print only JSON: {error}; its output starts with: {begins}"
        ))
    })?;
    Ok(CallToolResult::text(json.get()).with_structured_content(json))
}
