//! YAML frontmatter of a `SKILL.md`, as JSON.
//!
//! Clients compare the JSON of an entry with the YAML of the file. YAML without a unique JSON form
//! is rejected: aliases, tags, keys that are not text, and infinite numbers.

use outlive_wire::JsonObject;
use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, StrInput};
use serde_json::{Number, Value};

/// Maximum size of the YAML in bytes.
const MAX_FRONTMATTER: usize = 64 << 10;

/// Maximum nesting depth of lists and tables.
const MAX_NESTING: usize = 16;

type Result<T, E = String> = std::result::Result<T, E>;

/// Parses the frontmatter of a `SKILL.md`. The error describes the problem and its line.
pub(crate) fn parse(text: &str) -> Result<JsonObject> {
    let mut reader = Reader { parser: Parser::new_from_str(block(text)?) };
    loop {
        match reader.next()? {
            (Event::StreamStart | Event::DocumentStart(_), _) => {}
            (event @ Event::MappingStart(..), line) => {
                let Value::Object(fields) = reader.value(event, line, 0)? else { break };
                return Ok(fields);
            }
            _ => break,
        }
    }
    Err("the text between the `---` lines must be YAML of the form `name: value`".to_owned())
}

/// Returns the text between the first line, which must be `---`, and the next `---` line.
fn block(text: &str) -> Result<&str> {
    const MISSING: &str = "the file must start with a `---` line, YAML, and another `---` line";
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let rest =
        text.strip_prefix("---\n").or_else(|| text.strip_prefix("---\r\n")).ok_or(MISSING)?;
    let mut end = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end_matches([' ', '\t', '\r', '\n']) == "---" {
            return Ok(&rest[..end]);
        }
        end += line.len();
        if end > MAX_FRONTMATTER {
            return Err(format!("the YAML has more than {MAX_FRONTMATTER} bytes"));
        }
    }
    Err(MISSING.to_owned())
}

struct Reader<'t> {
    parser: Parser<'t, StrInput<'t>>,
}

impl<'t> Reader<'t> {
    /// Returns the next event and its line in the file.
    fn next(&mut self) -> Result<(Event<'t>, usize)> {
        let wrong = |error: ScanError| {
            format!("line {}: invalid YAML: {}", error.marker().line() + 1, error.info())
        };
        let (event, span) =
            self.parser.next_event().ok_or("the YAML ends early")?.map_err(wrong)?;
        // The `---` line precedes the YAML.
        Ok((event, span.start.line() + 1))
    }

    fn value(&mut self, event: Event<'t>, line: usize, depth: usize) -> Result<Value> {
        if depth > MAX_NESTING {
            return Err(format!("line {line}: values are nested deeper than {MAX_NESTING} levels"));
        }
        match event {
            Event::Scalar(text, style, _, None) => scalar(&text, style, line),
            Event::SequenceStart(_, None) => {
                let mut items = Vec::new();
                loop {
                    match self.next()? {
                        (Event::SequenceEnd, _) => return Ok(Value::Array(items)),
                        (event, line) => items.push(self.value(event, line, depth + 1)?),
                    }
                }
            }
            Event::MappingStart(_, None) => self.table(depth),
            Event::Alias(_) => {
                Err(format!("line {line}: aliases are not allowed; write the value"))
            }
            _ => Err(format!("line {line}: tags are not allowed; write the value without a tag")),
        }
    }

    fn table(&mut self, depth: usize) -> Result<Value> {
        let mut fields = JsonObject::new();
        loop {
            let (key, line) = match self.next()? {
                (Event::MappingEnd, _) => return Ok(Value::Object(fields)),
                (Event::Scalar(key, _, _, None), line) => (key.into_owned(), line),
                (_, line) => return Err(format!("line {line}: keys must be text")),
            };
            let (event, at) = self.next()?;
            let value = self.value(event, at, depth + 1)?;
            if fields.insert(key.clone(), value).is_some() {
                return Err(format!("line {line}: duplicate key `{key}`"));
            }
        }
    }
}

/// Parses a scalar. Only unquoted scalars can be something other than text (YAML 1.2, core schema).
fn scalar(text: &str, style: ScalarStyle, line: usize) -> Result<Value> {
    if style != ScalarStyle::Plain {
        return Ok(Value::String(text.to_owned()));
    }
    let number = |number: Option<Number>| {
        let what = || format!("line {line}: `{text}` is not a JSON number; put it in quotes");
        number.map(Value::Number).ok_or_else(what)
    };
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let based = |prefix: &str, base: u32| {
        text.strip_prefix(prefix).and_then(|digits| i64::from_str_radix(digits, base).ok())
    };
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Value::Null),
        "true" | "True" | "TRUE" => return Ok(Value::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Value::Bool(false)),
        ".nan" | ".NaN" | ".NAN" => return number(None),
        _ => {}
    }
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") {
        return number(None);
    }
    if digits(unsigned) {
        return number(text.trim_start_matches('+').parse::<i64>().ok().map(Number::from));
    }
    if let Some(whole) = based("0x", 16).or_else(|| based("0o", 8)) {
        return number(Some(Number::from(whole)));
    }
    if is_float(unsigned) {
        return number(text.parse::<f64>().ok().and_then(Number::from_f64));
    }
    Ok(Value::String(text.to_owned()))
}

/// Returns whether a text without its sign is a number with a decimal point or an exponent.
fn is_float(text: &str) -> bool {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let exponent_fits = exponent.is_none_or(|exponent| {
        let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        !exponent.is_empty() && digits(exponent)
    });
    let (whole, rest) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    digits(whole) && digits(rest) && !(whole.is_empty() && rest.is_empty()) && exponent_fits
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::parse;

    fn read(yaml: &str) -> Result<Value, String> {
        parse(&format!("---\n{yaml}---\nbody\n")).map(Value::Object)
    }

    #[test]
    fn frontmatter_with_every_kind_of_value_parses_to_json() {
        let yaml = "name: pdf\ndescription: >-\n  Two lines\n  of text\nquoted: \"a: b\"\nversion: '1.0'\n\
                    number: 1.5\nwhole: -7\nhex: 0x1F\nyes: true\nnothing:\ndate: 2026-07-28\nplain: 1.2.3\n\
                    metadata:\n  author: ann\n  tags: [a, \"b\"]\nlist:\n  - x\n  - y: z\nliteral: |\n  one\n  two\n";
        let expected = json!({
            "name": "pdf", "description": "Two lines of text", "quoted": "a: b", "version": "1.0",
            "number": 1.5, "whole": -7, "hex": 31, "yes": true, "nothing": null, "date": "2026-07-28",
            "plain": "1.2.3", "metadata": {"author": "ann", "tags": ["a", "b"]},
            "list": ["x", {"y": "z"}], "literal": "one\ntwo\n",
        });
        assert_eq!(read(yaml), Ok(expected));
    }

    #[test]
    fn frontmatter_without_json_form_is_rejected_with_its_line() {
        for (yaml, says) in [
            ("name: a\nname: b\n", "line 3: duplicate key `name`"),
            ("a: &x 1\nb: *x\n", "line 3: aliases are not allowed"),
            ("a: !!str 1\n", "line 2: tags are not allowed"),
            ("a: .inf\n", "line 2: `.inf` is not a JSON number"),
            ("a: 99999999999999999999\n", "is not a JSON number"),
            ("? [a]\n: b\n", "line 2: keys must be text"),
            ("a: b: c\n", "line 2: invalid YAML"),
            ("- a\n", "must be YAML of the form"),
            ("text\n", "must be YAML of the form"),
            ("", "must be YAML of the form"),
        ] {
            let error = read(yaml).expect_err(yaml);
            assert!(error.contains(says), "{yaml}: {error}");
        }
        for text in ["", "name: a\n", "---\nname: a\n", " ---\nname: a\n---\n"] {
            assert!(parse(text).unwrap_err().contains("must start with a `---` line"), "{text}");
        }
        assert!(parse("\u{feff}---\r\nname: a\r\n---").is_ok());
        assert!(
            parse(&format!("---\na: {}\n---\n", "x".repeat(70_000))).unwrap_err().contains("65536")
        );
        assert!(read(&format!("a: {}1{}\n", "[".repeat(40), "]".repeat(40))).is_err());
        assert!(read(&format!("a: {}\n", "[".repeat(60_000))).is_err());
    }
}
