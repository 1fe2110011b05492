//! Serialization of scopes as a space-separated string.

use outlive_protocol::Scopes;
use serde::{Deserialize, Deserializer, Serializer};

pub(super) fn serialize<S: Serializer>(scopes: &Scopes, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(scopes)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Scopes, D::Error> {
    String::deserialize(from).map(|text| Scopes::of(text.split(' ')))
}
