//! The run of a command that is a child of the server.

use std::{
    fs::{self, File},
    future::pending,
    io::{self, Write},
    path::Path,
    process::ExitStatus,
    time::Duration,
};

use tokio::{
    process::{Child, Command},
    sync::{mpsc, oneshot, watch},
    time::{Instant, sleep_until},
};

use super::super::{
    Exit, How, InputLine, JobSpec, Result, StepLine, WaitsFor,
    clock::Clock,
    command::{explain, prepare},
    control::{
        Channel, Events, Message, Nonce, Piece, Progress, Record, Rejected, RejectedKind,
        StdoutLines, What,
    },
    files::{now, random_name},
    inputs::Inputs,
    output::{Output, Tail},
    pipes::{Stderr, Stdin, Stdout, Writing},
};

pub(super) const OUT: &str = "out";
pub(super) const EVENTS: &str = "events";
pub(super) const EXIT: &str = "exit.json";

/// Capacity of the request queue.
const MAX_REQUESTS: usize = 16;
/// Time that other processes may keep the output open after the command has exited.
const LINGER: Duration = Duration::from_secs(1);

/// Current state of a command, for its readers.
#[derive(Clone, Debug, Default)]
pub(super) struct News {
    written: u64,
    recorded: u64,
    pub(super) status: Option<String>,
    pub(super) progress: Option<Progress>,
    pub(super) waits_for: Option<WaitsFor>,
    /// Whether the exit is recorded.
    pub(super) over: bool,
}

/// Request to a running command.
#[derive(Debug)]
pub(super) enum Request {
    End,
    Respond { number: u32, line: String, taken: oneshot::Sender<Result<(), String>> },
}

/// Starts a command in a separate task. If the runtime ends, the task ends and kills the command.
pub(super) fn start(
    folder: &Path,
    spec: JobSpec,
) -> io::Result<(watch::Receiver<News>, mpsc::Sender<Request>)> {
    let append = |name| File::options().append(true).create(true).open(folder.join(name));
    let output = Output::new(append(OUT)?, &spec);
    let tail = Tail::new(append("err")?);
    let events = Events::new(append(EVENTS)?);
    // Other systems cannot pass descriptors, so the channel always uses the standard streams.
    let nonce = Nonce::random()?;
    let (news, hear) = watch::channel(News::default());
    let (ask, requests) = mpsc::channel(MAX_REQUESTS);
    let folder = folder.to_owned();
    let id = folder.file_name().unwrap_or_default().to_string_lossy();
    let mark = format!("{id}.{}", random_name());
    tokio::spawn(async move {
        let exit = match spawn(&spec, &mark, nonce.clone()) {
            Ok(child) => {
                let files = Files { output, tail, events };
                Watch::new(spec, child, files, nonce, &news).until_over(requests).await
            }
            Err(why) => Exit::silent(How::NotStarted(why), now()),
        };
        // A failure is ignored: without the exit file, readers report the job as lost.
        let _ = write_exit(&folder, &exit);
        news.send_modify(|news| news.over = true);
    });
    Ok((hear, ask))
}

/// Writes the exit of a job atomically.
pub(super) fn write_exit(folder: &Path, exit: &Exit) -> io::Result<()> {
    let new = folder.join(format!("{EXIT}.{}", random_name()));
    let mut file = File::create_new(&new)?;
    file.write_all(&serde_json::to_vec(exit)?)?;
    file.sync_all()?;
    fs::rename(new, folder.join(EXIT))
}

fn spawn(spec: &JobSpec, mark: &str, nonce: Nonce) -> Result<Child, String> {
    let mut command = Command::from(prepare(spec, mark, Channel::Stdout(nonce))?);
    command.kill_on_drop(true).spawn().map_err(|error| explain(spec.program(), &error))
}

/// Files that store the output of a command.
struct Files {
    output: Output,
    tail: Tail,
    events: Events,
}

/// A running command.
struct Watch<'a> {
    child: Child,
    stdout: Stdout,
    stderr: Stderr,
    stdin: Stdin,
    lines: StdoutLines,
    files: Files,
    news: &'a watch::Sender<News>,
    clock: Clock,
    inputs: Inputs,
    may_request: bool,
    may_record: bool,
    /// Reason why the command was ended.
    ended_by: Option<How>,
}

impl<'a> Watch<'a> {
    fn new(
        spec: JobSpec,
        mut child: Child,
        files: Files,
        nonce: Nonce,
        news: &'a watch::Sender<News>,
    ) -> Self {
        let responds = spec.responds();
        Self {
            stdout: Stdout::new(child.stdout.take()),
            stderr: Stderr::new(child.stderr.take()),
            may_record: spec.steps,
            stdin: Writing::new(child.stdin.take(), spec.stdin, responds),
            child,
            lines: StdoutLines::new(nonce),
            files,
            news,
            clock: Clock::start(spec.timeout),
            inputs: Inputs::default(),
            may_request: spec.interactive,
            ended_by: None,
        }
    }

    async fn until_over(mut self, mut requests: mpsc::Receiver<Request>) -> Exit {
        let mut ending: Option<How> = None;
        let mut linger: Option<Instant> = None;
        while ending.is_none() || !(self.stdout.is_closed() && self.stderr.is_closed()) {
            let deadline = self.clock.deadline();
            let runs = ending.is_none() && self.ended_by.is_none();
            tokio::select! {
                chunk = self.stdout.read() => {
                    let pieces = self.lines.push(chunk);
                    self.printed(pieces);
                }
                chunk = self.stderr.read() => {
                    let status = self.files.tail.push(chunk);
                    if status.is_some() {
                        self.news.send_modify(|news| news.status = status);
                    }
                }
                () = self.stdin.write() => {}
                status = self.child.wait(), if ending.is_none() => {
                    ending = Some(status.map_or(How::Lost, how));
                    linger = Some(Instant::now() + LINGER);
                }
                Some(request) = requests.recv() => match request {
                    Request::End => if runs { self.end(How::Ended) },
                    Request::Respond { number, line, taken } => {
                        // A failed send is ignored, because the requesting reader may be gone.
                        let _ = taken.send(self.respond(number, &line));
                    }
                },
                () = until(deadline), if runs => self.end(How::TimedOut),
                () = until(linger) => break,
            }
        }
        self.files.output.push(&self.lines.finish());
        let (dropped, output_lost) = self.files.output.close(&mut self.files.events);
        Exit {
            how: self.ended_by.or(ending).unwrap_or(How::Lost),
            stderr_tail: self.files.tail.text(),
            progress: self.news.borrow().progress.clone(),
            bytes_dropped: dropped.bytes,
            lines_dropped: dropped.lines,
            output_lost,
            warning: None,
            ended_at: now(),
        }
    }

    fn printed(&mut self, pieces: Vec<Piece>) {
        for piece in pieces {
            let taken = match piece {
                Piece::Output(bytes) => {
                    self.files.output.push(&bytes);
                    continue;
                }
                Piece::Message(Ok(Message::Progress(progress))) => {
                    self.news.send_modify(|news| news.progress = Some(progress));
                    continue;
                }
                Piece::Message(Ok(Message::Input(request))) => self.request_input(request),
                Piece::Message(Ok(Message::Step(request))) => self.record_step(request),
                Piece::Message(Err(rejected)) => Err(rejected),
            };
            if let Err(rejected) = taken {
                self.stdin.push(&rejected.line());
            }
        }
        let (written, recorded) = (self.files.output.written(), self.files.events.written());
        self.news.send_if_modified(|news| {
            let is_new = (news.written, news.recorded) != (written, recorded);
            (news.written, news.recorded) = (written, recorded);
            is_new
        });
    }

    fn request_input(&mut self, request: InputLine) -> Result<(), Rejected> {
        let key = request.key.clone();
        if !self.may_request {
            let message =
                "this tool is not interactive; set `interactive = true` for it".to_owned();
            return Err(Rejected::new(Some(&key), RejectedKind::NotInteractive, message));
        }
        let number = self.inputs.admit(&key)?;
        let waits_for = WaitsFor { since: now(), message: request.message.clone() };
        let Files { output, events, .. } = &mut self.files;
        output.flush(events);
        self.open_request(key, What::Input { number, request })?;
        self.news.send_modify(|news| news.waits_for = Some(waits_for));
        Ok(())
    }

    /// Passes the start or the end of a step to the reader, which records it and responds.
    fn record_step(&mut self, request: StepLine) -> Result<(), Rejected> {
        let key = request.key().to_owned();
        if !self.may_record {
            let message = "this tool has no steps; set `steps = true` for it".to_owned();
            return Err(Rejected::new(Some(&key), RejectedKind::NoSteps, message));
        }
        let number = self.inputs.admit(&key)?;
        self.open_request(key, What::Step { number, request })
    }

    /// Records a request, which stays open until the reader responds.
    fn open_request(&mut self, key: String, what: What) -> Result<(), Rejected> {
        let Files { output, events, .. } = &mut self.files;
        let record = Record { at: output.written(), what };
        events.append(&record).map_err(|error| {
            Rejected::new(Some(&key), RejectedKind::Unavailable, error.to_string())
        })?;
        self.inputs.open(key);
        self.clock.stop();
        Ok(())
    }

    fn respond(&mut self, number: u32, line: &str) -> Result<(), String> {
        if self.inputs.settle(number)? {
            self.stdin.push(line);
        }
        if !self.inputs.is_open() {
            self.clock.go_on();
            self.news.send_modify(|news| news.waits_for = None);
        }
        Ok(())
    }

    /// Kills the command. No request to exit is available on all systems.
    fn end(&mut self, why: How) {
        self.ended_by = Some(why);
        #[cfg(windows)]
        if let Some(pid) = self.child.id() {
            // `taskkill` also kills the children of the command.
            let pid = pid.to_string();
            let tree = ["/T", "/F", "/PID", &pid];
            if std::process::Command::new("taskkill")
                .args(tree)
                .status()
                .is_ok_and(|end| end.success())
            {
                return;
            }
        }
        let _ = self.child.start_kill();
    }
}

fn how(status: ExitStatus) -> How {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return How::Signal(signal);
    }
    status.code().map_or(How::Lost, How::Code)
}

/// Waits until `time`, or forever if it is `None`.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => pending().await,
    }
}
