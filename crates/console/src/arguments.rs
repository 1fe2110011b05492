//! The arguments of a call as HTML: every member, with exact numbers and visible characters.

use std::fmt::Write as _;

use outlive::{
    text,
    wire::{OrderedMap, RawJson},
};

use crate::html::line;

/// Number of characters above which a value is folded.
const FOLD: usize = 1_000;

/// Returns the arguments of a call as a list of names and values.
pub(crate) fn arguments(arguments: Option<&RawJson>) -> String {
    let Some(arguments) = arguments else { return none() };
    let Ok(members) = serde_json::from_str::<OrderedMap<RawJson>>(arguments.get()) else {
        return value("Arguments", arguments.get());
    };
    if members.0.is_empty() {
        return none();
    }
    let mut html = String::from("<dl>\n");
    for (name, json) in &members.0 {
        // Writing to memory does not fail.
        let _ = writeln!(html, "<dt>{}</dt><dd>{}</dd>", line(name), value(name, json.get()));
    }
    html.push_str("</dl>\n");
    html
}

fn none() -> String {
    "<p>The call has no arguments.</p>\n".to_owned()
}

/// Returns a JSON value. A long value is folded, with its size.
fn value(name: &str, json: &str) -> String {
    let json = pretty(json);
    let shown = text::html(&text::json(&json));
    let label = format!("Value of {}", line(name));
    // A region that scrolls must be reachable with the keyboard.
    let pre = format!("<pre tabindex=\"0\" role=\"group\" aria-label=\"{label}\">{shown}</pre>");
    match json.chars().count() {
        0..=FOLD => pre,
        long => format!("<details><summary>{long} characters</summary>{pre}</details>"),
    }
}

/// Formats a valid JSON text with one member per line. Every token stays as it is, so numbers keep
/// their digits and duplicate members stay.
fn pretty(json: &str) -> String {
    let mut out = String::with_capacity(json.len() + json.len() / 4);
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    let mut chars = json.chars().peekable();
    while let Some(char) = chars.next() {
        if in_string {
            in_string = escaped || char != '"';
            escaped = !escaped && char == '\\';
            out.push(char);
            continue;
        }
        match char {
            '"' => {
                in_string = true;
                out.push(char);
            }
            '{' | '[' => {
                out.push(char);
                while chars.next_if(|next| next.is_ascii_whitespace()).is_some() {}
                match chars.next_if(|next| matches!(next, '}' | ']')) {
                    Some(end) => out.push(end),
                    None => {
                        depth += 1;
                        new_line(&mut out, depth);
                    }
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(char);
            }
            ',' => {
                out.push(char);
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            char if char.is_ascii_whitespace() => {}
            char => out.push(char),
        }
    }
    out
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    // A deep value does not need more indentation to be readable.
    out.extend(std::iter::repeat_n("  ", depth.min(16)));
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::{FOLD, arguments, pretty};

    fn shown(json: &str) -> String {
        arguments(Some(&RawValue::from_string(json.to_owned()).unwrap()))
    }

    #[test]
    fn formatted_json_keeps_every_token() {
        let json =
            r#"{"a":1.50e400,"a" : 12345678901234567890123,"b":[],"c":{ },"d":[1,"x\"],{\\"]}"#;
        let lines = [
            "{",
            "  \"a\": 1.50e400,",
            "  \"a\": 12345678901234567890123,",
            "  \"b\": [],",
            "  \"c\": {},",
            "  \"d\": [",
            "    1,",
            "    \"x\\\"],{\\\\\"",
            "  ]",
            "}",
        ];
        assert_eq!(pretty(json), lines.join("\n"));
        assert_eq!(pretty("\"a b\""), "\"a b\"");
    }

    #[test]
    fn markup_and_invisible_characters_in_arguments_are_visible() {
        let html = shown("{\"<b>\":\"<script>\u{202e}\\u202e\"}");
        assert!(html.contains("<dt>&lt;b&gt;</dt>"), "{html}");
        assert!(html.contains("&quot;&lt;script&gt;\\u202e\\u202e&quot;"), "{html}");
    }

    #[test]
    fn long_value_is_folded_with_its_size() {
        let long = "x".repeat(FOLD);
        let html = shown(&format!("{{\"a\":\"{long}\",\"b\":1}}"));
        assert!(html.contains(&format!("<summary>{} characters</summary>", FOLD + 2)), "{html}");
        assert_eq!(html.matches("<details>").count(), 1);
        assert!(html.contains(&long));
    }

    #[test]
    fn call_without_arguments_says_so() {
        for html in [arguments(None), shown("{}")] {
            assert_eq!(html, "<p>The call has no arguments.</p>\n");
        }
    }
}
