//! Timeouts of one caller's clients, and the call timeouts that follow from them.
//!
//! Pure: [`Learned`](crate::server::hosts::learned::Learned) reads and writes the store.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::server::{
    hosts::client::{Client, Transport},
    time::millis,
};

/// Time for which a limit is used after the last timeout that confirmed it.
pub(crate) const LEARNED_TTL: Duration = Duration::from_secs(604_800);

/// Shortest learned call timeout. A shorter one leaves no time to wait, so every call would return
/// a pending result at once.
const MIN_LEARNED: Duration = Duration::from_secs(3);

/// Maximum number of clients per caller. The one that was confirmed the longest time ago is deleted
/// first.
const MAX_LEARNED: usize = 16;

/// A call that its client ended by timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ObservedTimeout {
    /// Number of rounds of the call before this request.
    pub(crate) round: u32,
    /// Time since this request arrived.
    pub(crate) request: Duration,
    /// Time since the first request of the call arrived.
    pub(crate) call: Duration,
}

/// Limit that was learned for a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LearnedLimit {
    /// Call timeout; `None` if only `timeout_spans_rounds` is known.
    pub(crate) call_timeout: Option<Duration>,
    /// Whether the client counts all rounds of a call together.
    pub(crate) timeout_spans_rounds: bool,
}

/// Timeouts of a caller's clients, as the store has them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Observations {
    /// Principal of the caller, for operators; `None` for an anonymous session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) principal: Option<String>,
    #[serde(default)]
    pub(crate) clients: Vec<ObservedClient>,
}

/// Timeouts of one client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ObservedClient {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) transport: Transport,
    /// Milliseconds until the last timeout.
    last_ms: u64,
    /// Learned call timeout in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    limit_ms: Option<u64>,
    #[serde(default)]
    spans_rounds: bool,
    /// Unix milliseconds after which the limit is not used.
    pub(crate) expires_at: u64,
}

impl Observations {
    /// Returns what was learned for a client.
    pub(crate) fn limit(&self, client: &Client, now: u64) -> Option<LearnedLimit> {
        let known = self.clients.iter().find(|known| known.is(client));
        known.and_then(|known| known.limit(now))
    }

    /// Adds a timeout. Two timeouts that differ by less than a tenth become the call timeout.
    pub(crate) fn record(&mut self, client: &Client, timeout: ObservedTimeout, now: u64) {
        // A client that counts each round never times out in a later one: the slice is shorter.
        let spans_rounds = timeout.round > 0;
        let after = millis(if spans_rounds { timeout.call } else { timeout.request });
        self.clients.retain(|known| known.expires_at > now);
        let until = now.saturating_add(millis(LEARNED_TTL));
        if let Some(known) = self.clients.iter_mut().find(|known| known.is(client)) {
            if agree(known.last_ms, after) {
                let shorter = known.last_ms.min(after);
                known.limit_ms = Some(shorter.max(millis(MIN_LEARNED)));
                known.expires_at = until;
            }
            if spans_rounds {
                known.spans_rounds = true;
                known.expires_at = until;
            }
            known.last_ms = after;
            return;
        }
        if self.clients.len() >= MAX_LEARNED
            && let Some(oldest) =
                (0..self.clients.len()).min_by_key(|i| self.clients[*i].expires_at)
        {
            self.clients.swap_remove(oldest);
        }
        let Client { name, version, transport } = client.clone();
        self.clients.push(ObservedClient {
            name,
            version,
            transport,
            last_ms: after,
            limit_ms: None,
            spans_rounds,
            expires_at: until,
        });
    }
}

impl ObservedClient {
    fn is(&self, client: &Client) -> bool {
        self.name == client.name
            && self.version == client.version
            && self.transport == client.transport
    }

    /// Returns what was learned for the client, unless it has expired.
    pub(crate) fn limit(&self, now: u64) -> Option<LearnedLimit> {
        let learned = self.expires_at > now && (self.limit_ms.is_some() || self.spans_rounds);
        learned.then(|| LearnedLimit {
            call_timeout: self.limit_ms.map(Duration::from_millis),
            timeout_spans_rounds: self.spans_rounds,
        })
    }
}

/// Returns whether two times differ by less than a tenth of the longer one.
fn agree(left: u64, right: u64) -> bool {
    left.abs_diff(right).saturating_mul(10) < left.max(right)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{LEARNED_TTL, LearnedLimit, MAX_LEARNED, Observations, ObservedTimeout};
    use crate::server::{
        hosts::client::{Client, Transport},
        time::millis,
    };

    const NOW: u64 = 1_000_000;

    fn client(version: &str) -> Client {
        Client::new("agent", version, Transport::Stdio)
    }

    fn after(ms: u64) -> ObservedTimeout {
        let time = Duration::from_millis(ms);
        ObservedTimeout { round: 0, request: time, call: time }
    }

    #[track_caller]
    fn check(timeouts: &[u64], learned: Option<u64>) {
        let mut observed = Observations::default();
        for ms in timeouts {
            observed.record(&client("1"), after(*ms), NOW);
        }
        let limit = observed.limit(&client("1"), NOW);
        let limit = limit.and_then(|limit| limit.call_timeout);
        assert_eq!(limit.map(millis), learned, "{timeouts:?}");
    }

    #[test]
    fn two_similar_timeouts_become_call_timeout() {
        check(&[60_000], None);
        check(&[60_000, 60_150], Some(60_000));
        check(&[5_010, 5_000], Some(5_000));
        check(&[60_000, 54_000], None);
        check(&[60_000, 54_001], Some(54_001));
        check(&[60_000, 30_000], None);
    }

    #[test]
    fn changed_timeout_replaces_learned_one_after_two_calls() {
        check(&[60_000, 60_000, 30_000], Some(60_000));
        check(&[60_000, 60_000, 30_000, 30_100], Some(30_000));
    }

    #[test]
    fn learned_timeout_is_at_least_three_seconds() {
        check(&[900, 950], Some(3_000));
        check(&[0, 0], None);
    }

    #[test]
    fn timeout_of_another_client_changes_nothing() {
        let mut observed = Observations::default();
        observed.record(&client("1"), after(60_000), NOW);
        observed.record(&client("2"), after(60_000), NOW);
        let http = Client::new("agent", "1", Transport::Http);
        observed.record(&http, after(60_000), NOW);
        assert!([client("1"), client("2"), http].iter().all(|c| observed.limit(c, NOW).is_none()));
    }

    #[test]
    fn timeout_in_later_round_ends_use_of_rounds_at_once() {
        let mut observed = Observations::default();
        let second = ObservedTimeout {
            round: 1,
            request: Duration::from_secs(10),
            call: Duration::from_secs(60),
        };
        observed.record(&client("1"), second, NOW);
        let rounds = LearnedLimit { call_timeout: None, timeout_spans_rounds: true };
        assert_eq!(observed.limit(&client("1"), NOW), Some(rounds));
        // The first request of the next call ends after the same time.
        observed.record(&client("1"), after(60_050), NOW);
        let call_timeout = Some(Duration::from_secs(60));
        let learned = LearnedLimit { call_timeout, timeout_spans_rounds: true };
        assert_eq!(observed.limit(&client("1"), NOW), Some(learned));
    }

    #[test]
    fn learned_timeout_expires_a_week_after_its_last_confirmation() {
        let week = millis(LEARNED_TTL);
        let mut observed = Observations::default();
        observed.record(&client("1"), after(60_000), NOW);
        observed.record(&client("1"), after(60_000), NOW + 10);
        assert!(observed.limit(&client("1"), NOW + week + 9).is_some());
        assert!(observed.limit(&client("1"), NOW + week + 10).is_none());
        observed.record(&client("1"), after(60_000), NOW + 20);
        assert!(observed.limit(&client("1"), NOW + week + 10).is_some());
    }

    #[test]
    fn seventeenth_client_replaces_the_one_confirmed_first() {
        let mut observed = Observations::default();
        for index in 0..=MAX_LEARNED {
            let client = client(&index.to_string());
            observed.record(&client, after(60_000), NOW + index as u64);
            observed.record(&client, after(60_000), NOW + index as u64);
        }
        assert_eq!(observed.clients.len(), MAX_LEARNED);
        assert!(observed.limit(&client("0"), NOW + 20).is_none());
        assert!(observed.limit(&client("1"), NOW + 20).is_some());
    }
}
