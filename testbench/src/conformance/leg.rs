//! Which runs of the suite make up the whole, and which scenarios each of them must contain.

use super::versions::Wire;

/// Who is under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Server,
    Client,
}

/// The release of the suite. Older servers and clients were tested with the older one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Release {
    Newest,
    Old,
}

/// Which tasks the server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tasks {
    /// In memory, with short times.
    Quick,
    /// In a file, with all settings as they are by default.
    DefaultsInSqlite,
}

/// One run of the suite.
#[derive(Debug)]
pub(super) struct Leg {
    pub(super) name: String,
    pub(super) side: Side,
    pub(super) release: Release,
    pub(super) tasks: Tasks,
    /// What is typed behind `conformance server --url …` or `conformance client --command …`.
    pub(super) args: Vec<String>,
    /// What must run, and on which wire.
    pub(super) scenarios: Vec<(String, Wire)>,
}

impl Leg {
    /// The same leg, against the server whose tasks are as by default.
    pub(super) fn by_default(&self) -> Self {
        Self {
            name: format!("sqlite-{}", self.name),
            tasks: Tasks::DefaultsInSqlite,
            side: self.side,
            release: self.release,
            args: self.args.clone(),
            scenarios: self.scenarios.clone(),
        }
    }
}
