//! Decodes the output of commands into displayable text.

/// Decoder of lines. Long lines arrive in pieces, which may end inside a character.
#[derive(Debug, Default)]
pub(super) struct Decoder(Vec<u8>);

impl Decoder {
    /// Decodes one piece. Replaces invalid bytes and NUL, which some clients cannot store, with
    /// U+FFFD.
    pub(super) fn decode(&mut self, mut bytes: Vec<u8>, ended: bool) -> String {
        if !self.0.is_empty() {
            bytes.splice(0..0, self.0.drain(..));
        }
        if !ended {
            self.0 = bytes.split_off(bytes.len() - unfinished(&bytes));
        } else if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
        String::from_utf8_lossy(&bytes).replace('\0', "\u{fffd}")
    }

    /// Returns the rest of an incomplete character at the end of the output.
    pub(super) fn finish(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.0)).into_owned()
    }
}

/// Returns the number of bytes at the end that start a character but do not complete it.
fn unfinished(bytes: &[u8]) -> usize {
    let last = &bytes[bytes.len().saturating_sub(3)..];
    let begins = last.iter().rposition(|byte| *byte >= 0xC0);
    let Some(begin) = begins else { return 0 };
    let needs = match last[begin] {
        0xF0.. => 4,
        0xE0.. => 3,
        _ => 2,
    };
    let has = last.len() - begin;
    if has < needs { has } else { 0 }
}

/// Shortens a text to one line for a status message, without control characters.
pub(super) fn one_line(text: &str) -> String {
    const LONGEST: usize = 200;
    let mut plain = String::new();
    let mut chars = text.chars();
    while let Some(letter) = chars.next() {
        match letter {
            // Skip an escape sequence, such as a color, up to its final letter.
            '\u{1b}' => {
                let _ = chars.by_ref().find(char::is_ascii_alphabetic);
            }
            letter if letter.is_control() => {}
            letter => plain.push(letter),
        }
    }
    match plain.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &plain[..end]),
        None => plain,
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::any, proptest};

    use super::{Decoder, one_line};

    proptest! {
        #[test]
        fn decoder_of_pieces_returns_whole_text(text in ".{0,40}", cuts in vec(any::<proptest::sample::Index>(), 0..4)) {
            let text = text.replace(['\0', '\r'], "");
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            cuts.sort_unstable();
            let (mut decoder, mut read, mut from) = (Decoder::default(), String::new(), 0);
            for cut in cuts {
                read += &decoder.decode(bytes[from..cut].to_vec(), false);
                from = cut;
            }
            read += &decoder.decode(bytes[from..].to_vec(), true);
            assert_eq!(read, text);
        }
    }

    #[test]
    fn decoder_replaces_invalid_bytes_and_nul() {
        let mut decoder = Decoder::default();
        assert_eq!(decoder.decode(b"a\xff\0b\r".to_vec(), true), "a\u{fffd}\u{fffd}b");
    }

    #[test]
    fn status_line_is_short_and_plain() {
        assert_eq!(one_line("\u{1b}[31mred\u{1b}[0m\tand\u{7}"), "redand");
        assert_eq!(one_line(&"x".repeat(500)).chars().count(), 201);
    }
}
