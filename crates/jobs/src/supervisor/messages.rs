//! Supervisor side of the control channel of a command.
//!
//! An input request is recorded after all output that the command printed before it. The supervisor
//! therefore reads the pipe of standard output first. A command must flush its output before it
//! writes a request.

use std::{fs::File, io};

use tokio::{
    net::unix::pipe::{Receiver, Sender},
    time::Instant,
};

use super::super::{
    control::{Channel, ControlMode, Descriptors, Events, Nonce, Piece, RequestLines, StdoutLines},
    inputs::Inputs,
    pipes::{Reading, Writing},
    spec::JobSpec,
};

/// Messages of a command, and the state of its input requests.
#[derive(Debug)]
pub(super) struct Messages {
    pub(super) requests: Reading<Receiver>,
    pub(super) responses: Writing<Sender>,
    pub(super) lines: RequestLines,
    /// Parser of messages on standard output.
    pub(super) stdout: Option<StdoutLines>,
    pub(super) events: Events,
    pub(super) inputs: Inputs,
    pub(super) may_request: bool,
    pub(super) may_record: bool,
    /// Time of the next check whether a call follows the job, while a request is open.
    pub(super) look_at: Option<Instant>,
    /// Time since when no call follows the job.
    pub(super) alone_since: Option<Instant>,
}

impl Messages {
    /// Opens a channel. Returns the command side and the supervisor side.
    pub(super) fn open(spec: &JobSpec, events: File) -> io::Result<(Channel, Self)> {
        let mut messages = Self {
            requests: Reading::new(None),
            responses: Writing::new(None, None, true),
            lines: RequestLines::default(),
            stdout: None,
            events: Events::new(events),
            inputs: Inputs::default(),
            may_request: spec.interactive,
            may_record: spec.steps,
            look_at: None,
            alone_since: None,
        };
        let channel = match spec.control {
            ControlMode::Descriptors => {
                let (descriptors, requests, responses) = Descriptors::new()?;
                let requests = Receiver::from_owned_fd(requests.into())?;
                let responses = Sender::from_owned_fd(responses.into())?;
                messages.requests = Reading::new(Some(requests));
                messages.responses = Writing::new(Some(responses), None, true);
                Channel::Descriptors(descriptors)
            }
            ControlMode::Stdout => {
                let nonce = Nonce::random()?;
                messages.stdout = Some(StdoutLines::new(nonce.clone()));
                Channel::Stdout(nonce)
            }
        };
        Ok((channel, messages))
    }

    /// Returns whether standard input stays open for responses.
    pub(super) fn respond_on_stdin(&self) -> bool {
        self.stdout.is_some() && (self.may_request || self.may_record)
    }

    /// Separates messages from output, if both are on standard output.
    pub(super) fn split(&mut self, chunk: &[u8]) -> Option<Vec<Piece>> {
        let lines = self.stdout.as_mut()?;
        let mut pieces = lines.push(chunk);
        if chunk.is_empty() {
            pieces.push(Piece::Output(lines.finish()));
        }
        Some(pieces)
    }
}
