//! The cases of hostile upstreams.

/// An attack of an upstream.
#[derive(Debug)]
pub(super) struct Case {
    /// The argument of the hostile server, and the name of its upstream.
    pub(super) name: &'static str,
    /// Size of the attack in a full run, and in a short one.
    pub(super) count: [usize; 2],
    /// Keys of the upstream.
    pub(super) keys: &'static str,
    pub(super) calls: Calls,
    /// Words in the status, of which one is there. Empty: the upstream did nothing wrong.
    pub(super) named: &'static [&'static str],
}

/// Outcome of the calls during an attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Calls {
    /// Every call has its own result.
    Succeed,
    /// Every call has an error that names the upstream.
    Fail,
    /// The upstream has no tool `echo`.
    HaveNoTool,
}

/// Calls of an upstream that may never respond.
const SHORT_CALLS: &str = "timeout = \"2s\"\ntask = \"never\"";

/// Calls of an upstream that responds, but maybe too much: a loaded machine needs some time.
const LONG_CALLS: &str = "timeout = \"30s\"\ntask = \"never\"";

const CALLS: &str = "task = \"never\"";

pub(super) const CASES: &[Case] = &[
    // Bytes.
    Case {
        name: "invalid-json",
        count: [100_000, 10_000],
        keys: LONG_CALLS,
        calls: Calls::Fail,
        named: &["lines in a row are not JSON-RPC messages"],
    },
    Case {
        name: "half-line",
        count: [1, 1],
        keys: SHORT_CALLS,
        calls: Calls::Fail,
        named: &["did not respond"],
    },
    Case {
        name: "long-line",
        count: [1 << 30, 32 << 20],
        keys: LONG_CALLS,
        calls: Calls::Fail,
        named: &["exceeds `max_result`"],
    },
    // Responses.
    Case {
        name: "no-response",
        count: [1, 1],
        keys: SHORT_CALLS,
        calls: Calls::Fail,
        named: &["did not respond"],
    },
    Case {
        name: "foreign-ids",
        count: [100_000, 10_000],
        keys: CALLS,
        calls: Calls::Succeed,
        named: &["that no request waited for"],
    },
    Case {
        name: "used-ids",
        count: [100_000, 10_000],
        keys: CALLS,
        calls: Calls::Succeed,
        named: &["that no request waited for"],
    },
    Case {
        name: "two-responses",
        count: [1, 1],
        keys: CALLS,
        calls: Calls::Succeed,
        named: &["that no request waited for"],
    },
    // Volume.
    Case {
        name: "notifications",
        count: [1_000_000, 100_000],
        keys: CALLS,
        calls: Calls::Succeed,
        named: &["of its notifications were dropped"],
    },
    Case {
        name: "endless-pages",
        count: [1, 1],
        keys: CALLS,
        calls: Calls::HaveNoTool,
        named: &["pages"],
    },
    Case {
        name: "many-tools",
        count: [100_000, 20_000],
        keys: CALLS,
        calls: Calls::HaveNoTool,
        named: &["only the first 1000 tools"],
    },
    // Behavior.
    Case {
        name: "changing-tools",
        count: [0, 0],
        keys: CALLS,
        calls: Calls::Succeed,
        named: &["echo"],
    },
    Case {
        name: "undeclared-input",
        count: [1, 1],
        keys: CALLS,
        calls: Calls::Succeed,
        named: &["that the client does not declare"],
    },
    Case {
        name: "endless-input-required",
        count: [1, 1],
        keys: "protocol_version = \"2026-07-28\"\ntask = \"never\"",
        calls: Calls::Fail,
        named: &["more than 16 rounds"],
    },
    Case {
        name: "endless-task",
        count: [1, 1],
        keys: "timeout = \"2s\"",
        calls: Calls::Fail,
        named: &["did not respond"],
    },
    Case {
        name: "exit-in-handshake",
        count: [1, 1],
        keys: CALLS,
        calls: Calls::HaveNoTool,
        named: &["cannot open the attack"],
    },
];

#[cfg(test)]
mod tests {
    use super::CASES;

    #[test]
    fn names_of_cases_are_unique_names_of_upstreams() {
        let mut names: Vec<&str> = CASES.iter().map(|case| case.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CASES.len());
        assert!(names.iter().all(|name| name.len() <= 32));
    }
}
