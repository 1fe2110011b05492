//! The features of the gateway by protocol version: the table of its design, as data.

use super::versions::Version;

/// One side of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Half {
    Works,
    /// Works, with the limit of this number.
    Limited(u8),
    /// Does not work, for the reason of this number.
    Reason(u8),
    /// The protocol version does not have the feature, and does not need it.
    Absent,
}

use Half::{Absent, Limited, Reason, Works};

/// A feature.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) name: &'static str,
    /// By protocol version of the client.
    clients: [Half; 5],
    /// By protocol version of the upstream.
    upstreams: [Half; 5],
    /// Returns the functions of the client scripts that use the feature.
    drivers: fn(upstream: Version) -> &'static [&'static str],
}

/// The expectation of a feature and a pair of protocol versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cell {
    /// With the numbers of its limits.
    Works(Vec<u8>),
    /// With the numbers of its reasons.
    Reasons(Vec<u8>),
    Absent,
}

impl Row {
    /// The cell of a pair. Both halves must work. An upstream that does not need the feature does
    /// not keep a client from using it with the gateway.
    pub(super) fn cell(&self, client: Version, upstream: Version) -> Cell {
        let halves = [self.clients[client.index()], self.upstreams[upstream.index()]];
        if halves[0] == Absent {
            return Cell::Absent;
        }
        let numbers = |is: fn(&Half) -> Option<u8>| halves.iter().filter_map(is).collect();
        let reasons: Vec<u8> = numbers(|half| match half {
            Reason(number) => Some(*number),
            _ => None,
        });
        if !reasons.is_empty() {
            return Cell::Reasons(reasons);
        }
        Cell::Works(numbers(|half| match half {
            Limited(number) => Some(*number),
            _ => None,
        }))
    }

    pub(super) fn drivers(&self, upstream: Version) -> &'static [&'static str] {
        (self.drivers)(upstream)
    }
}

const EVERY: [Half; 5] = [Works; 5];
const OLD_CLIENTS: Half = Reason(9);

/// The features, in the order of the page.
pub(super) const ROWS: [Row; 18] = [
    Row { name: "call", clients: EVERY, upstreams: EVERY, drivers: |_| &["tools"] },
    Row {
        name: "form",
        clients: [Reason(1), Reason(1), Limited(2), Works, Works],
        upstreams: [Reason(6), Reason(6), Works, Works, Works],
        drivers: |_| &["elicitation"],
    },
    Row {
        name: "URL, and error -32042",
        clients: [Reason(1), Reason(1), Reason(1), Works, Works],
        upstreams: [Reason(6), Reason(6), Reason(6), Works, Works],
        // The error does not exist in 2026-07-28.
        drivers: |upstream| match upstream {
            Version::V511 => &["url", "url_required"],
            _ => &["url"],
        },
    },
    Row {
        name: "sampling",
        clients: [Limited(3), Limited(3), Limited(3), Works, Works],
        upstreams: EVERY,
        drivers: |_| &["sampling"],
    },
    Row { name: "roots", clients: EVERY, upstreams: EVERY, drivers: |_| &["roots"] },
    Row { name: "progress", clients: EVERY, upstreams: EVERY, drivers: |_| &["progress"] },
    Row { name: "cancel", clients: EVERY, upstreams: EVERY, drivers: |_| &["cancel"] },
    Row { name: "logging", clients: EVERY, upstreams: EVERY, drivers: |_| &["logging"] },
    Row {
        name: "list_changed",
        clients: EVERY,
        upstreams: [Works, Works, Works, Works, Limited(7)],
        drivers: |_| &["listen"],
    },
    Row {
        name: "resource subscribe",
        clients: EVERY,
        upstreams: [Works, Works, Works, Works, Limited(7)],
        drivers: |_| &["subscribe"],
    },
    Row { name: "completion", clients: EVERY, upstreams: EVERY, drivers: |_| &["completion"] },
    Row {
        name: "prompts, resources, templates",
        clients: EVERY,
        upstreams: EVERY,
        drivers: |_| &["prompts", "resources", "templates"],
    },
    Row {
        name: "tasks, `params.task`",
        clients: [OLD_CLIENTS, OLD_CLIENTS, OLD_CLIENTS, Works, Absent],
        upstreams: EVERY,
        drivers: |_| &["task"],
    },
    Row {
        name: "tasks, extension",
        clients: [OLD_CLIENTS, OLD_CLIENTS, OLD_CLIENTS, Absent, Works],
        upstreams: EVERY,
        drivers: |_| &["task"],
    },
    Row {
        name: "input requests in tasks",
        clients: [OLD_CLIENTS, OLD_CLIENTS, OLD_CLIENTS, Works, Works],
        upstreams: EVERY,
        drivers: |_| &["task_input"],
    },
    Row {
        name: "MRTR `requestState`",
        clients: [Reason(10), Reason(10), Reason(10), Reason(10), Works],
        upstreams: [Absent, Absent, Absent, Absent, Works],
        // Toward an older upstream, the state is the gateway's alone.
        drivers: |upstream| match upstream.is_modern() {
            true => &["state"],
            false => &["gateway_state"],
        },
    },
    Row {
        name: "partial results",
        clients: [OLD_CLIENTS, OLD_CLIENTS, OLD_CLIENTS, Works, Works],
        upstreams: [Reason(11), Reason(11), Reason(11), Limited(11), Limited(11)],
        drivers: |_| &["partials"],
    },
    Row {
        name: "input requests hosted as tasks",
        clients: [Absent, Absent, Absent, Works, Absent],
        upstreams: [Absent, Absent, Absent, Reason(12), Absent],
        drivers: |_| &["hosted"],
    },
];

/// The reasons and limits, by their numbers from 1.
pub(super) const REASONS: [&str; 12] = [
    "The protocol version has no such input request. The capability class tells the upstream so. An upstream that sends one regardless gets -32601.",
    "Without multi-select: such a form cannot be expressed in 2025-06-18, and the gateway responds `cancel`.",
    "Tools in sampling from 2025-11-25 on, audio from 2025-03-26 on: part of the capability class.",
    "A log message on a `shared` upstream connection may belong to another principal: it goes to the gateway's log only.",
    "A task has no log channel: the message goes to the gateway's log.",
    "The upstream's protocol version has no such input request.",
    "Upstreams without `subscriptions/listen` are listed again every 5 minutes while a client listens. Single resources are not watched, and the subscription is not acknowledged.",
    "Only tools are tasks. A prompt or read that waited for input fails after a crash of the gateway.",
    "The client gets the response when the call is done, with partial results in the result. [hosts.md](hosts.md) describes fallback tools for such hosts.",
    "The client gets the input request while its call waits.",
    "Only Outlive servers have partial results (response modes, `dev.outlive/task-partials`).",
    "Not declared upstream: the IDs of such tasks would have to survive as well. Servers fall back to plain input requests.",
];

#[cfg(test)]
mod tests {
    use super::{Cell, REASONS, ROWS, Row, Version};

    fn row(name: &str) -> &'static Row {
        ROWS.iter().find(|row| row.name == name).unwrap()
    }

    #[test]
    fn cell_works_only_if_both_halves_work() {
        let form = row("form");
        assert_eq!(form.cell(Version::V506, Version::V26), Cell::Works(vec![2]));
        assert_eq!(form.cell(Version::V24, Version::V26), Cell::Reasons(vec![1]));
        assert_eq!(form.cell(Version::V503, Version::V24), Cell::Reasons(vec![1, 6]));
    }

    #[test]
    fn feature_that_a_client_does_not_have_is_absent() {
        let tasks = row("tasks, extension");
        assert_eq!(tasks.cell(Version::V511, Version::V24), Cell::Absent);
        let state = row("MRTR `requestState`");
        assert_eq!(state.cell(Version::V26, Version::V24), Cell::Works(Vec::new()));
        assert_eq!(state.cell(Version::V511, Version::V26), Cell::Reasons(vec![10]));
    }

    #[test]
    fn every_number_has_a_reason() {
        for row in &ROWS {
            for client in Version::ALL {
                for upstream in Version::ALL {
                    let numbers = match row.cell(client, upstream) {
                        Cell::Works(numbers) | Cell::Reasons(numbers) => numbers,
                        Cell::Absent => Vec::new(),
                    };
                    for number in numbers {
                        assert!((1..=REASONS.len()).contains(&usize::from(number)), "{}", row.name);
                    }
                }
            }
        }
    }
}
