//! Messages of the server.

use outlive::wire::RawJson;
use serde::Serialize;
use serde_json::value::RawValue;

use super::declared::PROTOCOL;

/// Maximum bytes of a line, without its line feed.
pub(crate) const MAX_LINE: usize = 4 << 20;

/// Number of a call or of a cleanup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunNumber {
    Call(u64),
    Cleanup(u64),
}

impl RunNumber {
    pub(crate) fn value(self) -> u64 {
        match self {
            Self::Call(number) | Self::Cleanup(number) => number,
        }
    }

    pub(super) fn call(self) -> Option<u64> {
        match self {
            Self::Call(number) => Some(number),
            Self::Cleanup(_) => None,
        }
    }

    pub(super) fn cleanup(self) -> Option<u64> {
        match self {
            Self::Call(_) => None,
            Self::Cleanup(number) => Some(number),
        }
    }
}

/// Returns a message as a line.
pub(super) fn line(message: &impl Serialize) -> String {
    // Only maps with keys that are not text cannot be written.
    let mut line = serde_json::to_string(message).unwrap_or_default();
    line.push('\n');
    line
}

/// Returns the first line of the server.
pub(crate) fn welcome(nonce: &str, max_concurrent: usize, is_dev: bool) -> String {
    #[derive(Serialize)]
    struct Line<'a> {
        welcome: Welcome<'a>,
    }
    #[derive(Serialize)]
    struct Welcome<'a> {
        protocol: u32,
        server: &'a str,
        nonce: &'a str,
        max_concurrent: usize,
        dev: bool,
    }
    let server = concat!("outlive ", env!("CARGO_PKG_VERSION"));
    line(&Line {
        welcome: Welcome { protocol: PROTOCOL, server, nonce, max_concurrent, dev: is_dev },
    })
}

/// Returns the line that rejects a `hello`.
pub(crate) fn goodbye(text: &str) -> String {
    #[derive(Serialize)]
    struct Line<'a> {
        goodbye: &'a str,
    }
    line(&Line { goodbye: text })
}

/// Returns the line that a process must respond to.
pub(crate) fn ping(number: u64) -> String {
    #[derive(Serialize)]
    struct Line {
        ping: u64,
    }
    line(&Line { ping: number })
}

/// Returns the line after which a process exits with its last call.
pub(crate) fn drain() -> String {
    #[derive(Serialize)]
    struct Line {
        drain: bool,
    }
    line(&Line { drain: true })
}

/// Returns the line that discards a run.
pub(crate) fn drop_run(run: RunNumber, reason: &str) -> String {
    #[derive(Serialize)]
    struct Line<'a> {
        #[serde(skip_serializing_if = "Option::is_none")]
        call: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cleanup: Option<u64>,
        drop: &'a str,
    }
    line(&Line { call: run.call(), cleanup: run.cleanup(), drop: reason })
}

/// Responses to the requests of one call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Responses {
    call: u64,
}

/// Value of a recorded step that the tool worker requested.
#[derive(Debug)]
pub(crate) enum Recorded {
    /// The body has just executed, so the tool worker knows the value.
    New,
    Value(RawJson),
    Failed(String),
}

impl Responses {
    pub(crate) fn new(call: u64) -> Self {
        Self { call }
    }

    pub(crate) fn cancel(self) -> String {
        #[derive(Serialize)]
        struct Line<'a> {
            call: u64,
            cancel: &'a str,
        }
        line(&Line { call: self.call, cancel: "requested by the client" })
    }

    pub(crate) fn recorded(self, key: &str, recorded: &Recorded) -> String {
        #[derive(Serialize)]
        struct Line<'a> {
            call: u64,
            recorded: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            value: Option<&'a RawValue>,
            #[serde(skip_serializing_if = "Option::is_none")]
            failed: Option<&'a str>,
        }
        let (value, failed) = match recorded {
            Recorded::New => (None, None),
            Recorded::Value(value) => (Some(&**value), None),
            Recorded::Failed(message) => (None, Some(message.as_str())),
        };
        line(&Line { call: self.call, recorded: key, value, failed })
    }

    pub(crate) fn go(self, key: &str) -> String {
        #[derive(Serialize)]
        struct Line<'a> {
            call: u64,
            go: &'a str,
        }
        line(&Line { call: self.call, go: key })
    }

    /// Returns the rejection of a request. `segment` is the number of a rejected segment.
    pub(crate) fn rejected(
        self,
        key: &str,
        segment: Option<u64>,
        kind: &str,
        message: &str,
    ) -> String {
        #[derive(Serialize)]
        struct Line<'a> {
            call: u64,
            rejected: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            segment: Option<u64>,
            kind: &'a str,
            message: &'a str,
        }
        line(&Line { call: self.call, rejected: key, segment, kind, message })
    }

    /// Returns the user's response to a form or URL.
    pub(crate) fn response(self, key: &str, action: &str, content: Option<&RawValue>) -> String {
        #[derive(Serialize)]
        struct Line<'a> {
            call: u64,
            response: &'a str,
            action: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            content: Option<&'a RawValue>,
        }
        line(&Line { call: self.call, response: key, action, content })
    }

    /// Returns the result of sampling.
    pub(crate) fn sampled(self, key: &str, result: &impl Serialize) -> String {
        #[derive(Serialize)]
        struct Line<'a, R> {
            call: u64,
            response: &'a str,
            result: &'a R,
        }
        line(&Line { call: self.call, response: key, result })
    }

    pub(crate) fn woke(self, key: &str) -> String {
        #[derive(Serialize)]
        struct Line<'a> {
            call: u64,
            woke: &'a str,
        }
        line(&Line { call: self.call, woke: key })
    }

    pub(crate) fn completion_token(self, key: &str, token: &str) -> String {
        #[derive(Serialize)]
        struct Line<'a> {
            call: u64,
            completion_token: &'a str,
            value: &'a str,
        }
        line(&Line { call: self.call, completion_token: key, value: token })
    }

    pub(crate) fn completed(self, key: &str, value: &RawValue) -> String {
        #[derive(Serialize)]
        struct Line<'a> {
            call: u64,
            completed: &'a str,
            value: &'a RawValue,
        }
        line(&Line { call: self.call, completed: key, value })
    }

    pub(crate) fn stored_segments(self, count: u64) -> String {
        #[derive(Serialize)]
        struct Line {
            call: u64,
            stored_segments: u64,
        }
        line(&Line { call: self.call, stored_segments: count })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::{Recorded, Responses, RunNumber, drop_run, ping, welcome};

    #[test]
    fn lines_equal_those_of_the_protocol_page() {
        let to = Responses::new(7);
        let value = RawValue::from_string("\"shop:1\"".to_owned()).unwrap();
        for (line, expected) in [
            (to.recorded("build", &Recorded::New), r#"{"call":7,"recorded":"build"}"#),
            (
                to.recorded("build", &Recorded::Value(value.clone())),
                r#"{"call":7,"recorded":"build","value":"shop:1"}"#,
            ),
            (
                to.recorded("build", &Recorded::Failed("no such repo".to_owned())),
                r#"{"call":7,"recorded":"build","failed":"no such repo"}"#,
            ),
            (to.go("charge"), r#"{"call":7,"go":"charge"}"#),
            (
                to.rejected("push/eu", Some(3), "too_large", "…"),
                r#"{"call":7,"rejected":"push/eu","segment":3,"kind":"too_large","message":"…"}"#,
            ),
            (to.response("a", "decline", None), r#"{"call":7,"response":"a","action":"decline"}"#),
            (to.completed("film", &value), r#"{"call":7,"completed":"film","value":"shop:1"}"#),
            (to.stored_segments(1), r#"{"call":7,"stored_segments":1}"#),
            (drop_run(RunNumber::Cleanup(9), "cancelled"), r#"{"cleanup":9,"drop":"cancelled"}"#),
            (ping(4), r#"{"ping":4}"#),
        ] {
            assert_eq!(line, format!("{expected}\n"));
        }
        let welcome = welcome("7c1e", 16, false);
        assert!(welcome.starts_with(r#"{"welcome":{"protocol":1,"server":"outlive "#), "{welcome}");
        assert!(welcome.ends_with("\"nonce\":\"7c1e\",\"max_concurrent\":16,\"dev\":false}}\n"));
    }
}
