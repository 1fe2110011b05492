//! The outcomes of all features and pairs.

use std::collections::HashMap;

use super::gaps::{self, Gap};
use super::plan::Leg;
use super::rows::{Cell, ROWS, Row};
use super::versions::Version;

/// The outcome of one function of a client script.
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    /// Codes of the packages: `T2→P1`.
    pub(super) peers: String,
    /// Why it failed.
    pub(super) error: Option<String>,
}

/// The attempts of all legs, by pair and function.
#[derive(Debug, Default)]
pub(super) struct Cells(HashMap<(usize, usize, &'static str), Attempt>);

/// The outcome of a cell.
#[derive(Debug)]
pub(super) enum Outcome {
    Works {
        peers: Vec<String>,
        limits: Vec<u8>,
    },
    Reasons(Vec<u8>),
    Absent,
    /// Fails, and its entry in `gaps` says why.
    Known(&'static Gap),
    /// Fails, or works although `gaps` has it.
    Wrong(String),
}

impl Cells {
    pub(super) fn add(&mut self, leg: &Leg, driver: &'static str, error: Option<String>) {
        let (client, upstream) = leg.versions;
        let peers = format!("{}→{}", leg.client.code, leg.upstream.code);
        let key = (client.index(), upstream.index(), driver);
        self.0.insert(key, Attempt { peers, error });
    }

    /// Whether the pair was in the run.
    pub(super) fn has(&self, client: Version, upstream: Version) -> bool {
        self.0.keys().any(|(of_client, of_upstream, _)| {
            (*of_client, *of_upstream) == (client.index(), upstream.index())
        })
    }

    pub(super) fn outcome(&self, row: &Row, client: Version, upstream: Version) -> Outcome {
        let limits = match row.cell(client, upstream) {
            Cell::Absent => return Outcome::Absent,
            Cell::Reasons(reasons) => return Outcome::Reasons(reasons),
            Cell::Works(limits) => limits,
        };
        let mut peers: Vec<String> = Vec::new();
        let mut errors = Vec::new();
        for driver in row.drivers(upstream) {
            match self.0.get(&(client.index(), upstream.index(), *driver)) {
                None => errors.push(format!("`{driver}` did not run")),
                Some(Attempt { peers: of_attempt, error }) => {
                    if !peers.contains(of_attempt) {
                        peers.push(of_attempt.clone());
                    }
                    errors.extend(
                        error.iter().map(|error| format!("`{driver}` ({of_attempt}): {error}")),
                    );
                }
            }
        }
        match (errors.is_empty(), gaps::find(row.name, client, upstream)) {
            (true, None) => Outcome::Works { peers, limits },
            (true, Some(_)) => Outcome::Wrong("works; remove its entry in `gaps`".to_owned()),
            (false, Some(gap)) if errors.iter().any(|error| error.contains(gap.says)) => {
                Outcome::Known(gap)
            }
            (false, _) => Outcome::Wrong(errors.join("; ")),
        }
    }

    /// Every cell that fails the command.
    pub(super) fn wrong(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        for client in Version::ALL {
            for upstream in Version::ALL.into_iter().filter(|it| self.has(client, *it)) {
                for row in &ROWS {
                    if let Outcome::Wrong(error) = self.outcome(row, client, upstream) {
                        let pair = format!("{} > {}", client.name(), upstream.name());
                        wrong.push(format!("{pair}, {}: {error}", row.name));
                    }
                }
            }
        }
        wrong
    }
}
