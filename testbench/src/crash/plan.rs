//! The failures and their times, planned from the seed before the start.
//!
//! A run does not change its plan, so the same seed yields the same failures in the same order,
//! though not at exactly the same moments.

use std::time::Duration;

use super::random::Random;

/// A failure of a server or of the database, or its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// `kill -9`. The server stays down until it is started.
    Kill(usize),
    /// SIGTERM, then a new process.
    Restart(usize),
    /// SIGSTOP until the thaw.
    Freeze(usize),
    Thaw(usize),
    Start(usize),
    /// `kill -9` of the database, which restarts after this time.
    Database(Duration),
}

impl Action {
    /// Whether the action ends another failure.
    pub(super) fn heals(self) -> bool {
        matches!(self, Self::Start(_) | Self::Thaw(_))
    }

    /// The affected server; `None` for the database.
    pub(super) fn victim(self) -> Option<usize> {
        match self {
            Self::Kill(number)
            | Self::Restart(number)
            | Self::Freeze(number)
            | Self::Thaw(number)
            | Self::Start(number) => Some(number),
            Self::Database(_) => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) at: Duration,
    pub(super) action: Action,
}

/// Parameters of a plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    pub(super) length: Duration,
    pub(super) replicas: usize,
    /// A server that is frozen longer than this loses its leases.
    pub(super) lease: Duration,
    pub(super) database: bool,
}

/// Time without failures at the start.
const QUIET: Duration = Duration::from_millis(700);
/// Minimum time between two failures of a process, so that it has work again.
pub(super) const REST: Duration = Duration::from_millis(500);

/// Time for the recovery of the database and for all servers to work again.
const RECOVERY: Duration = Duration::from_secs(7);

/// Plans each kind of failure once, then random failures until the end.
pub(super) fn plan(seed: u64, terms: Terms) -> Vec<Event> {
    let mut random = Random::new(seed).fork(0);
    let mut events = Vec::new();
    let mut free = vec![Duration::ZERO; terms.replicas];
    let mut database_free = Duration::ZERO;
    let mut at = QUIET;
    let mut turn = 0;
    while at + terms.lease < terms.length {
        let choice = if turn < 5 { turn * 20 } else { random.below(100) };
        let down = random.millis(50..1_200);
        let lease = terms.lease.as_millis() as u64;
        let span = random.millis(lease * 5 / 4..lease * 7 / 4);
        let healthy: Vec<usize> = (0..terms.replicas).filter(|&one| free[one] <= at).collect();
        let victim = healthy.get(random.below(healthy.len())).copied();
        match (choice, victim) {
            (10..35, Some(victim)) => {
                events.push(Event { at, action: Action::Freeze(victim) });
                events.push(Event { at: at + span, action: Action::Thaw(victim) });
                free[victim] = at + span + REST;
            }
            (35..60, Some(victim)) => {
                events.push(Event { at, action: Action::Restart(victim) });
                free[victim] = at + REST * 4;
            }
            (60..70, _) if terms.database && database_free <= at => {
                events.push(Event { at, action: Action::Database(down) });
                database_free = at + down + RECOVERY;
            }
            // Kills all healthy servers at once, so that no worker can reclaim tasks.
            (80..85, Some(_)) => {
                for &victim in &healthy {
                    kill(&mut events, victim, at, down);
                    free[victim] = at + down + REST;
                }
            }
            (_, Some(victim)) => {
                kill(&mut events, victim, at, down);
                free[victim] = at + down + REST;
            }
            (_, None) => {}
        }
        turn += 1;
        at += random.millis(150..900);
    }
    events.sort_by_key(|event| event.at);
    events
}

fn kill(events: &mut Vec<Event>, victim: usize, at: Duration, down: Duration) {
    events.push(Event { at, action: Action::Kill(victim) });
    events.push(Event { at: at + down, action: Action::Start(victim) });
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Action, Event, Terms, plan};

    const TERMS: Terms = Terms {
        length: Duration::from_secs(30),
        replicas: 3,
        lease: Duration::from_secs(2),
        database: true,
    };

    #[test]
    fn same_seed_yields_same_plan() {
        assert_eq!(plan(1, TERMS), plan(1, TERMS));
        assert_ne!(plan(1, TERMS), plan(2, TERMS));
    }

    #[test]
    fn plan_contains_every_kind_of_fault() {
        for seed in 0..200 {
            let plan = plan(seed, TERMS);
            let has = |wanted: fn(&Action) -> bool| plan.iter().any(|event| wanted(&event.action));
            assert!(has(|action| matches!(action, Action::Kill(_))), "{seed}");
            assert!(has(|action| matches!(action, Action::Freeze(_))), "{seed}");
            assert!(has(|action| matches!(action, Action::Restart(_))), "{seed}");
            assert!(has(|action| matches!(action, Action::Database(_))), "{seed}");
        }
    }

    #[test]
    fn plan_recovers_process_before_its_next_fault() {
        for seed in 0..200 {
            let mut hurt = [None; 3];
            for Event { action, .. } in plan(seed, TERMS) {
                let (number, before, after) = match action {
                    Action::Kill(number) => (number, None, Some("down")),
                    Action::Start(number) => (number, Some("down"), None),
                    Action::Freeze(number) => (number, None, Some("frozen")),
                    Action::Thaw(number) => (number, Some("frozen"), None),
                    Action::Restart(number) => (number, None, None),
                    Action::Database(_) => continue,
                };
                assert_eq!(std::mem::replace(&mut hurt[number], after), before, "{seed}");
            }
            assert_eq!(hurt, [None; 3], "{seed}");
        }
    }
}
