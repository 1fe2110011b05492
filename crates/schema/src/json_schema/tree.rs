//! The compiled form of a schema that [`walk`](super::walk) checks while it reads the text.
//!
//! A tree never refuses. It knows for certain that a value fits, or it has a doubt, and a validator
//! settles the doubt. So nodes may be cautious, and whatever is rare, costly or
//! not understood is simply a [`Node::Doubt`]. What they must never do is let a value pass that
//! the schema refuses.

use super::{full::Pattern, number::Number};

/// A schema as nodes that refer to each other by number, so that it may be recursive.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) nodes: Vec<Node>,
}

/// The place of a [`Node`] in its [`Tree`]. The root is number 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeId(pub(super) usize);

impl Tree {
    pub(super) const ROOT: NodeId = NodeId(0);

    pub(super) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0]
    }
}

/// What one schema asks.
#[derive(Debug)]
pub(super) enum Node {
    /// Nothing.
    Anything,
    /// Something that the tree cannot tell.
    Doubt,
    /// The same as another node: a `$ref`.
    Same(NodeId),
    /// What the alternative for the value's kind asks: an `anyOf` or `oneOf` whose branches
    /// share no kind. In the order of [`Kind`].
    ByKind([NodeId; Kind::COUNT]),
    /// Some of the usual keywords.
    Checks(Box<Checks>),
}

/// What a JSON value is, as the parser reports it.
///
/// `1.0` is a [`Kind::Fraction`] although a schema calls it an integer; that makes it a doubt.
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

/// The keywords of one schema, sorted by the kind of value they speak about.
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
    /// Checks that ask for nothing but one of `kinds`.
    pub(super) fn of(kinds: Kinds) -> Self {
        Self { kinds, literals: None, number: None, string: None, array: None, object: None }
    }
}

/// The values of `enum` or `const` that are cheap to recognise; any other value is a doubt.
#[derive(Debug, Default)]
pub(super) struct Literals {
    pub(super) null: bool,
    pub(super) booleans: [bool; 2],
    pub(super) integers: Vec<i128>,
    pub(super) strings: Vec<Box<str>>,
}

/// What a number must keep to.
#[derive(Debug)]
pub(super) struct Range {
    pub(super) bounds: Vec<(Side, Number)>,
    /// `multipleOf`, if it is a whole number.
    pub(super) step: Option<i128>,
}

/// Which side of its bound a number must be on.
#[derive(Clone, Copy, Debug)]
pub(super) enum Side {
    AtLeast,
    Above,
    AtMost,
    Below,
}

/// What a string must keep to. Lengths are in code points.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) min: u64,
    pub(super) max: u64,
    pub(super) pattern: Option<Pattern>,
}

/// What an array must keep to.
#[derive(Debug)]
pub(super) struct Items {
    pub(super) first: Vec<NodeId>,
    pub(super) rest: NodeId,
    pub(super) min: u64,
    pub(super) max: u64,
    /// `uniqueItems`: two items are a doubt, because telling them apart means keeping them.
    pub(super) distinct: bool,
}

/// What an object must keep to.
#[derive(Debug)]
pub(super) struct Members {
    /// Sorted by name.
    pub(super) known: Vec<Member>,
    pub(super) rest: NodeId,
    /// One bit for each required member, as many as there are.
    pub(super) required: u64,
    /// At most one: a repeated name counts twice here but once in the value.
    pub(super) at_least_one: bool,
    pub(super) max: u64,
}

/// A member of an object that the schema names.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) name: Box<str>,
    pub(super) node: NodeId,
    /// Its bit in [`Members::required`], or 0.
    pub(super) bit: u64,
}
