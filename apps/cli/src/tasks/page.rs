//! Formats a call as text: state, progress, input requests and expiry.

use outlive::schema;
use serde_json::Value;

use crate::{
    call::screen::{Screen, shown},
    store::{rough, wall_clock},
};

/// Displayed length of the arguments, in characters.
const ARGUMENTS: usize = 200;

/// Prints the description of a call.
pub(super) fn tell(screen: &Screen, call: &Value) {
    for (name, value) in lines(call, wall_clock()) {
        screen.data(&format!("{name:<11}{value}"));
    }
}

/// Returns the lines of the page: a label and a value each.
fn lines(call: &Value, now: u64) -> Vec<(&'static str, String)> {
    let text = |key: &str| call[key].as_str().filter(|text| !text.is_empty()).map(shown);
    let when = |key: &str| call[key].as_str().and_then(millis).map(|at| ago(at, now));
    let mut lines = vec![
        ("handle", text("handle")),
        ("tool", text("tool")),
        ("arguments", Some(arguments(&call["arguments"], ARGUMENTS)).filter(|it| !it.is_empty())),
        ("server", text("server")),
        ("folder", text("folder")),
        ("version", text("version")),
        ("task", text("task")),
        ("state", call["state"].as_str().map(state_in_words)),
        ("progress", progress(&call["progress"])),
        ("message", text("message")),
        ("saved", when("saved")),
        ("created", when("created")),
        ("changed", when("updated")),
        ("expires", expiry(call, now)),
    ];
    let questions = call["inputRequests"].as_object().into_iter().flatten();
    lines.extend(questions.map(|(_, question)| ("asks", Some(asked(question)))));
    lines.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// Replaces the underscores of a protocol state with spaces.
pub(super) fn state_in_words(state: &str) -> String {
    shown(state).replace('_', " ")
}

/// Formats the time since `at`.
pub(super) fn age(at: u64) -> String {
    rough(wall_clock().saturating_sub(at))
}

fn ago(at: u64, now: u64) -> String {
    match at > now {
        true => format!("in {}", rough(at - now)),
        false => format!("{} ago", rough(now - at)),
    }
}

/// Formats arguments as on a command line, in at most `most` characters.
pub(super) fn arguments(arguments: &Value, most: usize) -> String {
    let word = |(name, value): (&String, &Value)| match value {
        Value::String(text) => format!("{name}={text}"),
        other => format!("{name}={other}"),
    };
    let words: Vec<String> = arguments.as_object().into_iter().flatten().map(word).collect();
    let words = shown(&words.join(" "));
    match words.char_indices().nth(most) {
        None => words,
        Some(_) => words.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// Formats the progress: a count, a percentage if there is a total, and the server's message.
fn progress(far: &Value) -> Option<String> {
    let done = far["progress"].as_f64()?;
    let mut words = match far["total"].as_f64().filter(|total| *total > 0.0) {
        Some(total) => {
            let part = (done / total).clamp(0.0, 1.0) * 100.0;
            format!("{done} of {total} ({part:.0}%)")
        }
        None => done.to_string(),
    };
    if let Some(message) = far["message"].as_str().filter(|message| !message.is_empty()) {
        words = format!("{words}, {}", shown(message));
    }
    Some(words)
}

/// Returns when the task and its result expire.
fn expiry(call: &Value, now: u64) -> Option<String> {
    let created = call["created"].as_str().and_then(millis)?;
    match call["ttlMs"].as_u64() {
        Some(ttl) => Some(ago(created.saturating_add(ttl), now)),
        None => Some("never".to_owned()),
    }
}

/// Formats an input request, with the fields of its form.
pub(super) fn asked(question: &Value) -> String {
    let params = &question["params"];
    let message = shown(params["message"].as_str().unwrap_or("(no message)"));
    if let Some(url) = params["url"].as_str() {
        return format!("{message} (visit {})", shown(url));
    }
    let field = |field: &schema::Field| {
        let needed = if field.is_required { "" } else { ", optional" };
        format!("{}: {}{needed}", shown(&field.name), shown(&field.hint))
    };
    let fields: Vec<String> =
        schema::fields(&params["requestedSchema"]).iter().map(field).collect();
    match fields.is_empty() {
        true => message,
        false => format!("{message} ({})", fields.join("; ")),
    }
}

/// Parses an RFC 3339 time into Unix milliseconds. Returns `None` for any other text.
pub(super) fn millis(text: &str) -> Option<u64> {
    let (date, time) = text.split_once(['T', 't', ' '])?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let zone = time.find(['Z', 'z', '+', '-'])?;
    let (time, zone) = time.split_at(zone);
    let mut time = time.splitn(3, ':');
    let hour: i64 = time.next()?.parse().ok()?;
    let minute: i64 = time.next()?.parse().ok()?;
    let second: f64 = time.next()?.parse().ok()?;
    let offset = match zone.split_at_checked(1)? {
        ("Z" | "z", _) => 0,
        (sign, zone) => {
            let (hours, minutes) = zone.split_once(':')?;
            let minutes = hours.parse::<i64>().ok()? * 60 + minutes.parse::<i64>().ok()?;
            if sign == "-" { -minutes } else { minutes }
        }
    };
    if !(1..=12).contains(&month) || !(0.0..61.0).contains(&second) {
        return None;
    }
    // Here a year starts in March, so that a leap day is its last day.
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = era * 146_097 + day_of_era - 719_468;
    let minutes = days * 1_440 + hour * 60 + minute - offset;
    u64::try_from(minutes * 60_000 + (second * 1_000.0).round() as i64).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{arguments, lines, millis};

    #[test]
    fn millis_parses_rfc_3339_times() {
        for (text, at) in [
            ("1970-01-01T00:00:00.000Z", Some(0)),
            ("2000-02-29T00:00:00Z", Some(951_782_400_000)),
            ("2024-02-29T23:59:59.999Z", Some(1_709_251_199_999)),
            ("2024-03-01T02:00:00+02:00", Some(1_709_251_200_000)),
            ("2024-02-29T19:30:00-04:30", Some(1_709_251_200_000)),
            ("yesterday", None),
            ("2024-13-01T00:00:00Z", None),
            ("2024-01-01T00:00Z", None),
        ] {
            assert_eq!(millis(text), at, "{text}");
        }
    }

    #[test]
    fn arguments_are_truncated_and_escaped() {
        let hostile = arguments(&json!({"a": 1, "b": "x\u{1b}[2J\ny"}), 40);
        assert!(hostile.starts_with("a=1 b=x") && !hostile.contains(['\u{1b}', '\n']), "{hostile}");
        assert_eq!(arguments(&json!({"text": "abcdef"}), 8), "text=ab…");
        assert_eq!(arguments(&json!(null), 8), "");
    }

    #[test]
    fn page_of_task_shows_state_progress_and_input_request() {
        let call = json!({
            "handle": "abc", "tool": "plan", "state": "input_required", "task": "t", "message": "",
            "progress": {"progress": 2.0, "total": 4.0, "message": "counting"},
            "created": "1970-01-01T00:00:00Z", "updated": "1970-01-01T00:00:10Z", "ttlMs": 3_600_000,
            "inputRequests": {"q": {"method": "elicitation/create", "params": {"message": "Apply?",
                "requestedSchema": {"type": "object", "required": ["go"],
                    "properties": {"go": {"type": "boolean"}}}}}},
        });
        let page = lines(&call, 60_000);
        let line = |name| page.iter().find(|line| line.0 == name).map(|line| line.1.as_str());
        assert_eq!(line("state"), Some("input required"));
        assert_eq!(line("progress"), Some("2 of 4 (50%), counting"));
        assert_eq!((line("created"), line("changed")), (Some("60 s ago"), Some("50 s ago")));
        assert_eq!(line("expires"), Some("in 59 min"));
        assert!(line("asks").unwrap().starts_with("Apply? (go: "), "{page:?}");
        assert_eq!(line("message"), None);
    }
}
