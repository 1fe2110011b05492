//! Text of upstreams in messages: visible, short, and without secrets.

/// Longest text of an upstream in a message.
const MAX_CHARS: usize = 300;

/// Characters of a word that may be a token.
const TOKEN_CHARS: usize = 24;

/// Returns a text of an upstream as one visible line of at most 300 characters.
pub(crate) fn excerpt(text: &str) -> String {
    let line = outlive::text::line(text);
    match line.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.into_owned(),
    }
}

/// Returns a line of standard error for clients: as [`excerpt`], without words that resemble a
/// token.
pub(crate) fn without_tokens(text: &str) -> String {
    let line = outlive::text::line(text);
    let words: Vec<&str> = line
        .split(' ')
        .map(|word| if resembles_token(word) { "[removed]" } else { word })
        .collect();
    excerpt(&words.join(" "))
}

/// Returns whether a word is long and has letters and digits, as keys and tokens do.
fn resembles_token(word: &str) -> bool {
    let value = word.rsplit(['=', ':']).next().unwrap_or(word);
    let value = value.trim_matches(|char: char| !char.is_ascii_alphanumeric());
    let is_token_char =
        |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-' | '.' | '+' | '=');
    value.len() >= TOKEN_CHARS
        && value.chars().all(is_token_char)
        && value.chars().any(|char| char.is_ascii_digit())
        && value.chars().any(|char| char.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpt_is_short_and_visible() {
        assert!(excerpt("a\n\u{1b}[31mb").chars().all(|char| !char.is_control()));
        assert_eq!(excerpt(&"x".repeat(400)).chars().count(), 301);
    }

    #[test]
    fn words_like_tokens_are_removed() {
        let line =
            "Error: key=sk-live-51Habcdefghij0123456789 rejected at /usr/lib/node_modules/x.js";
        let shown = without_tokens(line);
        assert!(!shown.contains("51Habc"), "{shown}");
        assert!(shown.contains("rejected at /usr/lib/node_modules/x.js"));
    }
}
