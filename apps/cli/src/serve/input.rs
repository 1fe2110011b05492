//! Input requests of a command: the elicitation for the user, and the response line for the
//! command.

use outlive::{
    server::{
        Durable, Error,
        durable::{ElicitOutcome, IntoKey, Key},
    },
    wire::RequestedSchema,
};
use outlive_jobs::InputLine;
use serde_json::{Map, Value as Json, json};

/// Maximum output of a command above the message of an input request.
const MAX_LINES: usize = 40;
const MAX_BYTES: usize = 4 << 10;

/// Requests input from the user. Returns the response line for the command.
///
/// `use_of_key` counts the requests with this key so far. `printed` is output that the client cannot
/// read elsewhere before it responds.
pub(super) async fn request(
    input: &InputLine,
    cx: &Durable,
    use_of_key: u32,
    printed: Option<&str>,
) -> String {
    let key = shown_key(&input.key, use_of_key);
    let message = match printed.map(last_lines).filter(|printed| !printed.is_empty()) {
        Some(printed) => format!("{printed}\n\n{}", input.message),
        None => input.message.clone(),
    };
    let reply = match &input.url {
        Some(url) => cx.elicit_url(key, message, url).outcome().await.map(|reply| match reply {
            ElicitOutcome::Accepted(()) => ElicitOutcome::Accepted(Map::new()),
            ElicitOutcome::Declined => ElicitOutcome::Declined,
            ElicitOutcome::Cancelled => ElicitOutcome::Cancelled,
        }),
        None => match schema(input) {
            Ok(schema) => cx.elicit_with::<Map<String, Json>>(key, message, schema).outcome().await,
            Err(error) => Err(Error::new(format!("`fields` of the input request: {error}"))),
        },
    };
    response(input, reply)
}

/// Returns the key that clients and models see: the command's own key, with a number if the command
/// uses it again. A late response must not reach a later request.
fn shown_key(key: &str, use_of_key: u32) -> Key {
    match use_of_key {
        1 => key.into_key(),
        _ => (key, use_of_key).into_key(),
    }
}

fn response(input: &InputLine, reply: Result<ElicitOutcome<Map<String, Json>>, Error>) -> String {
    let key = &input.key;
    match reply {
        Ok(ElicitOutcome::Accepted(mut content)) => {
            // In the order of the request, so that a script can match the line with a pattern.
            let order = input.fields.iter().flatten().map(|(name, _)| name);
            let mut sorted: Map<String, Json> =
                order.filter_map(|name| Some((name.clone(), content.remove(name)?))).collect();
            sorted.extend(content);
            json!({"response": key, "action": "accept", "content": sorted}).to_string()
        }
        Ok(ElicitOutcome::Declined) => json!({"response": key, "action": "decline"}).to_string(),
        Ok(ElicitOutcome::Cancelled) => json!({"response": key, "action": "cancel"}).to_string(),
        // The client never saw the request. The command may continue without a response.
        Err(error) => {
            json!({"response": key, "action": "cancel", "reason": error.to_string()}).to_string()
        }
    }
}

/// Builds the form. Without `fields`, it is a yes-or-no form. By default, fields without a default
/// value are required.
fn schema(input: &InputLine) -> serde_json::Result<RequestedSchema> {
    let yes_or_no = || {
        let field = json!({"type": "boolean", "title": "Yes"});
        Map::from_iter([("yes".to_owned(), field)])
    };
    let fields = input.fields.clone().unwrap_or_else(yes_or_no);
    let without_default = || {
        let needed = fields.iter().filter(|(_, field)| field.get("default").is_none());
        needed.map(|(name, _)| name.clone()).collect()
    };
    let required = input.required.clone().unwrap_or_else(without_default);
    let schema = json!({"type": "object", "properties": fields, "required": required});
    serde_json::from_value(schema)
}

/// Drops the start of the output once it is much longer than the displayed part.
pub(super) fn shorten(printed: &mut String) {
    if printed.len() > 8 * MAX_BYTES {
        let mut start = printed.len() - 2 * MAX_BYTES;
        while !printed.is_char_boundary(start) {
            start += 1;
        }
        printed.drain(..start);
    }
}

/// Returns the last lines of the output, with a mark if earlier output was cut.
fn last_lines(printed: &str) -> String {
    let printed = printed.trim_end_matches('\n');
    let mut start = printed.len().saturating_sub(MAX_BYTES);
    while !printed.is_char_boundary(start) {
        start += 1;
    }
    let mut end = &printed[start..];
    if start > 0 {
        // Drop the first line, which is incomplete.
        end = end.split_once('\n').map_or(end, |(_, rest)| rest);
    }
    let surplus = end.split('\n').count().saturating_sub(MAX_LINES);
    if surplus > 0 {
        end = end.splitn(surplus + 1, '\n').last().unwrap_or_default();
    }
    if end.len() < printed.len() { format!("[…]\n{end}") } else { end.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{InputLine, MAX_BYTES, MAX_LINES, last_lines, response, schema, shown_key};

    fn input(request: Value) -> InputLine {
        serde_json::from_value(request).expect("is an input request")
    }

    #[test]
    fn form_without_fields_asks_yes_or_no() {
        let schema = schema(&input(json!({"input": "go", "message": "Go?"}))).expect("is a form");
        assert_eq!(schema.required.as_deref(), Some(&["yes".to_owned()][..]));
    }

    #[test]
    fn form_field_with_default_is_optional() {
        let fields = json!({"a": {"type": "string"}, "b": {"type": "integer", "default": 1}});
        let asked = input(json!({"input": "go", "message": "Go?", "fields": fields}));
        assert_eq!(schema(&asked).expect("is a form").required, Some(vec!["a".to_owned()]));
    }

    #[test]
    fn key_has_a_number_only_if_it_is_used_again() {
        let shown = |key, use_of_key| shown_key(key, use_of_key).into_string();
        assert_eq!((shown("go", 1), shown("go", 2)), ("go".to_owned(), "go/2".to_owned()));
        assert_ne!(shown("go/2", 1), shown("go", 2), "the slash of a key is escaped");
    }

    #[test]
    fn response_line_has_key_of_request() {
        let asked = input(json!({"input": "a\"b", "message": "Go?"}));
        let line = response(&asked, Ok(outlive::server::durable::ElicitOutcome::Declined));
        assert_eq!(line, r#"{"response":"a\"b","action":"decline"}"#);
    }

    #[test]
    fn output_above_request_is_its_last_lines() {
        assert_eq!(last_lines("one\ntwo\n"), "one\ntwo");
        let many: String = (0..100).map(|number| format!("{number}\n")).collect();
        let shown = last_lines(&many);
        assert_eq!(shown.lines().count(), MAX_LINES + 1);
        assert!(shown.starts_with("[…]\n60\n") && shown.ends_with("\n99"), "{shown}");
        let long = last_lines(&"ü".repeat(MAX_BYTES));
        assert!(long.starts_with("[…]\nü") && long.len() <= MAX_BYTES + 6, "{}", long.len());
    }
}
