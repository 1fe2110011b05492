//! What a command says to us, in lines of its output that begin with a mark: how far it is, and
//! what it asks its user.
//!
//! ```text
//! @outlive {"progress": 3, "total": 10, "message": "packing"}
//! @outlive {"ask": "Release now?"}
//! @outlive {"ask": "Where to?", "fields": {"region": {"type": "string", "enum": ["eu", "us"]}}}
//! @outlive {"ask": "Log in there first.", "url": "https://example.com/login"}
//! ```
//!
//! The answer to a question is one line of JSON on standard input: `{"action":"accept","content":{…}}`,
//! `{"action":"decline"}` or `{"action":"cancel"}`. A line that begins with the mark and is none of
//! this is a line like any other.

use outlive::{
    server::{Durable, Error, Reply},
    wire::RequestedSchema,
};
use serde::Deserialize;
use serde_json::{Map, Value as Json, json};

use crate::job::{Ask, MARKER};

/// A marked line.
#[derive(Debug)]
pub(super) enum Marked {
    Progress(Progress),
    Ask(Ask),
}

/// How far a command is.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Progress {
    pub(super) progress: f64,
    #[serde(default)]
    pub(super) total: Option<f64>,
    #[serde(default)]
    pub(super) message: String,
}

/// Reads a line. `None` if it is a line like any other.
pub(super) fn read(line: &str) -> Option<Marked> {
    let said = line.strip_prefix(MARKER)?;
    let progress = serde_json::from_str(said).ok().map(Marked::Progress);
    progress.or_else(|| Ask::read(line.as_bytes()).map(Marked::Ask))
}

/// Asks the user; what comes back is the line for the command.
pub(super) async fn put(ask: &Ask, cx: &Durable, number: u32) -> String {
    let key = ("question", number);
    let reply = match &ask.url {
        Some(url) => cx.elicit_url(key, &ask.ask, url).reply().await.map(|reply| match reply {
            Reply::Accepted(()) => Reply::Accepted(Map::new()),
            Reply::Declined => Reply::Declined,
            Reply::Cancelled => Reply::Cancelled,
        }),
        None => match schema(ask) {
            Ok(schema) => cx.elicit_with::<Map<String, Json>>(key, &ask.ask, schema).reply().await,
            Err(error) => {
                Err(Error::new(format!("the command asks for something that is no form: {error}")))
            }
        },
    };
    match reply {
        Ok(Reply::Accepted(mut content)) => {
            // In the order of the question, so that a script can read it with a pattern.
            let order = ask.fields.iter().flatten().map(|(name, _)| name);
            let mut sorted: Map<String, Json> =
                order.filter_map(|name| Some((name.clone(), content.remove(name)?))).collect();
            sorted.extend(content);
            json!({"action": "accept", "content": sorted}).to_string()
        }
        Ok(Reply::Declined) => json!({"action": "decline"}).to_string(),
        Ok(Reply::Cancelled) => json!({"action": "cancel"}).to_string(),
        // Nobody was asked: the command can go on without, if it knows how.
        Err(error) => json!({"action": "cancel", "reason": error.to_string()}).to_string(),
    }
}

/// The form; without fields it is yes or no. What has no default must be filled in, unless the command says which.
fn schema(ask: &Ask) -> serde_json::Result<RequestedSchema> {
    let yes_or_no = || {
        let field = json!({"type": "boolean", "title": "Yes"});
        Map::from_iter([("yes".to_owned(), field)])
    };
    let fields = ask.fields.clone().unwrap_or_else(yes_or_no);
    let without_default = || {
        let needed = fields.iter().filter(|(_, field)| field.get("default").is_none());
        needed.map(|(name, _)| name.clone()).collect()
    };
    let required = ask.required.clone().unwrap_or_else(without_default);
    let schema = json!({"type": "object", "properties": fields, "required": required});
    serde_json::from_value(schema)
}

#[cfg(test)]
mod tests {
    use super::{Marked, read, schema};

    #[test]
    fn what_is_not_marked_is_a_line() {
        for line in [
            "@outlive",
            "@outlive hello",
            "@outlive {}",
            "@outlive {\"ask\": 3}",
            " @outlive {\"ask\": \"x\"}",
            "@outlive {\"ask\": \"x\", \"feilds\": {}}",
            "{\"ask\": \"x\"}",
        ] {
            assert!(read(line).is_none(), "{line}");
        }
    }

    #[test]
    fn progress_and_questions_are_read() {
        let Some(Marked::Progress(progress)) = read("@outlive {\"progress\": 1, \"total\": 4}")
        else {
            panic!("that is progress")
        };
        assert_eq!((progress.progress, progress.total), (1.0, Some(4.0)));
        let Some(Marked::Ask(ask)) = read("@outlive {\"ask\": \"Go?\"}") else {
            panic!("that asks")
        };
        let schema = schema(&ask).expect("is a form");
        assert_eq!(schema.required.as_deref(), Some(&["yes".to_owned()][..]));
    }

    #[test]
    fn fields_with_a_default_may_stay_empty() {
        let line = "@outlive {\"ask\": \"Go?\", \"fields\": {\"a\": {\"type\": \"string\"}, \"b\": {\"type\": \"integer\", \"default\": 1}}}";
        let Some(Marked::Ask(ask)) = read(line) else { panic!("that asks") };
        assert_eq!(schema(&ask).expect("is a form").required, Some(vec!["a".to_owned()]));
    }
}
