//! The facts of one file: plain data, without its tests.

use std::collections::HashSet;

/// The facts of one file that the rules need.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// The module of the file first, then its inline modules.
    pub(crate) scopes: Vec<Scope>,
    /// Items other than `mod` and `use`, of the file and its inline modules.
    pub(crate) logic: Vec<Place>,
    pub(crate) functions: Vec<Function>,
    pub(crate) traits: Vec<Trait>,
    /// Lines with a `dyn Any`.
    pub(crate) any_objects: Vec<usize>,
    /// Public items with `#[doc(hidden)]`, outside of `__private`.
    pub(crate) hidden: Vec<Place>,
    pub(crate) names: Vec<PublicName>,
}

/// A name and its line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) line: usize,
    pub(crate) name: String,
}

/// A function with a body, and the lines of its braces.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) open: usize,
    pub(crate) close: usize,
}

/// A trait and the number of its methods.
#[derive(Debug)]
pub(crate) struct Trait {
    pub(crate) line: usize,
    pub(crate) name: String,
    pub(crate) methods: usize,
}

/// A public name: of an item, or of a member of the type or trait `of`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PublicName {
    pub(crate) line: usize,
    pub(crate) name: String,
    pub(crate) of: Option<String>,
}

/// One module: its definitions, imports and mentioned paths.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    /// The names of the enclosing inline modules in its file.
    pub(crate) path: Vec<String>,
    /// Names of items other than modules.
    pub(crate) items: Vec<String>,
    /// Names of modules with their own file.
    pub(crate) files: Vec<String>,
    pub(crate) uses: Vec<Use>,
    /// Paths of two or more segments, in code and in macros.
    pub(crate) paths: Vec<Mention>,
    /// The first names of paths, including single-segment paths.
    pub(crate) mentioned: HashSet<String>,
}

/// One name of a `use`.
#[derive(Debug)]
pub(crate) struct Use {
    /// The name in this module; `None` for a glob.
    pub(crate) alias: Option<String>,
    pub(crate) path: Vec<String>,
    pub(crate) line: usize,
    /// Whether the name is re-exported (`pub use`).
    pub(crate) exported: bool,
}

/// A path somewhere in code.
#[derive(Debug)]
pub(crate) struct Mention {
    pub(crate) path: Vec<String>,
    pub(crate) line: usize,
}
