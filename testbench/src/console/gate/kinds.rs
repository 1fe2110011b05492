//! The five kinds of clients, and the decisions that people take about their calls.

use std::net::SocketAddr;

use anyhow::Result;
use serde_json::json;

use crate::hosts::caller::Caller;

/// A kind of client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Kind {
    /// 2026-07-28, declares tasks.
    Tasks,
    /// 2025-11-25, sends `params.task`.
    Requested,
    /// 2026-07-28 without tasks.
    Rounds,
    /// 2025-11-25 without tasks, in a session.
    Session,
    /// 2026-07-28, calls a tool with `task = "never"`.
    Never,
}

impl Kind {
    pub(super) const ALL: [Self; 5] =
        [Self::Tasks, Self::Requested, Self::Rounds, Self::Session, Self::Never];

    /// The name, which starts the keys of the calls.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Tasks => "tasks",
            Self::Requested => "requested",
            Self::Rounds => "rounds",
            Self::Session => "session",
            Self::Never => "never",
        }
    }

    /// The kind of the client that made a call.
    pub(super) fn of_key(key: &str) -> Option<Self> {
        let name = key.split('-').next()?;
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The tool of a call. People never decide about those that expire.
    pub(super) fn tool(self, fate: Fate) -> &'static str {
        match (self, fate) {
            (Self::Never, Fate::Expire) => "brief_release",
            (Self::Never, _) => "release",
            (_, Fate::Expire) => "brief_deploy",
            _ => "deploy",
        }
    }

    pub(super) fn connect(self, server: SocketAddr, token: &'static str) -> Result<Caller> {
        match self {
            Self::Tasks => Ok(Caller::with_tasks(server, Some(token))),
            Self::Rounds | Self::Never => Ok(Caller::modern(server, Some(token))),
            Self::Session => Caller::legacy(server, Some(token)),
            Self::Requested => Caller::legacy_with(server, Some(token), json!({"tasks": {}})),
        }
    }
}

/// The decision about a call. The key of the call names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Approve,
    Deny,
    /// An operator cancels the call before a decision.
    Withdraw,
    /// No person decides.
    Expire,
}

impl Fate {
    pub(super) const ALL: [Self; 4] = [Self::Approve, Self::Deny, Self::Withdraw, Self::Expire];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Deny => "deny",
            Self::Withdraw => "withdraw",
            Self::Expire => "expire",
        }
    }

    /// The fate of a call: five of ten are approved.
    pub(super) fn draw(number: usize) -> Self {
        match number % 10 {
            1 | 6 => Self::Expire,
            3 | 8 => Self::Withdraw,
            5 => Self::Deny,
            _ => Self::Approve,
        }
    }

    pub(super) fn of_key(key: &str) -> Option<Self> {
        let name = key.split('-').nth(1)?;
        Self::ALL.into_iter().find(|fate| fate.name() == name)
    }
}

/// The key of a call.
pub(super) fn key(kind: Kind, fate: Fate, number: usize) -> String {
    format!("{}-{}-{number}", kind.name(), fate.name())
}

#[cfg(test)]
mod tests {
    use super::{Fate, Kind, key};

    #[test]
    fn key_names_kind_and_fate() {
        for kind in Kind::ALL {
            for fate in Fate::ALL {
                let key = key(kind, fate, 7);
                assert_eq!((Kind::of_key(&key), Fate::of_key(&key)), (Some(kind), Some(fate)));
            }
        }
        assert_eq!((Kind::of_key("x"), Fate::of_key("tasks")), (None, None));
    }
}
