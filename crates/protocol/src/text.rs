//! Makes text of a peer safe to display.
//!
//! A peer chooses names, messages and results. Escape sequences in them could control a terminal,
//! bidirectional controls could reorder the surrounding text, and invisible characters could
//! imitate another text. These functions replace invisible characters with their code, as in
//! `\u{202e}`. Visible text stays unchanged, including right-to-left letters.

use std::{borrow::Cow, fmt::Write as _};

/// Returns whether a character is visible and does not affect the characters around it.
///
/// Controls, format characters (Unicode category `Cf`), line and paragraph separators, variation
/// selectors, fillers and noncharacters are not visible.
pub fn is_visible(char: char) -> bool {
    if char.is_ascii() {
        return !char.is_ascii_control();
    }
    !(char.is_control() || is_format(char) || is_blank(char) || is_noncharacter(char))
}

/// Makes a text visible on one line: line breaks and tabs become spaces.
///
/// For names, identifiers and values. Different texts look different, except for joiners inside
/// words and emoji, which are removed.
pub fn line(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_visible) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut before = None;
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\r' if chars.peek() == Some(&'\n') => {}
            '\n' | '\r' | '\t' => out.push(' '),
            char => push(&mut out, before, char, chars.peek().copied()),
        }
        before = Some(char);
    }
    Cow::Owned(out)
}

/// Makes a text visible and keeps its lines.
///
/// Line breaks and tabs stay, and a carriage return becomes a line break. Color sequences are
/// removed. Every other escape sequence is shown as characters.
pub fn lines(text: &str) -> Cow<'_, str> {
    if text.chars().all(|char| is_visible(char) || matches!(char, '\n' | '\t')) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let (mut before, mut at) = (None, 0);
    while let Some(char) = text[at..].chars().next() {
        if let Some(color) = color(&text[at..]) {
            at += color;
            continue;
        }
        at += char.len_utf8();
        let after = text[at..].chars().next();
        match char {
            '\r' if after == Some('\n') => {}
            // A carriage return at the end overwrites nothing.
            '\r' if after.is_none() => {}
            '\n' | '\r' => out.push('\n'),
            '\t' => out.push('\t'),
            char => push(&mut out, before, char, after),
        }
        before = Some(char);
    }
    Cow::Owned(out)
}

/// Escapes a text for HTML content and quoted attributes. Unlike the other functions, keeps
/// invisible characters.
pub fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for char in text.chars() {
        match char {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            char => out.push(char),
        }
    }
    out
}

/// Makes a JSON text visible. It stays valid JSON: invisible characters in strings become `\uXXXX`.
pub fn json(text: &str) -> Cow<'_, str> {
    let is_layout = |char| matches!(char, '\n' | '\r' | '\t');
    if text.chars().all(|char| is_visible(char) || is_layout(char)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for char in text.chars() {
        if is_visible(char) || is_layout(char) {
            out.push(char);
            continue;
        }
        for unit in char.encode_utf16(&mut [0; 2]) {
            // Writing to memory does not fail.
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    Cow::Owned(out)
}

fn push(out: &mut String, before: Option<char>, char: char, after: Option<char>) {
    if is_visible(char) {
        out.push(char);
    } else if !is_joiner(before, char, after) {
        // Writing to memory does not fail.
        let _ = write!(out, "\\u{{{:x}}}", u32::from(char));
    }
}

/// Returns the length of a leading escape sequence that only sets colors or clears to the end of
/// the line.
fn color(text: &str) -> Option<usize> {
    let rest = text.strip_prefix("\u{1b}[")?;
    let end = rest.find(|char: char| !(char.is_ascii_digit() || matches!(char, ';' | ':')))?;
    matches!(rest.as_bytes()[end], b'm' | b'K').then_some("\u{1b}[".len() + end + 1)
}

/// Returns whether an invisible character is a joiner that its neighbors require, so that removing
/// it hides nothing.
fn is_joiner(before: Option<char>, char: char, after: Option<char>) -> bool {
    let is_letter = |char: Option<char>| {
        matches!(
            char,
            Some('\u{620}'..='\u{dff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17d3}')
        )
    };
    match char {
        // Selects the presentation of an emoji.
        '\u{fe0e}' | '\u{fe0f}' => before.is_some_and(is_pictograph) || after == Some('\u{20e3}'),
        // Joins several emoji into one.
        '\u{200d}' if before.is_some_and(|it| is_pictograph(it) || it == '\u{fe0f}') => {
            after.is_some_and(is_pictograph)
        }
        // Shapes Arabic and Indic letters.
        '\u{200c}' | '\u{200d}' => is_letter(before) && is_letter(after),
        _ => false,
    }
}

fn is_pictograph(char: char) -> bool {
    matches!(char, '©' | '®' | '\u{203c}'..='\u{2049}' | '\u{2122}'..='\u{3299}'
        | '\u{1f000}'..='\u{1faff}')
}

/// Returns whether a character is in the Unicode category `Cf`, or separates lines or paragraphs.
fn is_format(char: char) -> bool {
    matches!(char, '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}'
        | '\u{890}'..='\u{891}' | '\u{8e2}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
        | '\u{fff0}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Returns whether a character has no glyph: variation selectors, fillers, the grapheme joiner.
fn is_blank(char: char) -> bool {
    matches!(char, '\u{34f}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}')
}

fn is_noncharacter(char: char) -> bool {
    matches!(char, '\u{fdd0}'..='\u{fdef}') || u32::from(char) & 0xfffe == 0xfffe
}

#[cfg(test)]
mod tests {
    use super::{html, is_visible, json, line, lines};

    #[test]
    fn escape_sequences_are_shown_as_characters() {
        assert_eq!(line("a\u{1b}[2Jb"), "a\\u{1b}[2Jb");
        assert_eq!(line("\u{1b}]0;title\u{7}x\u{9b}2Jy"), "\\u{1b}]0;title\\u{7}x\\u{9b}2Jy");
        assert_eq!(lines("\u{1b}[8mhidden\u{1b}[2Jgone"), "hidden\\u{1b}[2Jgone");
        assert_eq!(lines("\u{1b}[1;31merror\u{1b}[0m\u{1b}[K: a\n"), "error: a\n");
        assert_eq!(lines("\u{1b}"), "\\u{1b}");
        assert_eq!(lines("\u{1b}[3"), "\\u{1b}[3");
    }

    #[test]
    fn direction_controls_are_shown_and_right_to_left_letters_stay() {
        assert_eq!(line("user\u{202e}txt.exe"), "user\\u{202e}txt.exe");
        for char in "\u{200e}\u{200f}\u{61c}\u{202a}\u{202d}\u{2066}\u{2069}".chars() {
            assert_eq!(line(&char.to_string()), format!("\\u{{{:x}}}", u32::from(char)));
        }
        assert_eq!(line("שלום مرحبا"), "שלום مرحبا");
    }

    #[test]
    fn invisible_characters_are_shown() {
        for hidden in "\u{ad}\u{34f}\u{200b}\u{2060}\u{2064}\u{feff}\u{3164}\u{e0041}\u{e0100}\u{fe01}\u{2028}\u{fdd0}".chars() {
            let shown = line(&format!("pay{hidden}pal")).into_owned();
            assert_eq!(shown, format!("pay\\u{{{:x}}}pal", u32::from(hidden)));
            assert!(shown.chars().all(is_visible));
        }
        assert_eq!(line("a\u{fe0f}b\u{200d}c"), "a\\u{fe0f}b\\u{200d}c");
    }

    #[test]
    fn joiners_in_words_and_emoji_are_removed() {
        assert_eq!(line("I ❤\u{fe0f} 👩\u{200d}🚀"), "I ❤ 👩🚀");
        assert_eq!(line("می\u{200c}خواهم"), "میخواهم");
        assert_eq!(line("grün 日本 é naïve"), "grün 日本 é naïve");
    }

    #[test]
    fn line_breaks_become_spaces_in_line_and_stay_in_lines() {
        assert_eq!(line("a\r\nb\tc\rd\ne"), "a b c d e");
        assert_eq!(lines("a\r\nb\tc\rd\ne\r"), "a\nb\tc\nd\ne");
    }

    #[test]
    fn json_with_invisible_characters_stays_equal() {
        let value = serde_json::json!({"a\u{202e}": "b\u{9b}\u{e0041}\u{7f}", "c": 1});
        let text = serde_json::to_string_pretty(&value).unwrap();
        let shown = json(&text);
        assert!(shown.chars().all(|char| is_visible(char) || char == '\n'), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }

    #[test]
    fn markup_becomes_text_in_html() {
        let text = "<b a='\"'>&amp;\n é";
        assert_eq!(html(text), "&lt;b a=&#39;&quot;&#39;&gt;&amp;amp;\n é");
    }

    #[test]
    fn output_has_only_visible_characters() {
        for number in 0..=0x10_ffff {
            // Visible characters stay unchanged.
            let Some(char) = char::from_u32(number).filter(|char| !is_visible(*char)) else {
                continue;
            };
            for text in [char.to_string(), format!("❤{char}❤"), format!("ب{char}ب")] {
                assert!(line(&text).chars().all(is_visible), "{number:x}");
                let shown = lines(&text);
                assert!(shown.chars().all(|it| is_visible(it) || matches!(it, '\n' | '\t')));
            }
        }
    }
}
