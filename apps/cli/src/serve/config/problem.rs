//! Mistakes in the file: line, message and remedy.

use std::{fmt, path::Path};

use crate::error::CliError;

/// A mistake or a warning about the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(super) line: usize,
    what: String,
    pub(super) remedy: Option<String>,
    /// Whether the file can still be served.
    is_warning: bool,
}

pub(crate) type Result<T, E = Problem> = std::result::Result<T, E>;

impl Problem {
    pub(crate) fn at(line: usize, what: impl fmt::Display) -> Self {
        Self { line, what: what.to_string(), remedy: None, is_warning: false }
    }

    pub(crate) fn remedy(mut self, remedy: impl fmt::Display) -> Self {
        self.remedy = Some(remedy.to_string());
        self
    }

    /// Sets the remedy, unless there is one.
    pub(crate) fn or_remedy(self, remedy: impl fmt::Display) -> Self {
        if self.remedy.is_some() { self } else { self.remedy(remedy) }
    }

    /// Makes the problem a warning: it is reported, and the file is served.
    pub(crate) fn warning(mut self) -> Self {
        self.is_warning = true;
        self
    }

    /// Returns the message without its line.
    pub(super) fn what(&self) -> &str {
        &self.what
    }

    pub(crate) fn is_warning(&self) -> bool {
        self.is_warning
    }

    /// Adds the name of the file.
    pub(super) fn in_file(self, file: &Path) -> Mistake {
        let what = format!("{}:{}: {}", file.display(), self.line, self.what);
        Mistake { what, remedy: self.remedy }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

/// All mistakes of a text, in the order of its lines.
#[derive(Debug)]
pub(crate) struct Problems(pub(super) Vec<Problem>);

impl Problems {
    /// Separates warnings from mistakes. Returns only the warnings if the file has no mistakes.
    pub(super) fn sorted(mut all: Vec<Problem>) -> Result<Vec<Problem>, Self> {
        all.sort_by_key(|problem| problem.line);
        let (warnings, mistakes): (Vec<_>, Vec<_>) = all.into_iter().partition(Problem::is_warning);
        if mistakes.is_empty() { Ok(warnings) } else { Err(Self(mistakes)) }
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            let end = if index == 0 { "" } else { "\n" };
            write!(f, "{end}{problem}")?;
        }
        Ok(())
    }
}

/// A mistake or a warning, as text for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mistake {
    /// Message with file and line.
    pub(crate) what: String,
    /// Next step for the operator.
    pub(crate) remedy: Option<String>,
}

/// Reasons why a file cannot be served; at least one.
#[derive(Debug)]
pub(crate) struct Mistakes(pub(crate) Vec<Mistake>);

impl From<Mistake> for CliError {
    fn from(Mistake { what, remedy }: Mistake) -> Self {
        let error = Self::usage(what);
        match remedy {
            Some(remedy) => error.remedy(remedy),
            None => error,
        }
    }
}

impl From<Mistakes> for CliError {
    /// Combines all mistakes: each has its own `error: …` and `try: …`.
    fn from(Mistakes(mistakes): Mistakes) -> Self {
        let mut errors = mistakes.into_iter().map(Self::from);
        let first = errors.next().unwrap_or_else(|| Self::usage("the file is invalid"));
        errors.fold(first, Self::and)
    }
}
