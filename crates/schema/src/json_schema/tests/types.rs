//! Argument types, as authors write them.

#![expect(dead_code, reason = "only their shapes matter")]

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    num::NonZeroI8,
};

use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Plain {
    pub(super) count: i64,
    pub(super) small: u8,
    pub(super) name: String,
    pub(super) flag: Option<bool>,
    #[serde(default)]
    pub(super) ratio: f64,
}

/// Every validation that `schemars` has an attribute for, except `regex`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Bounded {
    #[schemars(range(min = 1, max = 100))]
    pub(super) page_size: u32,
    #[schemars(range(min = 0.5, max = 2.5))]
    pub(super) factor: Option<f64>,
    #[schemars(length(min = 1, max = 3))]
    pub(super) short_name: String,
    #[schemars(length(min = 1, max = 3), inner(range(max = 9)))]
    pub(super) digits: Vec<u8>,
    #[serde(rename = "odd name/~")]
    pub(super) odd: Option<BTreeSet<u8>>,
    #[schemars(extend("multipleOf" = 2))]
    pub(super) even: Option<i32>,
    #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 1))]
    pub(super) share: Option<f32>,
}

/// A validation that needs regular expressions.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Patterned {
    #[schemars(regex(pattern = r"^a+$"))]
    pub(super) only_a: Option<String>,
    pub(super) name: String,
}

/// A type for which `schemars` writes `unevaluatedProperties`, `allOf`, `not` and
/// `patternProperties`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Strict {
    pub(super) id: NonZeroI8,
    #[serde(flatten)]
    pub(super) point: Point,
    #[serde(flatten)]
    pub(super) event: Event,
    #[serde(flatten)]
    pub(super) told: Option<Detail>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "detail", content = "body", deny_unknown_fields)]
pub(super) enum Detail {
    Short(u8),
    Signed(BTreeMap<i8, bool>),
    Either(Either),
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum Either {
    Two { a: u8, b: u8 },
    One { a: u8 },
    Word(Mode),
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Nested {
    pub(super) first: Plain,
    pub(super) rest: Vec<Point>,
    pub(super) maybe: Option<Point>,
    pub(super) by_name: HashMap<String, Point>,
    pub(super) pair: (u8, String),
    pub(super) three: [i8; 3],
    pub(super) anything: serde_json::Value,
    pub(super) unit: (),
    pub(super) letter: char,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Point {
    pub(super) x: i32,
    pub(super) y: Option<i32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Choices {
    pub(super) mode: Mode,
    pub(super) topic: Topic,
    pub(super) shape: Option<Shape>,
    pub(super) loose: Loose,
    pub(super) event: Event,
    pub(super) by_mode: BTreeMap<Mode, u8>,
    pub(super) by_number: BTreeMap<u8, bool>,
}

#[derive(Debug, Deserialize, JsonSchema, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mode {
    Fast,
    Slow,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Topic {
    /// Documented variants are written differently.
    OneThing,
    /// Another.
    OtherThing,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) enum Shape {
    Nothing,
    Circle(u8),
    Rectangle { width: u8, height: Option<u8> },
    Line(i8, i8),
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum Loose {
    Word(String),
    Numbers(Vec<u8>),
    Point(Point),
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(super) enum Event {
    Start,
    Move(Point),
    Stop { reason: String },
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Recursive {
    #[schemars(length(max = 2))]
    pub(super) name: String,
    #[serde(default)]
    pub(super) children: Vec<Recursive>,
    pub(super) next: Option<Box<Recursive>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Expression {
    pub(super) root: Term,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) enum Term {
    Zero,
    Number(i8),
    Sum(Vec<Term>),
    Negated(Box<Term>),
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Flattened {
    pub(super) id: u16,
    #[serde(flatten)]
    pub(super) point: Point,
    #[serde(flatten)]
    pub(super) rest: HashMap<String, u8>,
}

/// A lenient field, a field with an alias, and a field that only the schema requires.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Treacherous {
    #[serde(deserialize_with = "number_or_text")]
    pub(super) lenient: i64,
    #[serde(alias = "nickname")]
    pub(super) name: String,
    #[schemars(required)]
    pub(super) asked: Option<u8>,
    #[schemars(with = "u8")]
    pub(super) borrowed: i64,
}

fn number_or_text<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        Number(i64),
        Text(String),
    }
    match Either::deserialize(deserializer)? {
        Either::Number(number) => Ok(number),
        Either::Text(text) => text.parse().map_err(serde::de::Error::custom),
    }
}
