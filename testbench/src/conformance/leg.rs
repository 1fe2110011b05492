//! The runs of the suite and the scenarios of each run.

use super::versions::Wire;

/// The side under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Server,
    Client,
}

/// The release of the suite. Legacy servers and clients are tested with the old one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Release {
    Newest,
    Old,
}

/// The task configuration of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tasks {
    /// In memory, with short intervals.
    Quick,
    /// In SQLite, with default settings.
    DefaultsInSqlite,
}

/// One run of the suite.
#[derive(Debug)]
pub(super) struct Leg {
    pub(super) name: String,
    pub(super) side: Side,
    pub(super) release: Release,
    pub(super) tasks: Tasks,
    /// Arguments after `conformance server --url …` or `conformance client --command …`.
    pub(super) args: Vec<String>,
    /// The planned scenarios with their versions.
    pub(super) scenarios: Vec<(String, Wire)>,
}

impl Leg {
    /// The same leg against the server with default task settings.
    pub(super) fn by_default(&self) -> Self {
        let named = self.named(format!("sqlite-{}", self.name));
        Self { tasks: Tasks::DefaultsInSqlite, ..named }
    }

    /// The same leg under another name, and so with another folder of results.
    pub(super) fn named(&self, name: String) -> Self {
        Self {
            name,
            tasks: self.tasks,
            side: self.side,
            release: self.release,
            args: self.args.clone(),
            scenarios: self.scenarios.clone(),
        }
    }
}
