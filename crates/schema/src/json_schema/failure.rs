//! Why a value does not fit a schema, as data.

use serde_json::Value;

/// One rule that a value breaks.
#[derive(Debug)]
pub(super) struct Failure<'a> {
    /// JSON pointer of the value in the whole value.
    pub(super) path: String,
    /// The value.
    pub(super) value: &'a Value,
    /// The rule.
    pub(super) rule: Rule<'a>,
}

/// A rule of a schema.
#[derive(Debug)]
pub(super) enum Rule<'a> {
    /// One of these types.
    Type(Vec<&'a str>),
    /// These members, which the object lacks.
    Required(Vec<&'a str>),
    /// None of these members; the schema knows the others.
    Unexpected { names: Vec<&'a str>, known: Vec<&'a str> },
    /// One of these values.
    Enum(Vec<&'a Value>),
    /// This value.
    Const(&'a Value),
    /// A number in relation to this one, such as "at least".
    Bound { relation: &'static str, limit: String },
    /// A number of characters, items or members.
    Size { side: &'static str, limit: u64, unit: &'static str },
    /// No item twice.
    UniqueItems,
    /// A match of this pattern.
    Pattern(&'a str),
    /// One branch; more than one fits.
    SeveralFit,
    /// One of these branches, each of which fails for its own reasons.
    NoneFits(Vec<Vec<Failure<'a>>>),
    /// No value at all.
    Nothing,
    /// No members at all.
    NoMembers,
    /// Another value than those that a schema names.
    Not,
    /// A rule that has only a text.
    Other(String),
}
