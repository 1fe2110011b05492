//! Reads a TOML file section by section, with the line of every value.
//!
//! A section records the keys that the program requests, and their schemas. The remaining keys are
//! mistakes of the author. A test generates the JSON Schema of the file from the requested keys.
//!
//! The reader collects mistakes, so that the author sees all at once. An invalid value is reported
//! and counts as absent.

use std::{borrow::Cow, cell::RefCell, fmt, ops::Range, rc::Rc};

use serde_json::json;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::problem::Problems;
pub(crate) use super::problem::{Problem, Result};

/// Mistakes of a file, collected while it is read.
#[derive(Clone, Debug, Default)]
pub(super) struct Report(Rc<RefCell<Vec<Problem>>>);

impl Report {
    /// Returns all mistakes so far.
    pub(super) fn problems(&self) -> Vec<Problem> {
        self.0.borrow().clone()
    }

    /// Adds a mistake, unless it is already there.
    pub(super) fn add(&self, problem: Problem) {
        let mut known = self.0.borrow_mut();
        if !known.contains(&problem) {
            known.push(problem);
        }
    }
}

/// A key of a table, and the JSON Schema of its values.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) schema: serde_json::Value,
}

/// Converts offsets in the text to line numbers.
#[derive(Clone, Copy)]
struct Lines<'t>(&'t str);

impl Lines<'_> {
    fn of(self, span: &Range<usize>) -> usize {
        let before = self.0.get(..span.start).unwrap_or(self.0);
        before.bytes().filter(|byte| *byte == b'\n').count() + 1
    }
}

/// A value and its line.
pub(crate) struct Value<'t> {
    value: DeValue<'t>,
    pub(crate) line: usize,
    lines: Lines<'t>,
    /// Path of the value, such as `tools.render.command`.
    path: String,
    report: Report,
}

impl<'t> Value<'t> {
    /// Returns the collector of mistakes for the file.
    pub(super) fn reported(&self) -> Report {
        self.report.clone()
    }

    /// Returns the mistake for a value of the wrong type or format.
    pub(crate) fn unfit(&self, wanted: &str) -> Problem {
        Problem::at(
            self.line,
            format_args!("`{}` must be {wanted}, but is {}", self.path, self.shown()),
        )
    }

    /// Formats the value for a message.
    fn shown(&self) -> String {
        match &self.value {
            DeValue::String(text) => format!("the string {}", quoted(text)),
            DeValue::Integer(digits) => format!("the integer {digits}"),
            DeValue::Float(digits) => format!("the number {digits}"),
            DeValue::Boolean(flag) => flag.to_string(),
            DeValue::Datetime(date) => format!("the date {date}"),
            DeValue::Array(_) => "an array".to_owned(),
            DeValue::Table(_) => "a table".to_owned(),
        }
    }

    pub(crate) fn is_string(&self) -> bool {
        matches!(self.value, DeValue::String(_))
    }

    /// Returns the text of a string.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            DeValue::String(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn is_array(&self) -> bool {
        matches!(self.value, DeValue::Array(_))
    }

    pub(crate) fn is_table(&self) -> bool {
        matches!(self.value, DeValue::Table(_))
    }

    pub(crate) fn items(self) -> Result<Vec<Value<'t>>> {
        match self.value {
            DeValue::Array(items) => {
                let value = |item| Value::new(item, self.lines, self.path.clone(), &self.report);
                Ok(items.into_iter().map(value).collect())
            }
            _ => Err(self.unfit("an array")),
        }
    }

    pub(crate) fn section(self) -> Result<Section<'t>> {
        match self.value {
            DeValue::Table(table) => {
                let Self { line, lines, path, report, .. } = self;
                Ok(Section { table, line, lines, path, asked: Vec::new(), report })
            }
            _ => Err(self.unfit("a table")),
        }
    }

    /// Converts the value to JSON.
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

    fn new(value: Spanned<DeValue<'t>>, lines: Lines<'t>, path: String, report: &Report) -> Self {
        let line = lines.of(&value.span());
        Self { value: value.into_inner(), line, lines, path, report: report.clone() }
    }
}

/// Quotes a text, and truncates a long one.
fn quoted(text: &str) -> String {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// A type that can be read from the file.
pub(crate) trait Read: Sized {
    fn read(value: Value<'_>) -> Result<Self>;

    /// Returns the JSON Schema of the values, for editors.
    fn schema() -> serde_json::Value {
        json!({})
    }
}

impl Read for String {
    fn read(value: Value<'_>) -> Result<Self> {
        match value.value {
            DeValue::String(text) => Ok(text.into_owned()),
            _ => Err(value.unfit("a string")),
        }
    }

    fn schema() -> serde_json::Value {
        json!({"type": "string"})
    }
}

impl Read for bool {
    fn read(value: Value<'_>) -> Result<Self> {
        match value.value {
            DeValue::Boolean(flag) => Ok(flag),
            _ => Err(value.unfit("true or false")),
        }
    }

    fn schema() -> serde_json::Value {
        json!({"type": "boolean"})
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

    fn schema() -> serde_json::Value {
        json!({"type": "integer"})
    }
}

impl Read for u32 {
    fn read(value: Value<'_>) -> Result<Self> {
        let unfit = value.unfit("an integer from 1 to 4294967295");
        i64::read(value)?.try_into().ok().filter(|number| *number > 0).ok_or(unfit)
    }

    fn schema() -> serde_json::Value {
        json!({"type": "integer", "minimum": 1, "maximum": u32::MAX})
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

    fn schema() -> serde_json::Value {
        json!({"type": "number"})
    }
}

impl<T: Read> Read for Vec<T> {
    fn read(value: Value<'_>) -> Result<Self> {
        value.items()?.into_iter().map(T::read).collect()
    }

    fn schema() -> serde_json::Value {
        json!({"type": "array", "items": T::schema()})
    }
}

/// A value with its line.
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

    fn schema() -> serde_json::Value {
        T::schema()
    }
}

/// A table of the file.
pub(crate) struct Section<'t> {
    table: DeTable<'t>,
    pub(crate) line: usize,
    lines: Lines<'t>,
    path: String,
    asked: Vec<Key>,
    report: Report,
}

impl<'t> Section<'t> {
    /// Parses a file. Reports duplicate keys and continues; fails for any other syntax error.
    pub(crate) fn of(text: &'t str) -> Result<Self, Problems> {
        let lines = Lines(text);
        let (table, errors) = DeTable::parse_recoverable(text);
        let repeated = |error: &toml::de::Error| error.message().starts_with("duplicate key");
        let report = Report::default();
        for error in &errors {
            let line = error.span().map_or(1, |span| lines.of(&span));
            let key = error.span().and_then(|span| text.get(span)).map(str::trim);
            report.add(match key.filter(|_| repeated(error)) {
                Some(key) => Problem::at(line, format_args!("`{key}` is defined twice"))
                    .remedy("remove or rename one of them, and keep the lines of a table together"),
                None => Problem::at(line, error.message().trim_end())
                    .remedy("write valid TOML: strings in quotes, table names in [brackets]"),
            });
        }
        if !errors.iter().all(repeated) {
            let mut problems = report.0.take();
            problems.sort_by_key(|problem| problem.line);
            return Err(Problems(problems));
        }
        let (table, path, asked) = (table.into_inner(), String::new(), Vec::new());
        Ok(Self { table, line: 1, lines, path, asked, report })
    }

    /// Returns an empty table, in place of an absent one.
    pub(crate) fn empty() -> Self {
        let (table, lines, report) = (DeTable::new(), Lines(""), Report::default());
        Self { table, line: 1, lines, path: String::new(), asked: Vec::new(), report }
    }

    /// Returns the collector of mistakes for the file.
    pub(super) fn reported(&self) -> Report {
        self.report.clone()
    }

    /// Records a mistake or a warning. Reading continues.
    pub(crate) fn report(&self, problem: Problem) {
        self.report.add(problem);
    }

    /// Runs `read`. Reports a failure, and returns `None`.
    pub(crate) fn attempt<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Option<T> {
        read(self).map_err(|problem| self.report(problem)).ok()
    }

    /// Returns the path of the table.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Takes the value of a key of any type.
    pub(crate) fn take(&mut self, key: &'static str) -> Option<Value<'t>> {
        self.take_as(key, json!({}))
    }

    /// Takes the value of a key. The schema is only for editors.
    pub(crate) fn take_as(
        &mut self,
        key: &'static str,
        schema: serde_json::Value,
    ) -> Option<Value<'t>> {
        self.asked.push(Key { name: key, schema });
        let value = self.table.remove(key)?;
        Some(Value::new(value, self.lines, self.join(key), &self.report))
    }

    /// Reads the value of a key. An invalid value is reported and counts as absent, so this method
    /// never fails.
    pub(crate) fn read<T: Read>(&mut self, key: &'static str) -> Result<Option<T>> {
        let value = self.take_as(key, T::schema());
        Ok(self.attempt(|_| value.map(T::read).transpose()).flatten())
    }

    /// Reads the value of a key that must be one of `choices`. Reports any other value.
    pub(crate) fn choice<T: Copy>(
        &mut self,
        key: &'static str,
        choices: &[(&'static str, T)],
    ) -> Option<At<T>> {
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        let value = self.take_as(key, json!({"enum": words}))?;
        let line = value.line;
        let word = value.text();
        let chosen = choices.iter().find(|(known, _)| word == Some(known));
        match chosen {
            Some((_, value)) => Some(At { value: *value, line }),
            None => {
                let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
                self.report(value.unfit(&quoted.join(" or ")));
                None
            }
        }
    }

    /// Takes a nested table. Like [`Section::read`], it never fails.
    pub(crate) fn section(&mut self, key: &'static str) -> Result<Option<Section<'t>>> {
        let value = self.take_as(key, json!({"type": "object"}));
        Ok(self.attempt(|_| value.map(Value::section).transpose()).flatten())
    }

    /// Returns the mistake for a missing key, or for an unknown key that is probably a misspelling
    /// of it.
    pub(crate) fn lacks(&self, key: &'static str, what: impl fmt::Display) -> Problem {
        let meant = self.table.keys().find(|written| nearest(written.get_ref(), &[key]).is_some());
        match meant {
            Some(written) => self.unknown(written),
            None => Problem::at(self.line, what),
        }
    }

    /// Returns all entries, in the order of the file.
    pub(crate) fn entries(self) -> Vec<(String, Value<'t>)> {
        let Self { table, lines, path, report, .. } = self;
        let entry = |(key, value): (Spanned<Cow<'t, str>>, Spanned<DeValue<'t>>)| {
            let name = key.into_inner().into_owned();
            let path = join(&path, &name);
            (name, Value::new(value, lines, path, &report))
        };
        table.into_iter().map(entry).collect()
    }

    /// Reports every key that was not requested. Returns the requested ones.
    pub(crate) fn finish(self) -> Result<Vec<Key>> {
        self.table.keys().for_each(|key| self.report(self.unknown(key)));
        Ok(self.asked)
    }

    fn unknown(&self, key: &Spanned<Cow<'t, str>>) -> Problem {
        let line = self.lines.of(&key.span());
        let place = if self.path.is_empty() {
            "at the top level".to_owned()
        } else {
            format!("in [{}]", self.path)
        };
        let problem = Problem::at(line, format_args!("unknown key `{}` {place}", key.get_ref()));
        let asked: Vec<&str> = self.asked.iter().map(|key| key.name).collect();
        problem.remedy(match nearest(key.get_ref(), &asked) {
            Some(meant) => format!("write `{meant}`"),
            None => format!("use one of: {}", asked.join(", ")),
        })
    }

    fn join(&self, key: &str) -> String {
        join(&self.path, key)
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// Returns a key that differs from the written one by one typo.
pub(super) fn nearest<'k>(written: &str, keys: &[&'k str]) -> Option<&'k str> {
    let plain = |text: &str| text.to_lowercase().replace('-', "_");
    let written = plain(written);
    keys.iter().copied().find(|key| *key == written || is_one_slip(&written, key))
}

/// Returns whether two texts differ by one inserted, deleted or replaced letter, or two swapped
/// letters.
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
    fn unknown_key_is_reported_with_line_and_suggestion() {
        let mut file =
            Section::of("[server]\nname = \"x\"\nlsiten = \"y\"\nport = 1\n").expect("is TOML");
        let mut server = file.section("server").expect("is a table").expect("is there");
        assert_eq!(server.read::<String>("name").expect("is a string").as_deref(), Some("x"));
        assert!(server.take("listen").is_none());
        server.finish().expect("reports");
        let problems = file.reported().problems();
        assert_eq!(problems[0].to_string(), "line 3: unknown key `lsiten` in [server]");
        assert_eq!(problems[0].remedy.as_deref(), Some("write `listen`"));
        assert_eq!(problems[1].to_string(), "line 4: unknown key `port` in [server]");
    }

    #[test]
    fn invalid_toml_reports_line_of_every_error() {
        let Err(problems) = Section::of("a = 1\nb = oops\nc = 2\n[d\n") else {
            panic!("the text is not TOML")
        };
        let lines: Vec<usize> = problems.0.iter().map(|problem| problem.line).collect();
        assert_eq!(lines, [2, 4], "{problems}");
    }

    #[test]
    fn duplicate_table_is_reported_by_name() {
        let text = "[tools.a]\nb = 1\n[tools.a]\nc = 1\n";
        let file = Section::of(text).expect("can be read");
        assert_eq!(file.reported().problems()[0].to_string(), "line 3: `a` is defined twice");
    }

    #[test]
    fn typo_of_one_letter_is_recognized() {
        for (written, meant) in [("comand", "command"), ("commmand", "command"), ("evn", "env")] {
            assert!(is_one_slip(written, meant), "{written}");
        }
        assert!(!is_one_slip("folder", "command"));
    }
}
