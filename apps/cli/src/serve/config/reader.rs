//! Reads a TOML file section by section, and knows the line of everything it reads.
//!
//! A section remembers which keys it was asked for, so that what is left over is a mistake of the
//! author, and can be answered with the keys that there are.

use std::{borrow::Cow, fmt, ops::Range, path::Path};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use crate::trouble::Trouble;

/// Something in the file is wrong: where, what, and what to write instead.
#[derive(Debug)]
pub(crate) struct Problem {
    line: usize,
    what: String,
    remedy: Option<String>,
}

pub(crate) type Result<T, E = Problem> = std::result::Result<T, E>;

impl Problem {
    pub(crate) fn at(line: usize, what: impl fmt::Display) -> Self {
        Self { line, what: what.to_string(), remedy: None }
    }

    pub(crate) fn remedy(mut self, remedy: impl fmt::Display) -> Self {
        self.remedy = Some(remedy.to_string());
        self
    }

    /// What to write, if it is not known better.
    pub(crate) fn or_remedy(self, remedy: impl fmt::Display) -> Self {
        if self.remedy.is_some() { self } else { self.remedy(remedy) }
    }

    /// Says it for the file it is in.
    pub(crate) fn in_file(self, file: &Path) -> Trouble {
        let trouble =
            Trouble::usage(format_args!("{}:{}: {}", file.display(), self.line, self.what));
        match self.remedy {
            Some(remedy) => trouble.remedy(remedy),
            None => trouble,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

/// Turns places of the text into lines.
#[derive(Clone, Copy)]
struct Lines<'t>(&'t str);

impl Lines<'_> {
    fn of(self, span: &Range<usize>) -> usize {
        let before = self.0.get(..span.start).unwrap_or(self.0);
        before.bytes().filter(|byte| *byte == b'\n').count() + 1
    }
}

/// A value, and the line it stands in.
pub(crate) struct Value<'t> {
    value: DeValue<'t>,
    pub(crate) line: usize,
    lines: Lines<'t>,
    /// What it is the value of, as the author would say it: `tools.render.command`.
    path: String,
}

impl<'t> Value<'t> {
    /// Not what was expected.
    pub(crate) fn unfit(&self, wanted: &str) -> Problem {
        Problem::at(
            self.line,
            format_args!("`{}` must be {wanted}, and is {}", self.path, self.kind()),
        )
    }

    fn kind(&self) -> &'static str {
        match &self.value {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "an integer",
            DeValue::Float(_) => "a number",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "an array",
            DeValue::Table(_) => "a table",
        }
    }

    pub(crate) fn is_string(&self) -> bool {
        matches!(self.value, DeValue::String(_))
    }

    pub(crate) fn is_array(&self) -> bool {
        matches!(self.value, DeValue::Array(_))
    }

    pub(crate) fn is_table(&self) -> bool {
        matches!(self.value, DeValue::Table(_))
    }

    pub(crate) fn items(self) -> Result<Vec<Value<'t>>> {
        let Self { value, lines, path, .. } = self;
        match value {
            DeValue::Array(items) => {
                let items = items.into_iter();
                Ok(items.map(|item| Value::new(item, lines, path.clone())).collect())
            }
            value => Err(Value { value, line: self.line, lines, path }.unfit("an array")),
        }
    }

    pub(crate) fn section(self) -> Result<Section<'t>> {
        let Self { value, line, lines, path } = self;
        match value {
            DeValue::Table(table) => Ok(Section { table, line, lines, path, asked: Vec::new() }),
            value => Err(Value { value, line, lines, path }.unfit("a table")),
        }
    }

    /// The same value as JSON, for what is handed on without being looked at.
    pub(crate) fn json(self) -> Result<serde_json::Value> {
        use serde_json::Value as Json;
        let unfit = self.unfit("text, a number, true or false, an array or a table");
        Ok(match self.value {
            DeValue::String(_) => Json::String(String::read(self)?),
            DeValue::Integer(_) => Json::from(i64::read(self)?),
            DeValue::Float(_) => {
                serde_json::Number::from_f64(f64::read(self)?).map(Json::Number).ok_or(unfit)?
            }
            DeValue::Boolean(value) => Json::Bool(value),
            DeValue::Datetime(_) => return Err(unfit),
            DeValue::Array(_) => {
                Json::Array(self.items()?.into_iter().map(Value::json).collect::<Result<_>>()?)
            }
            DeValue::Table(_) => {
                let entries = self.section()?.entries().into_iter();
                Json::Object(
                    entries
                        .map(|(name, value)| Ok((name, value.json()?)))
                        .collect::<Result<_>>()?,
                )
            }
        })
    }

    fn new(value: Spanned<DeValue<'t>>, lines: Lines<'t>, path: String) -> Self {
        let line = lines.of(&value.span());
        Self { value: value.into_inner(), line, lines, path }
    }
}

/// A type that can stand in the file.
pub(crate) trait Read: Sized {
    fn read(value: Value<'_>) -> Result<Self>;
}

impl Read for String {
    fn read(value: Value<'_>) -> Result<Self> {
        match value.value {
            DeValue::String(text) => Ok(text.into_owned()),
            _ => Err(value.unfit("a string")),
        }
    }
}

impl Read for bool {
    fn read(value: Value<'_>) -> Result<Self> {
        match value.value {
            DeValue::Boolean(flag) => Ok(flag),
            _ => Err(value.unfit("true or false")),
        }
    }
}

impl Read for i64 {
    fn read(value: Value<'_>) -> Result<Self> {
        match &value.value {
            DeValue::Integer(digits) => i64::from_str_radix(digits.as_str(), digits.radix())
                .map_err(|_| value.unfit("an integer of at most 64 bits")),
            _ => Err(value.unfit("an integer")),
        }
    }
}

impl Read for u32 {
    fn read(value: Value<'_>) -> Result<Self> {
        let unfit = value.unfit("an integer from 1 to 4294967295");
        i64::read(value)?.try_into().ok().filter(|number| *number > 0).ok_or(unfit)
    }
}

impl Read for f64 {
    fn read(value: Value<'_>) -> Result<Self> {
        let number = match &value.value {
            DeValue::Float(digits) => digits.as_str().replace('_', "").parse().ok(),
            DeValue::Integer(digits) => digits.as_str().parse().ok(),
            _ => None,
        };
        number.filter(|number: &f64| number.is_finite()).ok_or_else(|| value.unfit("a number"))
    }
}

impl<T: Read> Read for Vec<T> {
    fn read(value: Value<'_>) -> Result<Self> {
        value.items()?.into_iter().map(T::read).collect()
    }
}

/// A value that is still needed with its line.
#[derive(Clone, Debug)]
pub(crate) struct At<T> {
    pub(crate) value: T,
    pub(crate) line: usize,
}

impl<T: Read> Read for At<T> {
    fn read(value: Value<'_>) -> Result<Self> {
        let line = value.line;
        Ok(Self { value: T::read(value)?, line })
    }
}

/// A table of the file.
pub(crate) struct Section<'t> {
    table: DeTable<'t>,
    pub(crate) line: usize,
    lines: Lines<'t>,
    path: String,
    asked: Vec<&'static str>,
}

impl<'t> Section<'t> {
    /// The whole file.
    pub(crate) fn of(text: &'t str) -> Result<Self> {
        let lines = Lines(text);
        let table = DeTable::parse(text).map_err(|error| {
            let line = error.span().map_or(1, |span| lines.of(&span));
            Problem::at(line, error.message().trim_end())
                .remedy("the file must be TOML; strings stand in quotes, tables in [brackets]")
        })?;
        Ok(Self {
            table: table.into_inner(),
            line: 1,
            lines,
            path: String::new(),
            asked: Vec::new(),
        })
    }

    /// A table that is not there.
    pub(crate) fn empty() -> Self {
        let (table, lines) = (DeTable::new(), Lines(""));
        Self { table, line: 1, lines, path: String::new(), asked: Vec::new() }
    }

    /// Where it stands, as the author would say it.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The value of a key, if it is there.
    pub(crate) fn take(&mut self, key: &'static str) -> Option<Value<'t>> {
        self.asked.push(key);
        let value = self.table.remove(key)?;
        Some(Value::new(value, self.lines, self.join(key)))
    }

    /// The value of a key, read, if it is there.
    pub(crate) fn read<T: Read>(&mut self, key: &'static str) -> Result<Option<T>> {
        self.take(key).map(T::read).transpose()
    }

    /// A table inside, if it is there.
    pub(crate) fn section(&mut self, key: &'static str) -> Result<Option<Section<'t>>> {
        self.take(key).map(Value::section).transpose()
    }

    /// A key that has to be there is not; perhaps it was meant by one that nobody knows.
    pub(crate) fn lacks(&self, key: &'static str, what: impl fmt::Display) -> Problem {
        let meant = self.table.keys().find(|written| nearest(written.get_ref(), &[key]).is_some());
        match meant {
            Some(written) => self.unknown(written),
            None => Problem::at(self.line, what),
        }
    }

    /// What is inside, whatever it is called; in the order of the file.
    pub(crate) fn entries(self) -> Vec<(String, Value<'t>)> {
        let Self { table, lines, path, .. } = self;
        let entry = |(key, value): (Spanned<Cow<'t, str>>, Spanned<DeValue<'t>>)| {
            let name = key.into_inner().into_owned();
            let path = join(&path, &name);
            (name, Value::new(value, lines, path))
        };
        table.into_iter().map(entry).collect()
    }

    /// Nothing may be left that nobody has asked for. Returns what was asked for.
    pub(crate) fn finish(self) -> Result<Vec<&'static str>> {
        match self.table.keys().next() {
            None => Ok(self.asked),
            Some(key) => Err(self.unknown(key)),
        }
    }

    fn unknown(&self, key: &Spanned<Cow<'t, str>>) -> Problem {
        let line = self.lines.of(&key.span());
        let place =
            if self.path.is_empty() { "here".to_owned() } else { format!("in [{}]", self.path) };
        let problem = Problem::at(line, format_args!("`{}` means nothing {place}", key.get_ref()));
        problem.remedy(match nearest(key.get_ref(), &self.asked) {
            Some(meant) => format!("`{meant}`?"),
            None => format!("one of: {}", self.asked.join(", ")),
        })
    }

    fn join(&self, key: &str) -> String {
        join(&self.path, key)
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// What the author probably meant: a key that is one slip away.
fn nearest<'k>(written: &str, keys: &[&'k str]) -> Option<&'k str> {
    let plain = |text: &str| text.to_lowercase().replace('-', "_");
    let written = plain(written);
    keys.iter().copied().find(|key| *key == written || is_one_slip(&written, key))
}

/// Whether one letter is added, missing or another, or two have changed places.
fn is_one_slip(left: &str, right: &str) -> bool {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    let same = left.iter().zip(right).take_while(|(left, right)| left == right).count();
    let (left, right) = (&left[same..], &right[same..]);
    let end =
        left.iter().rev().zip(right.iter().rev()).take_while(|(left, right)| left == right).count();
    match (left.len() - end, right.len() - end) {
        (0 | 1, 0 | 1) => true,
        (2, 2) => left[0] == right[1] && left[1] == right[0],
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{Section, is_one_slip};

    #[test]
    fn a_key_nobody_asked_for_is_found_with_its_line() {
        let mut file = Section::of("[server]\nname = \"x\"\nlsiten = \"y\"\n").expect("is TOML");
        let mut server = file.section("server").expect("is a table").expect("is there");
        assert_eq!(server.read::<String>("name").expect("is a string").as_deref(), Some("x"));
        assert!(server.take("listen").is_none());
        let problem = server.finish().expect_err("one is left");
        assert_eq!(problem.to_string(), "line 3: `lsiten` means nothing in [server]");
        assert_eq!(problem.remedy.as_deref(), Some("`listen`?"));
    }

    #[test]
    fn what_is_no_toml_says_where() {
        let Err(problem) = Section::of("a = 1\nb = oops\n") else { panic!("that is no TOML") };
        assert_eq!(problem.line, 2, "{problem}");
    }

    #[test]
    fn slips_are_slips_of_one_key() {
        for (written, meant) in [("comand", "command"), ("commmand", "command"), ("evn", "env")] {
            assert!(is_one_slip(written, meant), "{written}");
        }
        assert!(!is_one_slip("folder", "command"));
    }
}
