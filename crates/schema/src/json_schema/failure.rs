//! The reasons why a value violates a schema, as data.

use serde_json::Value;

/// A violated rule.
#[derive(Debug)]
pub(super) struct Failure<'a> {
    /// JSON pointer to the offending value.
    pub(super) path: String,
    /// The offending value.
    pub(super) value: &'a Value,
    /// The violated rule.
    pub(super) rule: Rule<'a>,
}

/// A rule of a schema.
#[derive(Debug)]
pub(super) enum Rule<'a> {
    /// The value must have one of these types.
    Type(Vec<&'a str>),
    /// The object lacks these required members.
    Required(Vec<&'a str>),
    /// The object must not have the members `names`; `known` are the members of the schema.
    Unexpected { names: Vec<&'a str>, known: Vec<&'a str> },
    /// The value must be one of these.
    Enum(Vec<&'a Value>),
    /// The value must be this one.
    Const(&'a Value),
    /// The number must be in this relation to a limit, such as "at least".
    Bound { relation: &'static str, limit: String },
    /// The number of characters, items or members is limited.
    Size { side: &'static str, limit: u64, unit: &'static str },
    /// The items must be unique.
    UniqueItems,
    /// The string must match this pattern.
    Pattern(&'a str),
    /// Exactly one branch must match, but several do.
    SeveralFit,
    /// No branch matches. Contains the failures of each branch.
    NoneFits(Vec<Vec<Failure<'a>>>),
    /// No value is allowed.
    Nothing,
    /// The object must have no members.
    NoMembers,
    /// The value must not match the schema of `not`.
    Not,
    /// Any other rule, as text.
    Other(String),
}
