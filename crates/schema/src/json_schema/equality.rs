//! Equality of JSON values as JSON Schema defines it: `1` equals `1.0`, and members have no order.

use std::{
    collections::HashSet,
    hash::{BuildHasher, Hash, Hasher, RandomState},
};

use serde_json::Value;

use super::number::Number;

/// Maximum number of items that are compared pairwise.
const FEW: usize = 8;

pub(super) fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            Number::of(one).zip(Number::of(other)).is_some_and(|(a, b)| a.compare(b).is_eq())
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(a, b)| equal(a, b))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, a)| other.get(name).is_some_and(|b| equal(a, b)))
        }
        (one, other) => one == other,
    }
}

/// Returns whether no two items are equal.
pub(super) fn are_distinct(items: &[Value]) -> bool {
    if items.len() <= FEW {
        return items
            .iter()
            .enumerate()
            .all(|(place, item)| items[..place].iter().all(|before| !equal(before, item)));
    }
    let state = RandomState::new();
    let mut seen = HashSet::with_capacity(items.len());
    items.iter().all(|item| seen.insert(Item { value: item, hash: hash(item, &state) }))
}

/// An item of the set, with its precomputed hash.
struct Item<'a> {
    value: &'a Value,
    hash: u64,
}

impl PartialEq for Item<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && equal(self.value, other.value)
    }
}

impl Eq for Item<'_> {}

impl Hash for Item<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// Hashes a value. Equal values have equal hashes.
fn hash(value: &Value, state: &RandomState) -> u64 {
    match value {
        Value::Null => state.hash_one(0_u8),
        Value::Bool(value) => state.hash_one(value),
        Value::String(text) => state.hash_one(text),
        Value::Number(number) => match Number::of(number) {
            Some(number) => match (number.whole(), number) {
                (Some(whole), _) => state.hash_one(whole),
                (None, Number::Fraction(float)) => state.hash_one(float.to_bits()),
                (None, Number::Integer(integer)) => state.hash_one(integer),
            },
            None => 0,
        },
        Value::Array(items) => {
            state.hash_one(items.iter().map(|item| hash(item, state)).collect::<Vec<_>>())
        }
        Value::Object(members) => members.iter().fold(1, |sum, (name, value)| {
            sum.wrapping_add(state.hash_one((name, hash(value, state))))
        }),
    }
}
