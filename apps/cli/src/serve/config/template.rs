//! The command of a tool: words with placeholders for the caller's values.
//!
//! A value becomes part of one word, or separate words. It is never interpreted: no shell, no
//! splitting, no globs. A value that the command could mistake for an option is rejected.

use serde_json::{Map, Value as Json};

use super::{
    argument::{self, Argument, Kind},
    reader::{Problem, Read, Result, Value},
};

/// Maximum length of one argument of a program on Linux, in bytes.
const LONGEST_WORD: usize = 128 * 1024 - 1;

/// Values from a caller, with defaults, in the order of the arguments.
pub(crate) struct Given(Vec<Option<Json>>);

impl Given {
    pub(crate) fn new(arguments: &[Argument], mut values: Map<String, Json>) -> Self {
        let value = |argument: &Argument| {
            let given = values.remove(&argument.name).filter(|value| !value.is_null());
            // An empty list counts as absent, so that its group is omitted, too.
            let given = given.or_else(|| argument.default.clone());
            given.filter(|value| value.as_array().is_none_or(|items| !items.is_empty()))
        };
        Self(arguments.iter().map(value).collect())
    }
}

/// Reason why a value must not reach the command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refused(pub(crate) String);

/// A word with placeholders.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Word {
    pieces: Vec<Piece>,
    /// Whether to reject a value at the start that looks like an option.
    guarded: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Literal(String),
    /// Value of the argument with this index.
    Value(usize),
}

impl Word {
    /// Parses a word such as `--size={width}x{height}`.
    ///
    /// A placeholder is a name in braces. `{{name}}` stands for a literal `{name}`. All other
    /// braces are literal, because commands contain JSON and `${x}`.
    pub(crate) fn parse(text: &str, line: usize, arguments: &[Argument]) -> Result<Self> {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(place) = rest.find('{') {
            let (before, from) = rest.split_at(place);
            literal.push_str(before);
            if let Some((name, after)) = named(from, "{{", "}}") {
                literal.push_str(&format!("{{{name}}}"));
                rest = after;
            } else if let Some((name, after)) =
                named(from, "{", "}").filter(|_| !literal.ends_with('$'))
            {
                let Some(index) = arguments.iter().position(|argument| argument.name == name)
                else {
                    return Err(unknown(name, line, arguments));
                };
                if !literal.is_empty() {
                    pieces.push(Piece::Literal(std::mem::take(&mut literal)));
                }
                pieces.push(Piece::Value(index));
                rest = after;
            } else {
                literal.push('{');
                rest = &from[1..];
            }
        }
        literal.push_str(rest);
        if !literal.is_empty() || pieces.is_empty() {
            pieces.push(Piece::Literal(literal));
        }
        let lists = pieces.iter().any(|piece| {
            matches!(piece, Piece::Value(index) if matches!(arguments[*index].kind, Kind::List(_)))
        });
        if lists && pieces.len() > 1 {
            return Err(Problem::at(line, format_args!("`{text}` has a list as part of a word"))
                .remedy("make the list a separate word; each of its values becomes one word"));
        }
        Ok(Self { pieces, guarded: false })
    }

    /// Returns the indexes of the arguments in this word.
    pub(super) fn arguments(&self) -> impl Iterator<Item = usize> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Value(index) => Some(*index),
            Piece::Literal(_) => None,
        })
    }

    fn literal(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [Piece::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// Guards the word if it starts with a value that the author has not listed. Negative numbers
    /// count, because they look like options: `kill -9`.
    fn guard(&mut self, arguments: &[Argument]) {
        let Some(Piece::Value(first)) = self.pieces.first() else { return };
        self.guarded = !arguments[*first].may_begin_with_dash;
    }

    /// Returns the filled words. Returns none if a required value is absent.
    pub(crate) fn fill(
        &self,
        arguments: &[Argument],
        given: &Given,
    ) -> Result<Vec<String>, Refused> {
        if self.arguments().any(|index| given.0[index].is_none()) {
            return Ok(Vec::new());
        }
        let mut words = Vec::new();
        if let [Piece::Value(index)] = self.pieces.as_slice() {
            words.extend(given.0[*index].as_ref().map(Argument::words).into_iter().flatten());
        } else {
            let fill = |piece: &Piece| match piece {
                Piece::Literal(text) => text.clone(),
                Piece::Value(index) => {
                    given.0[*index].as_ref().map(Argument::words).into_iter().flatten().collect()
                }
            };
            words.push(self.pieces.iter().map(fill).collect());
        }
        for word in &words {
            self.check(word, arguments)?;
        }
        Ok(words)
    }

    fn check(&self, word: &str, arguments: &[Argument]) -> Result<(), Refused> {
        let names: Vec<String> =
            self.arguments().map(|index| format!("`{}`", arguments[index].name)).collect();
        let names = names.join(", ");
        if word.contains('\0') {
            return Err(Refused(format!(
                "{names} contains a NUL character, which a command cannot receive; remove it"
            )));
        }
        if word.len() > LONGEST_WORD {
            return Err(Refused(format!(
                "{names} is longer than {LONGEST_WORD} bytes, the maximum for one argument of a command"
            )));
        }
        if self.guarded && word.starts_with('-') {
            return Err(Refused(format!(
                "{names} starts with `-`, so the command would take it for an option; write a file as `./-name`; a tool that accepts negative numbers needs `allow_dash = true`"
            )));
        }
        Ok(())
    }
}

/// Returns the names in the placeholders of a text.
pub(super) fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    let starts = text.match_indices('{').map(|(place, _)| place);
    starts.filter_map(|place| {
        let before = &text[..place];
        let is_literal = before.ends_with('{') || before.ends_with('$');
        named(&text[place..], "{", "}").filter(|_| !is_literal).map(|(name, _)| name)
    })
}

/// Returns the name between two delimiters at the start of a text, and the rest.
fn named<'t>(text: &'t str, open: &str, close: &str) -> Option<(&'t str, &'t str)> {
    let (name, after) = text.strip_prefix(open)?.split_once(close)?;
    argument::is_argument_name(name).then_some((name, after))
}

fn unknown(name: &str, line: usize, arguments: &[Argument]) -> Problem {
    let known: Vec<&str> = arguments.iter().map(|argument| argument.name.as_str()).collect();
    let problem = Problem::at(line, format_args!("unknown argument `{name}`"));
    problem.remedy(if known.is_empty() {
        format!("add the argument to the tool, which has none; or write {{{{{name}}}}} for a literal {{{name}}}")
    } else {
        format!("use one of: {}; or write {{{{{name}}}}} for a literal {{{name}}}", known.join(", "))
    })
}

/// A command line with placeholders.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Template(Vec<Part>);

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Word(Word),
    /// Words that are included or omitted together.
    Group {
        when: Option<usize>,
        words: Vec<Word>,
    },
}

impl Template {
    /// Reads `["render", "{scene}", ["--size", "{size}"], { when = "fast", args = ["--fast"] }]`.
    pub(crate) fn read(value: Value<'_>, arguments: &[Argument]) -> Result<Self> {
        let line = value.line;
        let mut parts = Vec::new();
        for item in value.items()? {
            parts.push(if item.is_array() {
                Part::Group { when: None, words: words(item, arguments)? }
            } else if item.is_table() {
                conditional(item, arguments)?
            } else {
                Part::Word(word(item, arguments)?)
            });
        }
        match parts.first() {
            Some(Part::Word(program))
                if program.literal().is_some_and(|program| !program.is_empty()) => {}
            Some(_) => {
                return Err(Problem::at(
                    line,
                    "the first word of a command is its program, which must not be a placeholder",
                )
                .remedy("write command = [\"program\", \"{argument}\", …]"));
            }
            None => return Err(Problem::at(line, "the command is empty")),
        }
        guard(&mut parts, arguments);
        Ok(Self(parts))
    }

    /// Creates a command without placeholders.
    pub(crate) fn fixed(words: &[&str]) -> Self {
        let word =
            |text: &&str| Word { pieces: vec![Piece::Literal((*text).to_owned())], guarded: false };
        Self(words.iter().map(word).map(Part::Word).collect())
    }

    /// Returns whether the words or their conditions use an argument.
    pub(super) fn uses(&self, argument: usize) -> bool {
        self.0.iter().any(|part| match part {
            Part::Word(word) => word.arguments().any(|index| index == argument),
            Part::Group { when, words } => {
                *when == Some(argument)
                    || words.iter().any(|word| word.arguments().any(|index| index == argument))
            }
        })
    }

    /// Returns whether a literal word contains a text.
    pub(super) fn has_text(&self, text: &str) -> bool {
        let has = |word: &Word| word.literal().is_some_and(|literal| literal.contains(text));
        self.0.iter().any(|part| matches!(part, Part::Word(word) if has(word)))
    }

    /// Returns the program.
    pub(crate) fn program(&self) -> &str {
        match self.0.first() {
            Some(Part::Word(word)) => word.literal().unwrap_or_default(),
            _ => "",
        }
    }

    /// Returns the command line for the values of a caller.
    pub(crate) fn fill(
        &self,
        arguments: &[Argument],
        given: &Given,
    ) -> Result<Vec<String>, Refused> {
        let mut filled = Vec::new();
        for part in &self.0 {
            match part {
                Part::Word(word) => filled.extend(word.fill(arguments, given)?),
                Part::Group { when, words } => {
                    let absent =
                        |word: &Word| word.arguments().any(|index| given.0[index].is_none());
                    let wanted = when.is_none_or(|index| {
                        given.0[index].as_ref().is_some_and(|value| *value != Json::Bool(false))
                    });
                    if !wanted || words.iter().any(absent) {
                        continue;
                    }
                    for word in words {
                        filled.extend(word.fill(arguments, given)?);
                    }
                }
            }
        }
        Ok(filled)
    }
}

/// Guards all words before `--`. After it, a command treats no word as an option.
fn guard(parts: &mut [Part], arguments: &[Argument]) {
    for part in parts {
        let words = match part {
            Part::Word(word) if word.literal() == Some("--") => return,
            Part::Word(word) => std::slice::from_mut(word),
            Part::Group { words, .. } => words,
        };
        for word in words {
            word.guard(arguments);
        }
    }
}

fn word(value: Value<'_>, arguments: &[Argument]) -> Result<Word> {
    let line = value.line;
    Word::parse(&String::read(value)?, line, arguments)
}

fn words(value: Value<'_>, arguments: &[Argument]) -> Result<Vec<Word>> {
    value.items()?.into_iter().map(|item| word(item, arguments)).collect()
}

fn conditional(value: Value<'_>, arguments: &[Argument]) -> Result<Part> {
    let mut section = value.section()?;
    let line = section.line;
    let shape = "{ when = \"argument\", args = [\"--word\"] }";
    let (Some(when), Some(args)) = (section.read::<String>("when")?, section.take("args")) else {
        return Err(Problem::at(line, "conditional words require `when` and `args`").remedy(shape));
    };
    section.finish()?;
    let Some(index) = arguments.iter().position(|argument| argument.name == when) else {
        return Err(unknown(&when, line, arguments));
    };
    Ok(Part::Group { when: Some(index), words: words(args, arguments)? })
}

/// Returns the caller's values as environment variables `arg_NAME` for a shell. A list has one
/// value per line.
pub(crate) fn variables(
    arguments: &[Argument],
    given: &Given,
) -> Result<Vec<(String, String)>, Refused> {
    let mut variables = Vec::new();
    for (argument, value) in arguments.iter().zip(&given.0) {
        let Some(value) = value else { continue };
        let text = Argument::words(value).join("\n");
        if text.contains('\0') {
            return Err(Refused(format!(
                "`{}` contains a NUL character, which a command cannot receive; remove it",
                argument.name
            )));
        }
        if text.len() + argument.name.len() + "arg_=".len() > LONGEST_WORD {
            return Err(Refused(format!(
                "`{}` is longer than {LONGEST_WORD} bytes, the maximum for an environment variable",
                argument.name
            )));
        }
        variables.push((format!("arg_{}", argument.name), text));
    }
    Ok(variables)
}

#[cfg(test)]
mod tests;
