//! Splits Rust into code, comments and string literals, line by line.
//!
//! It is not a parser, but enough that comments and strings do not mislead a rule about code.
use std::str::Chars;

/// A line of Rust.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) number: usize,
    /// The code, with `""` in place of every string and without comments.
    pub(super) code: String,
    /// The text of comments and doc comments, without the `//`.
    pub(super) comment: String,
    /// The string literals that start on this line, with escapes as written.
    pub(super) literals: Vec<String>,
    /// Whether the line belongs to a `#[cfg(test)] mod … { }`.
    pub(super) in_tests: bool,
}

/// The state of the scanner between two characters.
enum State {
    Code,
    LineComment,
    BlockComment { depth: usize },
    Text { hashes: Option<usize> },
}

pub(super) fn lines(text: &str) -> Vec<Line> {
    let mut lines = vec![Line { number: 1, ..Line::default() }];
    let mut state = State::Code;
    let mut literal = (0, String::new());
    let mut rest = text.chars();
    while let Some(char) = rest.next() {
        let ahead = rest.as_str();
        let at = lines.len() - 1;
        let line = &mut lines[at];
        match &mut state {
            State::Code => match char {
                '/' if ahead.starts_with('/') => {
                    skip_marks(&mut rest);
                    state = State::LineComment;
                }
                '/' if ahead.starts_with('*') => {
                    skip(&mut rest, 1);
                    state = State::BlockComment { depth: 1 };
                }
                '"' => {
                    literal = (at, String::new());
                    state = State::Text { hashes: raw_hashes(&line.code) };
                    line.code.push('"');
                }
                '\'' => {
                    skip(&mut rest, char_literal(ahead));
                    line.code.push('\'');
                }
                '\n' => {}
                char => line.code.push(char),
            },
            State::LineComment if char == '\n' => state = State::Code,
            State::LineComment => line.comment.push(char),
            State::BlockComment { depth } => {
                in_block_comment(char, &mut rest, depth, line);
                if *depth == 0 {
                    state = State::Code;
                }
            }
            State::Text { hashes } => {
                let end = "#".repeat(hashes.unwrap_or(0));
                if char == '"' && ahead.starts_with(&end) {
                    skip(&mut rest, end.len());
                    line.code.push('"');
                    lines[literal.0].literals.push(std::mem::take(&mut literal.1));
                    state = State::Code;
                } else {
                    literal.1.push(char);
                    literal.1.extend(escaped(&mut rest, char == '\\' && hashes.is_none()));
                }
            }
        }
        if char == '\n' {
            lines.push(Line { number: lines.len() + 1, ..Line::default() });
        }
    }
    if text.is_empty() || text.ends_with('\n') {
        lines.pop();
    }
    mark_tests(&mut lines);
    lines
}

/// Reads a character of a block comment and updates the nesting depth.
fn in_block_comment(char: char, rest: &mut Chars<'_>, depth: &mut usize, line: &mut Line) {
    let ahead = rest.as_str();
    if char == '*' && ahead.starts_with('/') {
        skip(rest, 1);
        *depth -= 1;
    } else if char == '/' && ahead.starts_with('*') {
        skip(rest, 1);
        *depth += 1;
    } else if char != '\n' {
        line.comment.push(char);
    }
}

/// Skips the remaining markers of a line comment.
fn skip_marks(rest: &mut Chars<'_>) {
    let ahead = rest.as_str();
    skip(rest, ahead.len() - ahead.trim_start_matches(['/', '!']).len());
}

/// Returns the escaped character, unless the line ends there.
fn escaped(rest: &mut Chars<'_>, is_escape: bool) -> Option<char> {
    if is_escape && !rest.as_str().starts_with('\n') { rest.next() } else { None }
}

fn skip(rest: &mut Chars<'_>, count: usize) {
    for _ in 0..count {
        rest.next();
    }
}

/// Number of `#` of a string after this code; `None` if it is not a raw string.
fn raw_hashes(code: &str) -> Option<usize> {
    let before = code.trim_end_matches('#');
    let hashes = code.len() - before.len();
    let prefix = before.rsplit(|char: char| !char.is_alphanumeric() && char != '_').next()?;
    matches!(prefix, "r" | "br" | "cr").then_some(hashes)
}

/// Length of a character literal after its `'`; 0 after the `'` of a lifetime.
fn char_literal(ahead: &str) -> usize {
    if let Some(escape) = ahead.strip_prefix('\\') {
        // The escaped character may itself be a `'`.
        return escape.chars().skip(1).position(|char| char == '\'').map_or(0, |end| end + 3);
    }
    if ahead.chars().nth(1) == Some('\'') { 2 } else { 0 }
}

/// Marks test modules, which start and end in the first column after rustfmt.
fn mark_tests(lines: &mut [Line]) {
    let mut announced = false;
    let mut inside = false;
    for line in lines {
        let code = line.code.as_str();
        if code.starts_with("#[cfg(test)]") || code.starts_with("#[cfg(all(test") {
            announced = true;
        }
        if announced && code.contains("mod ") && code.ends_with('{') {
            (announced, inside) = (false, true);
        } else if announced && !code.starts_with("#[") && !code.is_empty() {
            announced = false;
        }
        line.in_tests = inside || announced;
        if inside && code.starts_with('}') {
            inside = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::lines;

    /// The code of each line.
    fn code(text: &str) -> Vec<String> {
        lines(text).into_iter().map(|line| line.code).collect()
    }

    /// All string literals.
    fn literals(text: &str) -> Vec<String> {
        lines(text).into_iter().flat_map(|line| line.literals).collect()
    }

    #[test]
    fn comments_are_separated_from_code() {
        assert_eq!(code("a(); // b()\n/* c\n /* d */ e */ f();\n"), ["a(); ", "", " f();"]);
        assert_eq!(lines("//! Head.\n")[0].comment, " Head.");
    }

    #[test]
    fn strings_are_separated_from_code() {
        assert_eq!(code(r#"call("// not a comment", 1);"#), [r#"call("", 1);"#]);
        assert_eq!(literals(r#"call("tools/list", b"ping")"#), ["tools/list", "ping"]);
        assert_eq!(literals(r#"call("a\"b")"#), [r#"a\"b"#]);
    }

    #[test]
    fn raw_strings_end_at_matching_hashes() {
        assert_eq!(
            literals(r###"call(r#"a "quoted" word"#, r"\")"###),
            [r#"a "quoted" word"#, r"\"]
        );
    }

    #[test]
    fn multi_line_string_belongs_to_its_first_line() {
        let lines = lines("let a = \"one\ntwo\";\nb();\n");
        assert_eq!(lines[0].literals, ["one\ntwo"]);
        assert_eq!(lines[2].code, "b();");
        assert_eq!(lines[2].number, 3);
    }

    #[test]
    fn character_quotes_and_lifetimes_do_not_open_strings() {
        assert_eq!(
            literals(r#"let a: &'a str = if c == '"' || c == '\'' { "yes" } else { "no" };"#),
            ["yes", "no"]
        );
    }

    #[test]
    fn test_modules_are_marked_until_closing_brace() {
        let text = "fn a() {}\n\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n";
        let marked: Vec<bool> = lines(text).iter().map(|line| line.in_tests).collect();
        assert_eq!(marked, [false, false, true, true, true, true, false]);
    }

    #[test]
    fn test_module_in_separate_file_marks_nothing() {
        assert!(!lines("#[cfg(test)]\nmod tests;\nfn a() {}\n")[2].in_tests);
    }
}
