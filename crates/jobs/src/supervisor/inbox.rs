//! Handles messages of a command, and responses to its input requests.

use std::{io, time::Duration};

use tokio::time::Instant;

use super::{
    super::{
        control::{InputLine, Message, Piece, Record, Rejected, RejectedKind, StepLine, What},
        files::now,
        spec::{How, WaitsFor},
        wire::Taken,
    },
    run::Watch,
};

/// Maximum number of reads from standard output before a request: enough for the largest pipe, and
/// finite, because a process may print without end.
const MAX_READS: usize = 64;
/// Minimum and maximum interval between two checks whether a call follows a waiting command.
const LOOK_FOR_FOLLOWERS: (Duration, Duration) =
    (Duration::from_millis(50), Duration::from_secs(5));

impl Watch<'_> {
    /// Handles standard output that contains messages.
    pub(super) fn take_pieces(&mut self, pieces: Vec<Piece>) {
        for piece in pieces {
            match piece {
                Piece::Output(bytes) => self.output.push(&bytes),
                Piece::Message(message) => self.take(message),
            }
        }
    }

    /// Handles messages from descriptor 3.
    pub(super) fn take_messages(&mut self, messages: Vec<Result<Message, Rejected>>) {
        let is_request = |message: &Result<Message, _>| {
            matches!(message, Ok(Message::Input(_) | Message::Step(_)))
        };
        if messages.iter().any(is_request) {
            for _ in 0..MAX_READS {
                let Some(chunk) = self.stdout.read_at_once() else { break };
                self.output.push(chunk);
            }
        }
        for message in messages {
            self.take(message);
        }
        self.notify();
    }

    /// Reads the last messages of a command, which has exited and cannot read a response.
    pub(super) fn take_last_messages(&mut self) {
        if let Some(lines) = &mut self.messages.stdout {
            self.output.push(&lines.finish());
        }
        let mut last = Vec::new();
        for _ in 0..MAX_READS {
            let Some(chunk) = self.messages.requests.read_at_once() else { break };
            last.extend(self.messages.lines.push(chunk));
        }
        for message in last {
            if matches!(message, Ok(Message::Progress(_))) {
                self.take(message);
            }
        }
    }

    fn take(&mut self, message: Result<Message, Rejected>) {
        let taken = match message {
            Ok(Message::Progress(progress)) => {
                self.news.send_modify(|news| news.progress = Some(progress));
                Ok(())
            }
            Ok(Message::Input(request)) => self.request_input(request),
            Ok(Message::Step(request)) => self.record_step(request),
            Err(rejected) => Err(rejected),
        };
        if let Err(rejected) = taken {
            self.write_response(&rejected.line());
        }
    }

    fn request_input(&mut self, request: InputLine) -> Result<(), Rejected> {
        let key = request.key.clone();
        if !self.messages.may_request {
            let message =
                "this tool is not interactive; set `interactive = true` for it".to_owned();
            return Err(Rejected::new(Some(&key), RejectedKind::NotInteractive, message));
        }
        let number = self.messages.inputs.admit(&key)?;
        let waits_for = WaitsFor { since: now(), message: request.message.clone() };
        self.output.flush(&mut self.messages.events);
        self.open_request(key, What::Input { number, request })?;
        // Recorded for processes that list jobs. A failure is ignored.
        let _ = self.folder.set_waits_for(Some(&waits_for));
        Ok(())
    }

    /// Passes the start or the end of a step to the server, which records it and responds.
    fn record_step(&mut self, request: StepLine) -> Result<(), Rejected> {
        let key = request.key().to_owned();
        if !self.messages.may_record {
            let message = "this tool has no steps; set `steps = true` for it".to_owned();
            return Err(Rejected::new(Some(&key), RejectedKind::NoSteps, message));
        }
        let number = self.messages.inputs.admit(&key)?;
        self.open_request(key, What::Step { number, request })
    }

    /// Records a request, which stays open until a server responds.
    fn open_request(&mut self, key: String, what: What) -> Result<(), Rejected> {
        let record = Record { at: self.output.written(), what };
        self.messages.events.append(&record).map_err(|error| {
            let kind = match error.kind() {
                io::ErrorKind::FileTooLarge => RejectedKind::TooLarge,
                _ => RejectedKind::Unavailable,
            };
            Rejected::new(Some(&key), kind, error.to_string())
        })?;
        self.messages.inputs.open(key);
        // The command waits for a server, which may be gone.
        self.clock.stop();
        self.messages.look_at = self.look_for_followers_at();
        Ok(())
    }

    /// Handles the response to an input request.
    pub(super) fn respond(&mut self, number: u32, line: &str) -> Taken {
        match self.messages.inputs.settle(number) {
            Ok(true) => self.write_response(line),
            Ok(false) => {}
            Err(why) => return Taken::No(why),
        }
        if !self.messages.inputs.is_open() {
            self.clock.go_on();
            let _ = self.folder.set_waits_for(None);
        }
        Taken::Yes
    }

    fn write_response(&mut self, line: &str) {
        if self.messages.stdout.is_some() {
            self.stdin.push(line);
        } else {
            self.messages.responses.push(line);
        }
    }

    /// Notifies the watchers of the job that there is something to read.
    pub(super) fn notify(&self) {
        let (out, events) = (self.output.written(), self.messages.events.written());
        let warning = self.output.warning();
        self.news.send_if_modified(|news| {
            let is_new =
                (news.out, news.events) != (out, events) || news.warning.as_deref() != warning;
            (news.out, news.events) = (out, events);
            if is_new && warning.is_some() {
                news.warning = warning.map(str::to_owned);
            }
            is_new
        });
    }

    fn look_for_followers_at(&self) -> Option<Instant> {
        let (often, seldom) = LOOK_FOR_FOLLOWERS;
        let every = (self.spec.abandon_timeout? / 4).clamp(often, seldom);
        Some(Instant::now() + every)
    }

    /// Ends a command that waits for input to which no client can respond: no server follows the
    /// job, and no task owns it.
    pub(super) fn look_for_followers(&mut self) {
        self.messages.look_at = None;
        if !self.messages.inputs.is_open() {
            self.messages.alone_since = None;
            return;
        }
        self.messages.look_at = self.look_for_followers_at();
        // If the note cannot be read, a task may own the job.
        let is_task = !matches!(self.folder.note(), Ok(None));
        if self.followers.any() || is_task {
            self.messages.alone_since = None;
            return;
        }
        let since = *self.messages.alone_since.get_or_insert_with(Instant::now);
        if self.spec.abandon_timeout.is_some_and(|timeout| since.elapsed() >= timeout) {
            self.end(How::Abandoned);
        }
    }
}
