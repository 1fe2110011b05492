//! Finds the JSON pointer for a line and column, which are all that a serde error provides.

use super::subschemas::push_step;

/// Returns the pointer to the value that the parser read at `line` and `column`, as `serde_json`
/// counts them: from 1, columns in bytes.
///
/// The text was parsed up to that position before, so this function only follows its structure.
pub(super) fn path_at(text: &str, line: usize, column: usize) -> String {
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    // The column is that of the last byte read, and so also the number of bytes read.
    let end = (before + column).min(text.len());
    let mut open = Vec::new();
    let mut at = 0;
    let bytes = &text.as_bytes()[..end];
    while let Some(byte) = bytes.get(at) {
        at = match byte {
            b'"' => string(text, at, end, &mut open),
            b'{' => push(at, &mut open, Step::Object { name: None, in_value: false }),
            b'[' => push(at, &mut open, Step::Array { index: 0 }),
            b'}' | b']' => {
                open.pop();
                at + 1
            }
            b':' | b',' => turn(*byte, at, &mut open),
            _ => at + 1,
        };
    }
    pointer(&open)
}

/// A container that is not closed yet.
enum Step {
    Object { name: Option<String>, in_value: bool },
    Array { index: usize },
}

fn push(at: usize, open: &mut Vec<Step>, step: Step) -> usize {
    open.push(step);
    at + 1
}

/// Skips a string. Stores it if it is the name of a member.
fn string(text: &str, start: usize, end: usize, open: &mut [Step]) -> usize {
    let bytes = text.as_bytes();
    let mut close = start + 1;
    while close < end && bytes[close] != b'"' {
        close += if bytes[close] == b'\\' { 2 } else { 1 };
    }
    let after = (close + 1).min(end);
    if let Some(Step::Object { name, in_value: false }) = open.last_mut() {
        *name = text.get(start..after).and_then(|quoted| serde_json::from_str(quoted).ok());
    }
    after
}

/// Moves to the value of a member, or to the next member or item.
fn turn(byte: u8, at: usize, open: &mut [Step]) -> usize {
    match open.last_mut() {
        Some(Step::Object { in_value, .. }) if byte == b':' => *in_value = true,
        Some(Step::Object { name, in_value }) => (*name, *in_value) = (None, false),
        Some(Step::Array { index }) => *index += 1,
        None => {}
    }
    at + 1
}

fn pointer(open: &[Step]) -> String {
    let mut pointer = String::new();
    for step in open {
        match step {
            Step::Object { name: Some(name), .. } => push_step(&mut pointer, name),
            Step::Object { name: None, .. } => {}
            Step::Array { index } => push_step(&mut pointer, &index.to_string()),
        }
    }
    pointer
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only deserialization is tested")]
    struct Outer {
        a: u8,
        #[serde(default)]
        list: Vec<Inner>,
        #[serde(default)]
        #[serde(rename = "x/y")]
        odd: u8,
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only deserialization is tested")]
    struct Inner {
        b: bool,
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let error = serde_json::from_str::<Outer>(text).unwrap_err();
        assert_eq!(path_at(text, error.line(), error.column()), expected, "{error}");
    }

    #[test]
    fn serde_error_position_is_mapped_to_pointer() {
        check(r#"{"a":300}"#, "/a");
        check(r#"{"a":1.5}"#, "/a");
        check(r#"{"a": 300 }"#, "/a");
        check(r#"{"a":"\"}"}"#, "/a");
        check("{\n  \"list\": [],\n  \"a\": -1\n}", "/a");
        check(r#"{"a":1,"list":[{"b":true},{"b":7}]}"#, "/list/1/b");
        check(r#"{"a":1,"list":[{"b":true},{}]}"#, "/list/1");
        check(r#"{"a":1,"x/y":"é"}"#, "/x~1y");
        check("{}", "");
        check("[]", "");
    }

    #[test]
    fn position_outside_of_text_does_not_panic() {
        for (line, column) in [(0, 0), (1, 1000), (7, 7)] {
            path_at(r#"{"a":["é\"#, line, column);
        }
    }
}
