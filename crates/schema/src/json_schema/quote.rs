//! Shortened names and values for messages.

use std::fmt::Write;

use serde_json::Value;

/// Maximum characters of an offending value in a message. Enough to recognize the value, but not to
/// echo a whole file.
const MAX_QUOTE: usize = 80;

/// Returns names in backticks, as many as fit.
pub(super) fn list(names: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    joined(names.into_iter().map(|name| format!("`{}`", name.as_ref())))
}

/// Returns values as JSON, as many as fit.
pub(super) fn values<'a>(values: impl Iterator<Item = &'a Value>) -> String {
    joined(values.map(quoted))
}

fn joined(words: impl Iterator<Item = String>) -> String {
    let mut line = String::new();
    for word in words {
        if line.is_empty() {
            line = word;
        } else if line.len() + word.len() > 4 * MAX_QUOTE {
            line.push_str(", …");
            break;
        } else {
            write!(line, ", {word}").expect("writing to a String cannot fail");
        }
    }
    line
}

/// Returns a value as JSON, shortened.
pub(super) fn quoted(value: &Value) -> String {
    shortened(&value.to_string())
}

pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTE) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
