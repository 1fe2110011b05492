//! A principal with its clients and its marks.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use serde_json::{Value, json};

use crate::gateway::serving::PRINCIPALS;
use crate::hosts::caller::Caller;

/// A principal with its clients. All of its threads share them.
#[derive(Debug)]
pub(super) struct Principal {
    pub(super) number: usize,
    pub(super) legacy: Caller,
    pub(super) modern: Caller,
    pub(super) with_tasks: Caller,
    next: AtomicUsize,
}

impl Principal {
    pub(super) fn new(number: usize, gateway: SocketAddr) -> Result<Self> {
        let token = Some(PRINCIPALS[number].1);
        Ok(Self {
            number,
            legacy: Caller::legacy_with(gateway, token, json!({"elicitation": {}}))?,
            modern: Caller::with_input(gateway, token),
            with_tasks: Caller::with_tasks(gateway, token),
            next: AtomicUsize::new(0),
        })
    }

    pub(super) fn token(&self) -> &'static str {
        PRINCIPALS[self.number].1
    }

    /// The start of all its marks.
    pub(super) fn prefix(&self) -> String {
        prefix(self.number)
    }

    /// A mark that only this principal uses, once.
    pub(super) fn mark(&self) -> String {
        format!("{}{:06}", self.prefix(), self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns the number of bytes in messages that are marks of other principals.
    pub(super) fn foreign_bytes(&self, messages: &[Value]) -> usize {
        let text: String = messages.iter().map(Value::to_string).collect();
        let others = (0..PRINCIPALS.len()).filter(|other| *other != self.number);
        others.map(|other| text.matches(&prefix(other)).count() * prefix(other).len()).sum()
    }
}

fn prefix(number: usize) -> String {
    format!("mark-{}-", PRINCIPALS[number].0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Principal;

    #[test]
    fn marks_of_others_are_foreign_bytes() {
        let address = "127.0.0.1:1".parse().unwrap();
        let caller = crate::hosts::caller::Caller::modern(address, None);
        let ada = Principal {
            number: 0,
            legacy: caller.clone(),
            modern: caller.clone(),
            with_tasks: caller,
            next: Default::default(),
        };
        let own = ada.mark();
        assert_eq!(ada.foreign_bytes(&[json!({"a": own})]), 0);
        let seen = [json!(["mark-bob-000001", "mark-eve-000002"])];
        assert_eq!(ada.foreign_bytes(&seen), "mark-bob-mark-eve-".len());
    }
}
