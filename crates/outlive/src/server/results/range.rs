//! URIs of stored results, `outlive://results/{task}/{block}{?from,bytes,line,lines,at}`.

use std::sync::LazyLock;

use outlive_schema::uri_template::UriTemplate;
use outlive_tasks::store::TaskId;

use crate::server::{random::is_task_id, results::error::ReadError};

/// Template of the URIs, as clients see it.
pub(crate) const TEMPLATE: &str = "outlive://results/{task}/{block}{?from,bytes,line,lines,at}";

/// Bytes of a range whose end the URI does not state.
pub(crate) const DEFAULT_BYTES: u64 = 64 << 10;

/// Maximum bytes of a range.
pub(crate) const MAX_BYTES: u64 = 1 << 20;

static PARSED: LazyLock<Option<UriTemplate>> = LazyLock::new(|| UriTemplate::parse(TEMPLATE).ok());

/// A parsed URI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResultUri {
    pub(crate) task: TaskId,
    /// Number of the block in its result.
    pub(crate) block: usize,
    pub(crate) range: Range,
}

/// Range of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Range {
    /// The whole block.
    All,
    Bytes {
        from: u64,
        bytes: u64,
    },
    /// Lines, numbered from 1; `None` for as many as fit.
    Lines {
        line: u64,
        lines: Option<u64>,
    },
    /// The value at a JSON pointer; elements of an array, or members of an object.
    At {
        pointer: String,
        from: u64,
        count: Option<u64>,
    },
}

impl ResultUri {
    /// Returns whether a URI is in the space of this server's results.
    pub(crate) fn is_ours(uri: &str) -> bool {
        uri.starts_with("outlive://results/")
    }

    /// Parses a URI.
    ///
    /// # Errors
    ///
    /// Returns `Unknown` if the URI does not match the template, and `Range` if a number is
    /// invalid.
    pub(crate) fn parse(uri: &str) -> Result<Self, ReadError> {
        let template = PARSED.as_ref().ok_or(ReadError::Unknown)?;
        let variables = template.matches(uri).ok_or(ReadError::Unknown)?;
        let get = |name: &str| {
            variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
        };
        let number = |name: &str| get(name).map(|value| number(name, value)).transpose();
        let task = get("task").filter(|task| is_task_id(task)).ok_or(ReadError::Unknown)?;
        let block = get("block").and_then(|block| block.parse().ok()).ok_or(ReadError::Unknown)?;
        let (from, bytes) = (number("from")?, number("bytes")?);
        let (line, lines) = (number("line")?, number("lines")?);
        let range = match (get("at"), line.or(lines)) {
            (Some(_), Some(_)) => return Err(range_error("pass `at` or `line`, not both")),
            (None, Some(_)) if from.or(bytes).is_some() => {
                return Err(range_error(
                    "pass `line` and `lines`, or `from` and `bytes`, not both",
                ));
            }
            (Some(at), None) => {
                Range::At { pointer: at.to_owned(), from: from.unwrap_or(0), count: bytes }
            }
            (None, Some(_)) => Range::Lines { line: line.unwrap_or(1), lines },
            (None, None) if from.or(bytes).is_none() => Range::All,
            (None, None) => Range::bytes(from.unwrap_or(0), bytes)?,
        };
        range.check()?;
        Ok(Self { task: TaskId::new(task), block, range })
    }
}

impl Range {
    fn bytes(from: u64, bytes: Option<u64>) -> Result<Self, ReadError> {
        match bytes.unwrap_or(DEFAULT_BYTES) {
            0 => Err(range_error("`bytes` must be at least 1")),
            bytes if bytes > MAX_BYTES => {
                Err(range_error(format!("`bytes` must be at most {MAX_BYTES}")))
            }
            bytes => Ok(Self::Bytes { from, bytes }),
        }
    }

    fn check(&self) -> Result<(), ReadError> {
        match self {
            Self::Lines { line: 0, .. } => Err(range_error("lines are numbered from 1")),
            Self::Lines { lines: Some(0), .. } => Err(range_error("`lines` must be at least 1")),
            Self::At { count: Some(0), .. } => Err(range_error("`bytes` must be at least 1")),
            Self::At { pointer, .. } if !pointer.is_empty() && !pointer.starts_with('/') => {
                Err(range_error("`at` must be a JSON pointer: empty, or with a leading `/`"))
            }
            _ => Ok(()),
        }
    }
}

/// Returns the URI of a block.
pub(crate) fn uri(task: &TaskId, block: usize) -> String {
    format!("outlive://results/{}/{block}", task.as_str())
}

pub(crate) fn range_error(reason: impl Into<String>) -> ReadError {
    ReadError::Range(reason.into())
}

fn number(name: &str, value: &str) -> Result<u64, ReadError> {
    let invalid = || range_error(format!("`{name}` must be a whole number"));
    let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { value.parse().map_err(|_| invalid()) } else { Err(invalid()) }
}

#[cfg(test)]
mod tests {
    use super::{Range, ResultUri, uri};
    use crate::server::results::error::ReadError;
    use outlive_tasks::store::TaskId;

    const TASK: &str = "5f1d6bb5a8a94a0f5f1d6bb5a8a94a0f";

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "callers build the value in place")]
    fn check(query: &str, expected: Result<Range, ReadError>) {
        let parsed = ResultUri::parse(&format!("outlive://results/{TASK}/3{query}"));
        assert_eq!(parsed.map(|uri| uri.range), expected, "{query}");
    }

    #[track_caller]
    fn check_rejected(query: &str, says: &str) {
        let parsed = ResultUri::parse(&format!("outlive://results/{TASK}/3{query}"));
        let Err(ReadError::Range(reason)) = parsed else { panic!("{query}: {parsed:?}") };
        assert!(reason.contains(says), "{query}: {reason}");
    }

    #[test]
    fn range_of_uri_is_read_from_query() {
        check("", Ok(Range::All));
        check("?from=37500&bytes=65536", Ok(Range::Bytes { from: 37_500, bytes: 65_536 }));
        check("?bytes=10", Ok(Range::Bytes { from: 0, bytes: 10 }));
        check("?from=5", Ok(Range::Bytes { from: 5, bytes: 64 << 10 }));
        check("?line=7&lines=3", Ok(Range::Lines { line: 7, lines: Some(3) }));
        check("?lines=3", Ok(Range::Lines { line: 1, lines: Some(3) }));
        let at =
            |pointer: &str, from, count| Ok(Range::At { pointer: pointer.into(), from, count });
        check("?at=%2Frows%2F0", at("/rows/0", 0, None));
        check("?at=/rows&from=100&bytes=10", at("/rows", 100, Some(10)));
    }

    #[test]
    fn invalid_range_gets_one_clear_error() {
        check_rejected("?from=x", "`from` must be a whole number");
        check_rejected("?from=-1", "`from` must be a whole number");
        check_rejected("?from=99999999999999999999", "`from` must be a whole number");
        check_rejected("?bytes=0", "`bytes` must be at least 1");
        check_rejected("?bytes=2000000", "`bytes` must be at most 1048576");
        check_rejected("?line=0", "numbered from 1");
        check_rejected("?line=1&from=2", "not both");
        check_rejected("?line=1&at=/a", "not both");
        check_rejected("?at=rows", "JSON pointer");
    }

    #[test]
    fn other_uri_is_unknown() {
        let long = format!("outlive://results/{TASK}0/0");
        let block = format!("outlive://results/{TASK}/x");
        let query = format!("outlive://results/{TASK}/0?other=1");
        for other in ["outlive://results/", "outlive://results/a1/0", &long, &block, &query] {
            assert_eq!(ResultUri::parse(other), Err(ReadError::Unknown), "{other}");
        }
    }

    #[test]
    fn uri_of_block_is_parsed_back() {
        let task = TaskId::new(TASK);
        let parsed = ResultUri::parse(&uri(&task, 12));
        assert_eq!(parsed, Ok(ResultUri { task, block: 12, range: Range::All }));
    }
}
