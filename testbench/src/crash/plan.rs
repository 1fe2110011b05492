//! What goes wrong, and when: made from the seed before anything starts.
//!
//! Nothing that happens in a run changes its plan, so the same seed gives the same decisions again, in
//! the same order if not at the same moments.

use std::time::Duration;

use super::random::Random;

/// Something that is done to the servers or their database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// `kill -9`; it stays down until it is started.
    Kill(usize),
    /// The signal that asks it to end, and a new process in its place.
    Restart(usize),
    /// It stands still until it is thawed, and then goes on as if nothing had happened.
    Freeze(usize),
    Thaw(usize),
    Start(usize),
    /// `kill -9` of the database, which is started again after this long.
    Database(Duration),
}

impl Action {
    /// Whether it ends what another one has begun.
    pub(super) fn heals(self) -> bool {
        matches!(self, Self::Start(_) | Self::Thaw(_))
    }

    /// The server that it is done to; `None` for the database.
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

/// What a plan is made for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    pub(super) length: Duration,
    pub(super) replicas: usize,
    /// Who is frozen for longer than this has lost its tasks.
    pub(super) lease: Duration,
    pub(super) database: bool,
}

/// Before this the servers only work.
const QUIET: Duration = Duration::from_millis(700);
/// No process is hurt so soon after it was; it would not have begun to work.
pub(super) const REST: Duration = Duration::from_millis(500);

/// A database reads its log for seconds before it is there again; then all must come to work.
const RECOVERY: Duration = Duration::from_secs(7);

/// Each kind of fault once, and then any of them until the time is over.
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
            // All that stand, at once: nobody is left who could take over.
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
    fn the_same_seed_gives_the_same_plan() {
        assert_eq!(plan(1, TERMS), plan(1, TERMS));
        assert_ne!(plan(1, TERMS), plan(2, TERMS));
    }

    #[test]
    fn every_kind_of_fault_is_in_every_plan() {
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
    fn who_is_killed_or_frozen_is_healed_before_anything_else() {
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
