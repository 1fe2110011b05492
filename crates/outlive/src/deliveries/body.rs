//! Content of a message, built when the message is sent.
//!
//! Text of a caller appears only with [`Contents::Summary`](super::Contents::Summary), on one line and
//! with visible characters.

use outlive_protocol::{rfc3339, text};
use outlive_tasks::store::{TaskEvent, UnixMillis};
use outlive_wire::{OrderedMap, RawJson};
use serde::Serialize;
use serde_json::value::to_raw_value;

use super::target::Format;

/// Bytes of a body. Receivers of Standard Webhooks accept 20 KB.
const MAX_BODY: usize = 20_000;

/// Characters of the message of an input request.
const MAX_MESSAGE: usize = 2_000;

/// Bytes of the value of an argument.
const MAX_VALUE: usize = 500;

/// Answer links of one message.
const MAX_LINKS: usize = 16;

/// Content of a message.
#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) event: TaskEvent,
    /// When the event was committed.
    pub(crate) at: UnixMillis,
    pub(crate) data: Data,
    /// Whether the event belongs to an approval request.
    pub(crate) is_approval: bool,
}

/// Member `data` of a body.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Data {
    pub(crate) task: String,
    /// Name of the tool; `None` if the task was deleted meanwhile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool: Option<String>,
    /// State of the input request or task when the message is sent.
    pub(crate) state: &'static str,
    /// Wire key of the input request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) input_request: Option<String>,
    /// When the input request times out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<String>,
    /// Page of the input request or task, behind sign-in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) links: Vec<Link>,
    /// Text of the input request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    /// Arguments of the call, without secret ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) arguments: Option<OrderedMap<RawJson>>,
}

/// An answer link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Link {
    /// Person who votes with the link, or `link:TARGET`.
    pub(crate) to: String,
    pub(crate) url: String,
}

#[derive(Serialize)]
struct Standard<'a> {
    r#type: &'static str,
    timestamp: String,
    data: &'a Data,
}

#[derive(Serialize)]
struct Text {
    text: String,
}

impl Body {
    /// Returns the body as JSON, below the size limit. Long texts are cut, then omitted.
    pub(crate) fn write(mut self, format: Format) -> String {
        self.cut();
        loop {
            let json = match format {
                Format::Standard => serde_json::to_string(&Standard {
                    r#type: self.event.as_str(),
                    timestamp: rfc3339(self.at),
                    data: &self.data,
                }),
                Format::Text => serde_json::to_string(&Text { text: self.line() }),
            };
            // Strings and raw JSON always serialize.
            let json = json.unwrap_or_default();
            if json.len() < MAX_BODY || !self.shrink() {
                return json;
            }
        }
    }

    /// Cuts texts and lists to their limits.
    fn cut(&mut self) {
        self.data.links.truncate(MAX_LINKS);
        if let Some(message) = &mut self.data.message {
            *message = shortened(&text::line(message), MAX_MESSAGE);
        }
        for (_, value) in self.data.arguments.iter_mut().flat_map(|arguments| &mut arguments.0) {
            let json = value.get();
            if json.len() > MAX_VALUE {
                let cut = format!("{} ({} bytes)", shortened(json, MAX_VALUE / 4), json.len());
                if let Ok(cut) = to_raw_value(&cut) {
                    *value = cut;
                }
            }
        }
    }

    /// Omits the largest part that the receiver can read on the page. Returns `false` if nothing is
    /// left to omit.
    fn shrink(&mut self) -> bool {
        let Data { arguments, message, links, .. } = &mut self.data;
        arguments.take().is_some() || message.take().is_some() || links.pop().is_some()
    }

    /// Returns the line for people.
    fn line(&self) -> String {
        let Data { task, tool, state, until, url, links, .. } = &self.data;
        let tool = tool.as_deref().unwrap_or(task);
        let subject = if self.is_approval { "approval" } else { "input request" };
        let mut line = match self.event {
            TaskEvent::InputRequestOpened if *state == "open" => match self.is_approval {
                true => format!("{tool} waits for approval"),
                false => format!("{tool} requests input"),
            },
            TaskEvent::InputRequestOpened | TaskEvent::InputRequestSettled => {
                format!("{tool}: {subject} {state}")
            }
            TaskEvent::TaskEnded => format!("{tool} ended: {state}"),
            TaskEvent::TaskQuarantined if *state == "quarantined" => {
                format!("{tool} is quarantined until an operator retries it")
            }
            TaskEvent::TaskQuarantined => format!("{tool} was quarantined, now {state}"),
        };
        if let Some(summary) = self.summary() {
            line.push_str(": ");
            line.push_str(&summary);
        }
        if let Some(until) = until {
            line.push_str(&format!(", open until {until}"));
        }
        match links.as_slice() {
            [] => line.extend(url.iter().flat_map(|url| [" ", url.as_str()])),
            links => {
                for Link { to, url } in links {
                    line.push_str(&format!(" {}: {url}", quoted(to)));
                }
            }
        }
        line
    }

    /// Returns arguments and message as text of the caller.
    fn summary(&self) -> Option<String> {
        let Data { message, arguments, .. } = &self.data;
        let arguments = arguments.iter().flat_map(|arguments| &arguments.0);
        let arguments = arguments.map(|(name, value)| format!("{name} {}", value.get()));
        let parts: Vec<String> = arguments.chain(message.clone()).collect();
        (!parts.is_empty()).then(|| quoted(&parts.join(", ")))
    }
}

/// Returns a text of a caller for a chat: between backquotes, where chats read no markup, and without
/// characters that start a mention or a link there.
fn quoted(untrusted: &str) -> String {
    let plain = |char| match char {
        '<' => '‹',
        '>' => '›',
        '`' => '\'',
        char => char,
    };
    let text: String = text::line(untrusted).chars().map(plain).collect();
    format!("`{text}`")
}

/// Cuts a text after a number of characters.
fn shortened(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use outlive_wire::OrderedMap;
    use serde_json::{Value, json, value::to_raw_value};

    use super::{Body, Data, Format, Link, MAX_BODY, TaskEvent};

    fn opened() -> Body {
        let arguments = [("version", json!("1.4.2")), ("amount", json!(180.5))];
        let arguments =
            arguments.map(|(name, value)| (name.to_owned(), to_raw_value(&value).unwrap()));
        Body {
            event: TaskEvent::InputRequestOpened,
            at: 1_700_000_000_000,
            is_approval: true,
            data: Data {
                task: "3b58".to_owned(),
                tool: Some("deploy".to_owned()),
                state: "open",
                input_request: Some("#approval".to_owned()),
                until: Some("2023-11-15T06:13:20Z".to_owned()),
                url: Some("https://a.example/console/inputs/3b58/%23approval".to_owned()),
                links: vec![],
                message: Some("Deploy?".to_owned()),
                arguments: Some(OrderedMap(arguments.into())),
            },
        }
    }

    fn parsed(body: Body, format: Format) -> Value {
        let json = body.write(format);
        assert!(json.len() < MAX_BODY, "{} bytes", json.len());
        serde_json::from_str(&json).unwrap()
    }

    #[test]
    fn standard_body_has_type_timestamp_and_data() {
        let timestamp = outlive_protocol::rfc3339(1_700_000_000_000);
        assert_eq!(
            parsed(opened(), Format::Standard),
            json!({
                "type": "input_request.opened",
                "timestamp": timestamp,
                "data": {
                    "task": "3b58",
                    "tool": "deploy",
                    "state": "open",
                    "input_request": "#approval",
                    "until": "2023-11-15T06:13:20Z",
                    "url": "https://a.example/console/inputs/3b58/%23approval",
                    "message": "Deploy?",
                    "arguments": {"version": "1.4.2", "amount": 180.5},
                },
            })
        );
    }

    #[test]
    fn text_body_is_one_line_with_address_or_links() {
        let text = parsed(opened(), Format::Text)["text"].clone();
        let says = "deploy waits for approval: `version \"1.4.2\", amount 180.5, Deploy?`, \
                    open until 2023-11-15T06:13:20Z https://a.example/console/inputs/3b58/%23approval";
        assert_eq!(text, says);
        let mut body = opened();
        (body.data.message, body.data.arguments, body.data.until) = (None, None, None);
        body.data.links = ["ada", "ben"]
            .map(|to| Link { to: to.to_owned(), url: format!("https://a.example/answer/{to}") })
            .into();
        let text = parsed(body, Format::Text)["text"].clone();
        assert_eq!(
            text,
            "deploy waits for approval `ada`: https://a.example/answer/ada `ben`: https://a.example/answer/ben"
        );
    }

    #[test]
    fn text_of_caller_cannot_mention_link_or_break_the_line() {
        let mut body = opened();
        body.data.arguments = None;
        body.data.message = Some("ok` <!channel>\n<https://evil|here> \u{202e}x".to_owned());
        let text = parsed(body, Format::Text)["text"].as_str().unwrap().to_owned();
        assert!(!text.contains(['<', '>', '\n', '\u{202e}']), "{text}");
        assert_eq!(text.matches('`').count(), 2, "{text}");
    }

    #[test]
    fn long_content_is_cut_below_the_limit() {
        let long = "\u{1}ü\"".repeat(20_000);
        let many = (0..500).map(|number| {
            let value = to_raw_value(&json!({"number": number, "text": long})).unwrap();
            (format!("argument{number}"), value)
        });
        for format in [Format::Standard, Format::Text] {
            let mut body = opened();
            body.data.message = Some(long.clone());
            body.data.arguments = Some(OrderedMap(many.clone().collect()));
            let link = |number| Link { to: format!("p{number}"), url: "u".repeat(900) };
            body.data.links = (0..100).map(link).collect();
            parsed(body, format);
        }
        let mut body = opened();
        body.data.arguments = Some(OrderedMap(many.take(1).collect()));
        let value = parsed(body, Format::Standard)["data"]["arguments"]["argument0"].clone();
        let value = value.as_str().expect("is cut to a string").to_owned();
        assert!(value.ends_with("bytes)") && value.len() < 600, "{value}");
    }
}
