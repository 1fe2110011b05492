//! The arguments of a call: every member, with exact numbers and visible characters.

use outlive::{people::ShownArgument, text};

use crate::{
    html::{Markup, line},
    time_text,
};

/// Number of characters from which a value is folded.
const FOLD: usize = 1_000;

/// Maximum number of characters of a value that a page shows.
pub(crate) const MAX_VALUE: usize = 64 << 10;

/// An argument as a page shows it.
#[derive(Debug)]
pub(crate) struct Argument {
    pub(crate) name: String,
    pub(crate) value: Markup,
    /// Value in an earlier call, if it differs.
    pub(crate) previous: Option<String>,
}

impl Argument {
    /// Creates an argument without an earlier value. A secret shows its size only.
    pub(crate) fn new(argument: &ShownArgument) -> Self {
        let value = match argument.is_hidden {
            true => {
                let text = line(&argument.text());
                Markup::from_html(format!("<span class=\"muted\">{text}</span>"))
            }
            false => value(&argument.name, &argument.json),
        };
        Self { name: argument.name.clone(), value, previous: None }
    }
}

/// Returns a JSON value as HTML. A long value is folded, with its size.
pub(crate) fn value(name: &str, json: &str) -> Markup {
    folded(name, &text::json(&pretty(json)))
}

/// Returns a text as HTML. A long text is folded, with its size.
pub(crate) fn plain(name: &str, text: &str) -> Markup {
    folded(name, &text::lines(text))
}

fn folded(name: &str, text: &str) -> Markup {
    let size = text.chars().count();
    let end = text.char_indices().nth(MAX_VALUE).map_or(text.len(), |(end, _)| end);
    let shown = text::html(&text[..end]);
    let label = format!("Value of {}", line(name));
    // A region that scrolls must be reachable with the keyboard.
    let pre = format!("<pre tabindex=\"0\" role=\"group\" aria-label=\"{label}\">{shown}</pre>");
    let length = time_text::count(size as u64, "character");
    Markup::from_html(match size {
        ..FOLD => format!("<pre>{shown}</pre>"),
        FOLD..=MAX_VALUE => {
            format!("<details class=\"fold\"><summary>{length}</summary>{pre}</details>")
        }
        _ => format!(
            "<details class=\"fold\"><summary>{length}, the first {} of them</summary>{pre}</details>",
            time_text::number(MAX_VALUE as u64)
        ),
    })
}

/// Formats a valid JSON text with one member per line. Every token stays as it is, so numbers keep
/// their digits and duplicate members stay.
pub(crate) fn pretty(json: &str) -> String {
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
    use outlive::people::ShownArgument;

    use super::{Argument, FOLD, MAX_VALUE, pretty};

    fn shown(json: &str) -> String {
        Argument::new(&ShownArgument::new("a", json)).value.to_string()
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
        let value = shown("\"<script>\u{202e}\\u202e\"");
        assert_eq!(value, "<pre>&quot;&lt;script&gt;\\u202e\\u202e&quot;</pre>");
        assert_eq!(shown("2.50"), "<pre>2.50</pre>");
    }

    #[test]
    fn long_value_is_folded_with_its_size() {
        let value = shown(&format!("\"{}\"", "x".repeat(FOLD)));
        assert!(value.contains("<summary>1,002 characters</summary>"), "{value}");
        let value = shown(&format!("\"{}\"", "x".repeat(MAX_VALUE)));
        assert!(value.contains("65,538 characters, the first 65,536 of them"), "{value}");
        assert!(value.len() < MAX_VALUE + 300);
    }
}
