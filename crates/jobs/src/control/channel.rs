//! Control channel of a command: descriptor 3, or standard output with a nonce.

use std::process::Command;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    super::MAX_LINE,
    message::{Message, Rejected, RejectedKind},
};

/// Variable with the descriptor to which the command writes requests.
const REQUEST_FD: &str = "OUTLIVE_REQUEST_FD";
/// Variable with the descriptor from which the command reads responses.
const RESPONSE_FD: &str = "OUTLIVE_RESPONSE_FD";
/// Variable with the nonce of requests on standard output.
const NONCE: &str = "OUTLIVE_CONTROL_NONCE";

/// Location of the control channel of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ControlMode {
    /// Requests on descriptor 3, responses on descriptor 4.
    #[default]
    Descriptors,
    /// Requests on standard output, in lines with the nonce of the run. Responses on standard
    /// input.
    Stdout,
}

/// Command side of a control channel.
#[derive(Debug)]
pub(crate) enum Channel {
    Descriptors(Descriptors),
    Stdout(Nonce),
}

impl Channel {
    /// Passes the channel to a command before it starts.
    pub(crate) fn give_to(self, command: &mut Command) -> Result<(), String> {
        for name in [REQUEST_FD, RESPONSE_FD, NONCE] {
            command.env_remove(name);
        }
        match self {
            Self::Descriptors(descriptors) => descriptors.give_to(command),
            Self::Stdout(Nonce(nonce)) => {
                command.env(NONCE, nonce);
                Ok(())
            }
        }
    }
}

/// Command ends of the two pipes.
#[cfg(unix)]
#[derive(Debug)]
pub(crate) struct Descriptors {
    requests: std::os::fd::OwnedFd,
    responses: std::os::fd::OwnedFd,
}

#[cfg(unix)]
impl Descriptors {
    /// Creates both pipes. Returns the command ends, the reader for requests and the writer for
    /// responses.
    pub(crate) fn new() -> std::io::Result<(Self, std::io::PipeReader, std::io::PipeWriter)> {
        let (our_requests, requests) = std::io::pipe()?;
        let (responses, our_responses) = std::io::pipe()?;
        let command = Self { requests: requests.into(), responses: responses.into() };
        Ok((command, our_requests, our_responses))
    }

    fn give_to(self, command: &mut Command) -> Result<(), String> {
        use command_fds::{CommandFdExt as _, FdMapping};
        /// Descriptors after the standard streams, which shells use as `>&3` and `<&4`.
        const FDS: [(&str, i32); 2] = [(REQUEST_FD, 3), (RESPONSE_FD, 4)];
        let [(_, requests), (_, responses)] = FDS;
        command.envs(FDS.map(|(name, fd)| (name, fd.to_string())));
        let mappings = vec![
            FdMapping { parent_fd: self.requests, child_fd: requests },
            FdMapping { parent_fd: self.responses, child_fd: responses },
        ];
        command.fd_mappings(mappings).map(drop).map_err(|error| error.to_string())
    }
}

/// Stub: other systems cannot pass descriptors.
#[cfg(not(unix))]
#[derive(Debug)]
pub(crate) enum Descriptors {}

#[cfg(not(unix))]
impl Descriptors {
    fn give_to(self, _: &mut Command) -> Result<(), String> {
        match self {}
    }
}

/// 128 random bits in hexadecimal, known only to the command of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Nonce(String);

impl Nonce {
    pub(crate) fn random() -> std::io::Result<Self> {
        let mut bytes = [0_u8; 16];
        getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// Returns the hexadecimal digits.
    pub(crate) fn into_text(self) -> String {
        self.0
    }

    #[cfg(test)]
    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

/// Splits the output on descriptor 3 into messages.
#[derive(Debug, Default)]
pub(crate) struct RequestLines {
    line: Vec<u8>,
    is_too_long: bool,
}

impl RequestLines {
    /// Returns the messages that this chunk completes, in order.
    pub(crate) fn push(&mut self, chunk: &[u8]) -> Vec<Result<Message, Rejected>> {
        let mut messages = Vec::new();
        for part in chunk.split_inclusive(|byte| *byte == b'\n') {
            if self.line.len() + part.len() > MAX_LINE {
                self.is_too_long = true;
                self.line.clear();
            }
            if !self.is_too_long {
                self.line.extend_from_slice(part);
            }
            if !part.ends_with(b"\n") {
                continue;
            }
            let line = std::mem::take(&mut self.line);
            if std::mem::take(&mut self.is_too_long) {
                messages.push(Err(too_long()));
            } else if !line.trim_ascii().is_empty() {
                messages.push(Message::read(&line));
            }
        }
        messages
    }
}

fn too_long() -> Rejected {
    let message = format!("a control message has at most {MAX_LINE} bytes");
    Rejected::new(None, RejectedKind::TooLarge, message)
}

/// A part of standard output.
#[derive(Debug, PartialEq)]
pub(crate) enum Piece {
    Output(Vec<u8>),
    Message(Result<Message, Rejected>),
}

/// Separates messages on standard output from other output.
///
/// A message is a line that starts with `{`, is a JSON object, and has a member `nonce` with the
/// nonce of the run. Every other line is output.
#[derive(Debug)]
pub(crate) struct StdoutLines {
    nonce: Nonce,
    /// Current line, while it may still be a message.
    held: Vec<u8>,
    /// Whether the next byte starts a line.
    at_start: bool,
}

impl StdoutLines {
    pub(crate) fn new(nonce: Nonce) -> Self {
        Self { nonce, held: Vec::new(), at_start: true }
    }

    pub(crate) fn push(&mut self, chunk: &[u8]) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for part in chunk.split_inclusive(|byte| *byte == b'\n') {
            let may_be_message = !self.held.is_empty() || self.at_start && part.starts_with(b"{");
            self.at_start = part.ends_with(b"\n");
            if !may_be_message {
                add(&mut pieces, part);
                continue;
            }
            self.held.extend_from_slice(part);
            if self.at_start {
                let line = std::mem::take(&mut self.held);
                match self.message(&line) {
                    Some(message) => pieces.push(Piece::Message(message)),
                    None => add(&mut pieces, &line),
                }
            } else if self.held.len() > MAX_LINE {
                add(&mut pieces, &std::mem::take(&mut self.held));
            }
        }
        pieces
    }

    /// Returns the incomplete line at the end of the output.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }

    fn message(&self, line: &[u8]) -> Option<Result<Message, Rejected>> {
        if memchr::memmem::find(line, self.nonce.0.as_bytes()).is_none() || line.len() > MAX_LINE {
            return None;
        }
        let mut object: Map<String, Value> = serde_json::from_slice(line).ok()?;
        let nonce = object.remove("nonce")?;
        (nonce == Value::String(self.nonce.0.clone())).then(|| Message::from_object(object))
    }
}

fn add(pieces: &mut Vec<Piece>, bytes: &[u8]) {
    match pieces.last_mut() {
        Some(Piece::Output(output)) => output.extend_from_slice(bytes),
        _ => pieces.push(Piece::Output(bytes.to_vec())),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "all of this is tests")]

    use proptest::{collection::vec, prelude::*};

    use super::{MAX_LINE, Nonce, Piece, RequestLines, StdoutLines};

    fn split(nonce: &Nonce, chunks: &[&[u8]]) -> (Vec<u8>, usize) {
        let mut lines = StdoutLines::new(nonce.clone());
        let mut pieces: Vec<Piece> = chunks.iter().flat_map(|chunk| lines.push(chunk)).collect();
        pieces.push(Piece::Output(lines.finish()));
        let (mut output, mut messages) = (Vec::new(), 0);
        for piece in pieces {
            match piece {
                Piece::Output(bytes) => output.extend(bytes),
                Piece::Message(message) => messages += usize::from(message.is_ok()),
            }
        }
        (output, messages)
    }

    fn line(nonce: &Nonce) -> impl Strategy<Value = (String, bool)> + use<> {
        let request =
            |nonce: &str| format!("{{\"nonce\":\"{nonce}\",\"input\":\"a\",\"message\":\"b\"}}");
        let (real, nonce) = (request(nonce.text()), nonce.text().to_owned());
        prop_oneof![
            2 => Just((real.clone(), true)),
            1 => "[0-9a-f]{32}".prop_map(move |other| (request(&other), false)),
            1 => Just((format!(" {real}"), false)),
            1 => Just((format!("x{real}"), false)),
            1 => Just((format!("{{\"text\":\"{nonce}\"}}"), false)),
            1 => Just((format!("{{\"nonce\":[\"{nonce}\"],\"input\":\"a\",\"message\":\"b\"}}"), false)),
            1 => Just((format!("{{\"x\":{real}}}"), false)),
            1 => Just(("{".repeat(MAX_LINE + 3), false)),
            2 => "[{}\" -~]{0,12}".prop_map(|text| (text, false)),
        ]
    }

    proptest! {
        #[test]
        fn stdout_lines_without_the_nonce_are_output_for_any_chunks(
            (nonce, lines) in Just(Nonce::random().unwrap()).prop_flat_map(|nonce| {
                let lines = vec(line(&nonce), 0..6);
                (Just(nonce), lines)
            }),
            cuts in vec(any::<prop::sample::Index>(), 0..8),
        ) {
            let whole: String = lines.iter().map(|(line, _)| format!("{line}\n")).collect();
            let whole = whole.as_bytes();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(whole.len() + 1)).collect();
            cuts.extend([0, whole.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &whole[pair[0]..pair[1]]).collect();
            let (output, messages) = split(&nonce, &chunks);
            let expected: String =
                lines.iter().filter(|(_, is)| !is).map(|(line, _)| format!("{line}\n")).collect();
            prop_assert_eq!(String::from_utf8(output).unwrap(), expected);
            prop_assert_eq!(messages, lines.iter().filter(|(_, is)| *is).count());
        }
    }

    #[test]
    fn request_line_over_the_limit_is_rejected_and_skipped() {
        let mut lines = RequestLines::default();
        assert!(lines.push(&vec![b'x'; MAX_LINE]).is_empty());
        let messages = lines.push(b"xx\n\n{\"progress\": 1}\n");
        assert_eq!(messages.len(), 2, "{messages:?}");
        assert!(messages[0].as_ref().unwrap_err().message.contains("at most"));
        assert!(messages[1].is_ok());
    }

    #[test]
    fn nonce_has_128_random_bits() {
        let (one, two) = (Nonce::random().unwrap(), Nonce::random().unwrap());
        assert_eq!((one.text().len(), one == two), (32, false));
    }
}
