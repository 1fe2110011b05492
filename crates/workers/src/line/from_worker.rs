//! Messages of a tool worker.

use std::borrow::Cow;

use outlive::wire::{LoggingLevel, RawJson};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// A line of a tool worker with the nonce.
#[derive(Debug)]
pub(crate) enum WorkerMessage {
    /// The value of `hello`.
    Hello(RawJson),
    /// The value of `tools`.
    Tools(Vec<RawJson>),
    Pong,
    Run(RunMessage),
    /// A message that this server does not know.
    Unknown,
    /// An invalid message of a call or cleanup, and the reason.
    Invalid {
        number: u64,
        reason: String,
    },
}

/// A message of one call or cleanup.
#[derive(Debug)]
pub(crate) struct RunMessage {
    pub(crate) number: u64,
    pub(crate) content: RunContent,
}

/// Content of a message of one call or cleanup.
#[derive(Debug)]
pub(crate) enum RunContent {
    Step {
        key: String,
        once: bool,
    },
    Done {
        key: String,
        value: RawJson,
        is_secret: bool,
    },
    Failed {
        key: String,
        error: String,
        is_permanent: bool,
    },
    Replayed(Vec<String>),
    Input(Box<InputMessage>),
    ExternalEvent {
        key: String,
        timeout_ms: Option<u64>,
    },
    Sleep {
        key: String,
        ms: u64,
    },
    Withdraw(String),
    Emit {
        block: RawJson,
        scope: String,
    },
    Progress {
        done: f64,
        total: Option<f64>,
        message: String,
    },
    StatusMessage(String),
    Log {
        level: LoggingLevel,
        data: RawJson,
    },
    /// A last line.
    End(RunEnd),
}

/// Last line of a call or cleanup.
#[derive(Debug)]
pub(crate) enum RunEnd {
    Return(RawJson),
    Result(RawJson),
    Error(RunError),
    Incompatible {
        key: String,
        reason: String,
    },
    Dropped,
    /// The cleanup is complete.
    CleanedUp,
}

/// Failure of a function.
#[derive(Debug)]
pub(crate) struct RunError {
    pub(crate) error: String,
    pub(crate) kind: Option<String>,
    pub(crate) traceback: Option<String>,
    /// Key whose rejection made the function fail.
    pub(crate) rejected: Option<String>,
}

/// An input request.
#[derive(Debug)]
pub(crate) struct InputMessage {
    pub(crate) key: String,
    pub(crate) message: String,
    pub(crate) fields: Option<RawJson>,
    pub(crate) required: Option<Vec<String>>,
    pub(crate) url: Option<String>,
    pub(crate) sample: Option<RawJson>,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) audience: Option<RawJson>,
}

/// A line with all members of all messages.
#[derive(Deserialize)]
struct Members<'a> {
    #[serde(borrow)]
    nonce: Option<Cow<'a, str>>,
    call: Option<u64>,
    cleanup: Option<u64>,
    #[serde(borrow)]
    hello: Option<&'a RawValue>,
    #[serde(borrow)]
    tools: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default, deserialize_with = "present")]
    pong: Option<&'a RawValue>,
    step: Option<String>,
    #[serde(default)]
    once: bool,
    /// A key, or `true` of a cleanup.
    #[serde(borrow, default, deserialize_with = "present")]
    done: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    value: Option<&'a RawValue>,
    #[serde(default)]
    secret: bool,
    failed: Option<String>,
    error: Option<String>,
    kind: Option<String>,
    #[serde(default)]
    permanent: bool,
    traceback: Option<String>,
    rejected: Option<String>,
    replayed: Option<Vec<String>>,
    input: Option<String>,
    message: Option<String>,
    #[serde(borrow)]
    fields: Option<&'a RawValue>,
    required: Option<Vec<String>>,
    url: Option<String>,
    #[serde(borrow)]
    sample: Option<&'a RawValue>,
    timeout_ms: Option<u64>,
    #[serde(borrow)]
    audience: Option<&'a RawValue>,
    external_event: Option<String>,
    sleep: Option<String>,
    ms: Option<u64>,
    withdraw: Option<String>,
    #[serde(borrow)]
    emit: Option<&'a RawValue>,
    #[serde(rename = "in")]
    scope: Option<String>,
    progress: Option<f64>,
    total: Option<f64>,
    status_message: Option<String>,
    log: Option<LoggingLevel>,
    #[serde(borrow, default, deserialize_with = "present")]
    data: Option<&'a RawValue>,
    #[serde(borrow, rename = "return", default, deserialize_with = "present")]
    returned: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    incompatible: Option<String>,
    #[serde(default)]
    dropped: bool,
}

/// Reads a member whose value may be `null`.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl WorkerMessage {
    /// Reads a line. Returns `None` for a line without the nonce, which is output.
    pub(crate) fn read(line: &[u8], nonce: &str) -> Option<Self> {
        if !line.starts_with(b"{") || memchr::memmem::find(line, nonce.as_bytes()).is_none() {
            return None;
        }
        let line = std::str::from_utf8(line).ok()?;
        let members: Members<'_> = match serde_json::from_str(line) {
            Ok(members) => members,
            Err(error) => return invalid(line, nonce, &error),
        };
        (members.nonce.as_deref() == Some(nonce)).then(|| members.into_message())
    }
}

/// Returns the message of a line that has a call but is invalid, such as a key that is a number.
fn invalid(line: &str, nonce: &str, error: &serde_json::Error) -> Option<WorkerMessage> {
    #[derive(Deserialize)]
    struct Number<'a> {
        #[serde(borrow)]
        nonce: Option<Cow<'a, str>>,
        call: Option<u64>,
        cleanup: Option<u64>,
    }
    let members: Number<'_> = serde_json::from_str(line).ok()?;
    if members.nonce.as_deref() != Some(nonce) {
        return None;
    }
    match members.call.or(members.cleanup) {
        Some(number) => Some(WorkerMessage::Invalid { number, reason: error.to_string() }),
        None => Some(WorkerMessage::Unknown),
    }
}

impl Members<'_> {
    fn into_message(mut self) -> WorkerMessage {
        if let Some(number) = self.call.or(self.cleanup) {
            let is_cleanup = self.call.is_none();
            return match self.content(is_cleanup) {
                Ok(Some(content)) => WorkerMessage::Run(RunMessage { number, content }),
                Ok(None) => WorkerMessage::Unknown,
                Err(reason) => WorkerMessage::Invalid { number, reason },
            };
        }
        match self {
            Self { hello: Some(hello), .. } => WorkerMessage::Hello(hello.to_owned()),
            Self { tools: Some(tools), .. } => {
                WorkerMessage::Tools(tools.into_iter().map(ToOwned::to_owned).collect())
            }
            Self { pong: Some(_), .. } => WorkerMessage::Pong,
            _ => WorkerMessage::Unknown,
        }
    }

    /// Returns the content of a call or cleanup, or `None` for an unknown message.
    fn content(&mut self, is_cleanup: bool) -> Result<Option<RunContent>, String> {
        if let Some(end) = self.end(is_cleanup) {
            return Ok(Some(RunContent::End(end)));
        }
        if is_cleanup {
            return Ok(None);
        }
        if let Some(key) = self.step.take() {
            return Ok(Some(RunContent::Step { key, once: self.once }));
        }
        if let Some(done) = self.done {
            let key =
                serde_json::from_str(done.get()).map_err(|error| format!("`done`: {error}"))?;
            let value = self.value.unwrap_or(RawValue::NULL).to_owned();
            return Ok(Some(RunContent::Done { key, value, is_secret: self.secret }));
        }
        if let Some(key) = self.failed.take() {
            let error = self.error.take().unwrap_or_default();
            return Ok(Some(RunContent::Failed { key, error, is_permanent: self.permanent }));
        }
        if let Some(keys) = self.replayed.take() {
            return Ok(Some(RunContent::Replayed(keys)));
        }
        Ok(self.wait()?.or_else(|| self.report()))
    }

    /// Returns the last line of a call or cleanup.
    fn end(&mut self, is_cleanup: bool) -> Option<RunEnd> {
        if let Some(value) = self.returned {
            return Some(RunEnd::Return(value.to_owned()));
        }
        if let Some(result) = self.result {
            return Some(RunEnd::Result(result.to_owned()));
        }
        if let Some(key) = self.incompatible.take() {
            return Some(RunEnd::Incompatible { key, reason: self.text() });
        }
        if self.dropped {
            return Some(RunEnd::Dropped);
        }
        if is_cleanup && self.done.is_some() {
            return Some(RunEnd::CleanedUp);
        }
        if self.failed.is_some() {
            return None;
        }
        let error = self.error.take()?;
        let (kind, traceback) = (self.kind.take(), self.traceback.take());
        Some(RunEnd::Error(RunError { error, kind, traceback, rejected: self.rejected.take() }))
    }

    /// Returns an operation that waits for the server.
    fn wait(&mut self) -> Result<Option<RunContent>, String> {
        let timeout_ms = self.timeout_ms;
        if let Some(key) = self.input.take() {
            return Ok(Some(RunContent::Input(Box::new(InputMessage {
                key,
                message: self.text(),
                fields: self.fields.map(ToOwned::to_owned),
                required: self.required.take(),
                url: self.url.take(),
                sample: self.sample.map(ToOwned::to_owned),
                timeout_ms,
                audience: self.audience.map(ToOwned::to_owned),
            }))));
        }
        if let Some(key) = self.external_event.take() {
            return Ok(Some(RunContent::ExternalEvent { key, timeout_ms }));
        }
        if let Some(key) = self.sleep.take() {
            let ms = self.ms.ok_or("`sleep` has no `ms`")?;
            return Ok(Some(RunContent::Sleep { key, ms }));
        }
        Ok(self.withdraw.take().map(RunContent::Withdraw))
    }

    /// Returns a message about the progress of a call.
    fn report(&mut self) -> Option<RunContent> {
        if let Some(block) = self.emit {
            let scope = self.scope.take().unwrap_or_default();
            return Some(RunContent::Emit { block: block.to_owned(), scope });
        }
        if let Some(done) = self.progress {
            let (total, message) = (self.total, self.text());
            return Some(RunContent::Progress { done, total, message });
        }
        if let Some(message) = self.status_message.take() {
            return Some(RunContent::StatusMessage(message));
        }
        let level = self.log?;
        Some(RunContent::Log { level, data: self.data.unwrap_or(RawValue::NULL).to_owned() })
    }

    fn text(&mut self) -> String {
        self.message.take().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::{RunContent, RunEnd, RunMessage, WorkerMessage};

    const NONCE: &str = "7c1e";

    fn read(members: &str) -> Option<WorkerMessage> {
        WorkerMessage::read(format!("{{\"nonce\":\"{NONCE}\",{members}}}").as_bytes(), NONCE)
    }

    #[track_caller]
    fn content(members: &str) -> RunContent {
        match read(members) {
            Some(WorkerMessage::Run(RunMessage { number: 7, content })) => content,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn line_without_nonce_is_output() {
        for line in [
            r#"{"call":7,"done":"build"}"#,
            r#"{"nonce":"other","call":7,"done":"build","value":"7c1e"}"#,
            r#" {"nonce":"7c1e","call":7,"done":"build"}"#,
            r#"{"nonce":["7c1e"],"call":7}"#,
            r#"{"x":{"nonce":"7c1e","call":7,"done":"build"}}"#,
            "hello 7c1e",
            r#"["7c1e"]"#,
            r#"{"nonce":"7c1e""#,
        ] {
            let read = WorkerMessage::read(line.as_bytes(), NONCE);
            assert!(read.is_none(), "{line}: {read:?}");
        }
    }

    #[test]
    fn messages_differ_by_their_members() {
        let step = content(r#""call":7,"step":"charge","once":true"#);
        assert!(matches!(step, RunContent::Step { once: true, .. }), "{step:?}");
        let done = content(r#""call":7,"done":"build","value":null,"secret":true"#);
        let RunContent::Done { key, value, is_secret: true } = done else { panic!("{done:?}") };
        assert_eq!((key.as_str(), value.get()), ("build", "null"));
        let failed = content(r#""call":7,"failed":"build","error":"disk full","kind":"OSError""#);
        assert!(matches!(failed, RunContent::Failed { is_permanent: false, .. }), "{failed:?}");
        let error = content(r#""call":7,"error":"disk full","kind":"OSError""#);
        assert!(matches!(error, RunContent::End(RunEnd::Error(_))), "{error:?}");
        let end = content(r#""call":7,"return":null"#);
        assert!(matches!(end, RunContent::End(RunEnd::Return(_))), "{end:?}");
        let emit = content(r#""call":7,"emit":{"type":"text","text":"a"},"in":"push/eu""#);
        assert!(matches!(emit, RunContent::Emit { scope, .. } if scope == "push/eu"));
        let log = content(r#""call":7,"log":"warning","data":{"free":3}"#);
        assert!(matches!(log, RunContent::Log { .. }), "{log:?}");
        let input = content(r#""call":7,"input":"approve","message":"Deploy?","timeout_ms":5"#);
        assert!(matches!(input, RunContent::Input(_)), "{input:?}");
        let cleaned = content(r#""cleanup":7,"done":true"#);
        assert!(matches!(cleaned, RunContent::End(RunEnd::CleanedUp)), "{cleaned:?}");
        assert!(matches!(read(r#""pong":4"#), Some(WorkerMessage::Pong)));
        assert!(matches!(read(r#""tools":[{"name":"a"}]"#), Some(WorkerMessage::Tools(_))));
    }

    #[test]
    fn unknown_and_invalid_messages_name_their_call() {
        assert!(matches!(read(r#""call":7,"new":1"#), Some(WorkerMessage::Unknown)));
        assert!(matches!(read(r#""new":1"#), Some(WorkerMessage::Unknown)));
        for members in [r#""call":7,"step":3"#, r#""call":7,"done":[1]"#, r#""call":7,"sleep":"a""#]
        {
            let read = read(members);
            assert!(
                matches!(read, Some(WorkerMessage::Invalid { number: 7, .. })),
                "{members}: {read:?}"
            );
        }
    }
}
