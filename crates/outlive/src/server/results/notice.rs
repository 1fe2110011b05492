//! Texts of a cut result.

use outlive_tasks::store::TaskId;

use crate::server::hosts::reserved::TASK_RESULT;

/// Where the left-out part of a result can be read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rest<'a> {
    /// The result is stored with this task.
    Stored(&'a TaskId),
    /// The result is not stored, because this limit is used up.
    NotStored(&'a str),
}

/// Returns the line that states what is missing, without line ends. `from` is the position at which
/// reading continues.
pub(crate) fn left_out(rest: Rest<'_>, bytes: u64, from: Option<u64>) -> String {
    let size = words(bytes);
    match (rest, from) {
        (Rest::Stored(task), Some(from)) => {
            let id = task.as_str();
            format!(
                "[{size} are left out here: continue with {TASK_RESULT} {{\"task\":\"{id}\",\"from\":{from}}}, \
                 or find lines with {{\"task\":\"{id}\",\"find\":\"ERROR\"}}]"
            )
        }
        (Rest::Stored(_), None) => {
            format!("[{size} are left out here: read the linked resources]")
        }
        (Rest::NotStored(limit), _) => format!(
            "[{size} are left out here and cannot be read: the result was not stored, because \
             `{limit}` is used up]"
        ),
    }
}

/// Returns the line after a part of a result.
pub(crate) fn continued(task: &TaskId, to: u64, of: u64) -> String {
    let (id, size) = (task.as_str(), words(of - to));
    format!("[{size} follow: continue with {TASK_RESULT} {{\"task\":\"{id}\",\"from\":{to}}}]")
}

/// Formats a number of bytes, such as `4.9 MB`.
pub(crate) fn words(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => tenths(bytes / 100, "kB"),
        _ => tenths(bytes / 100_000, "MB"),
    }
}

fn tenths(tenths: u64, unit: &str) -> String {
    match tenths {
        0..100 => format!("{}.{} {unit}", tenths / 10, tenths % 10),
        _ => format!("{} {unit}", tenths / 10),
    }
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn bytes_are_rounded_to_their_unit() {
        let all = [0, 999, 1_000, 9_950, 12_345, 999_999, 1_000_000, 4_949_999, 52_428_800];
        let expected = [
            "0 bytes",
            "999 bytes",
            "1.0 kB",
            "9.9 kB",
            "12 kB",
            "999 kB",
            "1.0 MB",
            "4.9 MB",
            "52 MB",
        ];
        assert_eq!(all.map(words), expected);
    }
}
