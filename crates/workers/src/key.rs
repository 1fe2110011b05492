//! Journal keys of messages: parts joined by `/`, with `\` before `/`, `\` and `#`.

use outlive::server::durable::Key;

/// Maximum bytes of a key.
pub(crate) const MAX_KEY: usize = 1_024;

/// Returns the journal key of a message.
///
/// # Errors
///
/// Returns the reason why the text is not a key.
pub(crate) fn read_key(text: &str) -> Result<Key, String> {
    if !(1..=MAX_KEY).contains(&text.len()) {
        return Err(format!("a key has 1 to {MAX_KEY} bytes, and this one has {}", text.len()));
    }
    let mut parts = vec![String::new()];
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        let part = match char {
            '/' => {
                parts.push(String::new());
                continue;
            }
            '#' => return Err(format!("the key `{text}` has a `#` without `\\` before it")),
            '\\' => match chars.next() {
                Some(escaped @ ('/' | '\\' | '#')) => escaped,
                _ => {
                    return Err(format!(
                        "the key `{text}` has a `\\` that is not before `/`, `\\` or `#`"
                    ));
                }
            },
            other => other,
        };
        parts.last_mut().expect("there is a first part").push(part);
    }
    Ok(Key::parts(parts))
}

#[cfg(test)]
mod tests {
    use super::{MAX_KEY, read_key};

    #[test]
    fn key_is_read_as_it_was_written() {
        for text in ["build", "push/eu", r"push/eu\/1", r"\\/\#", "a//b", "ü/☃"] {
            assert_eq!(read_key(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn invalid_key_is_rejected_with_reason() {
        for (text, reason) in [
            ("", "1 to 1024 bytes"),
            ("a#once", "`#` without"),
            ("#call", "`#` without"),
            (r"a\", "not before"),
            (r"a\b", "not before"),
        ] {
            let error = read_key(text).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
        assert!(read_key(&"x".repeat(MAX_KEY + 1)).is_err());
    }
}
