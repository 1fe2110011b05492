//! The transition that follows a commit, in the form of the database.

use super::result_part;

/// Commits the changes of one task.
pub(super) const WRITE: &str =
    "SELECT commit_task($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12,
     $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26)";
/// Commits the changes like `WRITE`, then quarantines the task. `CASE` executes the commit once, and
/// its NULL (the byte limit is exceeded) stays NULL.
pub(super) const KEEP: &str =
    "SELECT CASE commit_task($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12,
     $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26)
     WHEN true THEN quarantine_task($1, $20, $21, $26) WHEN false THEN false END";

/// Transition of a task, in columns.
pub(super) enum Next {
    GoOn,
    Park { due: Option<i64>, seen: i64 },
    Keep { outcome: String, hold: i64 },
    End { outcome: String, kind: i16, retention: i64, unfinished: bool },
}

impl Next {
    /// Returns the statement that writes it.
    pub(super) fn sql(&self, has_parts: bool) -> &'static str {
        match self {
            Self::Keep { .. } => KEEP,
            Self::End { .. } if has_parts => result_part::WRITE,
            _ => WRITE,
        }
    }

    /// Returns its columns: the transition, when it is due, the number of seen responses, the
    /// outcome and the retention.
    pub(super) fn into_columns(
        self,
    ) -> (i32, Option<i64>, Option<i64>, Option<String>, Option<i64>) {
        match self {
            Self::GoOn => (0, None, None, None, None),
            Self::Park { due, seen } => (1, due, Some(seen), None, None),
            Self::Keep { outcome, hold } => (0, None, None, Some(outcome), Some(hold)),
            Self::End { outcome, retention, unfinished, .. } => {
                (2 + i32::from(unfinished), None, None, Some(outcome), Some(retention))
            }
        }
    }
}
