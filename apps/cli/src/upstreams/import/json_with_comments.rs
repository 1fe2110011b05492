//! Converts JSON with comments and trailing commas, as editors allow it, to plain JSON.

/// Replaces comments and trailing commas with spaces. Every other byte keeps its place, so that the
/// line of a syntax error is the line in the file.
pub(super) fn plain_json(text: &str) -> String {
    let mut plain = text.trim_start_matches('\u{feff}').as_bytes().to_vec();
    let mut last_comma = None;
    let mut at = 0;
    while at < plain.len() {
        let end = match (plain[at], plain.get(at + 1)) {
            (b'"', _) => string_end(&plain, at),
            (b'/', Some(b'/')) => find(&plain, at, b"\n").unwrap_or(plain.len()),
            (b'/', Some(b'*')) => find(&plain, at + 2, b"*/").map_or(plain.len(), |end| end + 2),
            _ => at + 1,
        };
        match plain[at] {
            b'/' if end > at + 1 => blank(&mut plain[at..end]),
            b',' => last_comma = Some(at),
            b'}' | b']' => {
                if let Some(comma) = last_comma.take() {
                    plain[comma] = b' ';
                }
            }
            byte if byte.is_ascii_whitespace() => {}
            _ => last_comma = None,
        }
        at = end;
    }
    String::from_utf8(plain).unwrap_or_else(|_| text.to_owned())
}

/// Returns the end of the string that starts at `start`.
fn string_end(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

fn find(text: &[u8], from: usize, wanted: &[u8]) -> Option<usize> {
    let rest = text.get(from..)?;
    rest.windows(wanted.len()).position(|window| window == wanted).map(|place| from + place)
}

/// Overwrites a comment with spaces, and keeps its line breaks.
fn blank(comment: &mut [u8]) {
    for byte in comment.iter_mut().filter(|byte| **byte != b'\n') {
        *byte = b' ';
    }
}

#[cfg(test)]
mod tests {
    use proptest::{prelude::any, proptest};
    use serde_json::{Value, json};

    use super::plain_json;

    fn parsed(text: &str) -> Value {
        serde_json::from_str(&plain_json(text)).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    #[test]
    fn comments_and_trailing_commas_are_removed() {
        let text = "\u{feff}// head\n{\n  /* a, b */ \"a\": [1, 2, /* last */ ], // end }\n  \"b\": {\"c\": null,},\n}\n// tail";
        assert_eq!(parsed(text), json!({"a": [1, 2], "b": {"c": null}}));
    }

    #[test]
    fn strings_that_resemble_comments_are_unchanged() {
        let text = r#"{"url": "https://a/b", "c": "/* no */", "d": "\"//,}", "e": ",]"}"#;
        assert_eq!(
            parsed(text),
            json!({"url": "https://a/b", "c": "/* no */", "d": "\"//,}", "e": ",]"})
        );
    }

    #[test]
    fn syntax_error_has_line_of_file() {
        let text = "{\n  // one\n  /* two\n     three */\n  \"a\": oops\n}";
        let error = serde_json::from_str::<Value>(&plain_json(text)).unwrap_err();
        assert_eq!(error.line(), 5);
    }

    proptest! {
        #[test]
        fn plain_json_is_unchanged(text in any::<String>(), key in any::<String>()) {
            let value = json!({ key: [text.clone(), {"nested": text}] });
            assert_eq!(parsed(&value.to_string()), value);
        }

        #[test]
        fn any_text_has_a_result(text in any::<String>()) {
            plain_json(&text);
        }
    }
}
