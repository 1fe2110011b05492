//! The compiled form of a schema, which [`walk`](super::walk) checks while it parses the text.
//!
//! A tree never rejects a value. The result is either certain (the value is valid) or a doubt,
//! which a validator settles. Rare, expensive or unknown keywords become a [`Node::Doubt`]. A node
//! must never accept a value that the schema rejects.

use super::{full::Pattern, number::Number};

/// A schema as nodes that refer to each other by index, so that it may be recursive.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) nodes: Vec<Node>,
}

/// The index of a [`Node`] in its [`Tree`]. The root is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeId(pub(super) usize);

impl Tree {
    pub(super) const ROOT: NodeId = NodeId(0);

    pub(super) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0]
    }
}

/// The compiled form of one schema.
#[derive(Debug)]
pub(super) enum Node {
    /// Accepts every value.
    Anything,
    /// The tree cannot decide.
    Doubt,
    /// The same as another node: a `$ref`.
    Same(NodeId),
    /// The node for each kind of value, in the order of [`Kind`]: an `anyOf` or `oneOf` whose
    /// branches share no kind.
    ByKind([NodeId; Kind::COUNT]),
    /// Checks of common keywords.
    Checks(Box<Checks>),
}

/// The kind of a JSON value, as the parser reports it.
///
/// `1.0` is a [`Kind::Fraction`], although it is an integer in JSON Schema. It becomes a doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    Boolean,
    Integer,
    Fraction,
    String,
    Array,
    Object,
}

impl Kind {
    pub(super) const COUNT: usize = 7;

    pub(super) const ALL: [Self; Self::COUNT] = [
        Self::Null,
        Self::Boolean,
        Self::Integer,
        Self::Fraction,
        Self::String,
        Self::Array,
        Self::Object,
    ];
}

/// A set of [`Kind`]s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kinds(u8);

impl Kinds {
    pub(super) const NONE: Self = Self(0);
    pub(super) const EVERY: Self = Self((1 << Kind::COUNT) - 1);

    pub(super) const fn of(kind: Kind) -> Self {
        Self(1 << kind as u8)
    }

    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) const fn overlaps(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) const fn has(self, kind: Kind) -> bool {
        self.overlaps(Self::of(kind))
    }
}

/// The keywords of one schema, grouped by the kind of value that they constrain.
#[derive(Debug)]
pub(super) struct Checks {
    /// `type`.
    pub(super) kinds: Kinds,
    /// `enum` or `const`.
    pub(super) literals: Option<Literals>,
    pub(super) number: Option<Range>,
    pub(super) string: Option<Text>,
    pub(super) array: Option<Items>,
    pub(super) object: Option<Members>,
}

impl Checks {
    /// Returns checks that only require one of `kinds`.
    pub(super) fn of(kinds: Kinds) -> Self {
        Self { kinds, literals: None, number: None, string: None, array: None, object: None }
    }
}

/// The values of `enum` or `const` that are cheap to compare. Any other value is a doubt.
#[derive(Debug, Default)]
pub(super) struct Literals {
    pub(super) null: bool,
    pub(super) booleans: [bool; 2],
    pub(super) integers: Vec<i128>,
    pub(super) strings: Vec<Box<str>>,
}

/// Constraints of a number.
#[derive(Debug)]
pub(super) struct Range {
    pub(super) bounds: Vec<(Side, Number)>,
    /// `multipleOf`, if it is an integer.
    pub(super) step: Option<i128>,
}

/// The side of a bound on which a number must be.
#[derive(Clone, Copy, Debug)]
pub(super) enum Side {
    AtLeast,
    Above,
    AtMost,
    Below,
}

/// Constraints of a string. Lengths are in code points.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) min: u64,
    pub(super) max: u64,
    pub(super) pattern: Option<Pattern>,
}

/// Constraints of an array.
#[derive(Debug)]
pub(super) struct Items {
    pub(super) first: Vec<NodeId>,
    pub(super) rest: NodeId,
    pub(super) min: u64,
    pub(super) max: u64,
    /// `uniqueItems`: more than one item is a doubt, because comparing items requires storing them.
    pub(super) distinct: bool,
}

/// Constraints of an object.
#[derive(Debug)]
pub(super) struct Members {
    /// Members that the schema names, sorted by name.
    pub(super) known: Vec<Member>,
    pub(super) rest: NodeId,
    /// The union of the bits of the required members.
    pub(super) required: u64,
    /// Whether `minProperties` is 1. Higher values are not supported, because duplicate names count
    /// twice here.
    pub(super) at_least_one: bool,
    pub(super) max: u64,
}

/// A member that the schema names.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) name: Box<str>,
    pub(super) node: NodeId,
    /// Bit in [`Members::required`]; 0 for an optional member.
    pub(super) bit: u64,
}
