//! Skills as an application gives them to a server.

use std::collections::BTreeMap;

use bytes::Bytes;

/// Bytes of one file. A result carries it whole, in a third more bytes if it is not text.
pub(crate) const MAX_FILE_BYTES: usize = 4 << 20;

/// Bytes of all files of all skills. They are kept in memory.
pub(crate) const MAX_TOTAL_BYTES: usize = 64 << 20;

/// A skill: a `SKILL.md` and the files that it refers to.
///
/// `SKILL.md` begins with YAML between two lines of `---`, which has at least `name` and `description`.
/// The name is 1 to 64 lower-case letters, digits and single hyphens. The server checks everything in
/// [`ServerBuilder::build`](crate::server::ServerBuilder::build).
///
/// ```
/// use outlive::server::{
///     Server,
///     skills::{Skill, Skills},
/// };
///
/// let text = "---\nname: git-workflow\ndescription: How this team uses Git\n---\n\nSee `references/names.md`.\n";
/// let skill = Skill::new(text).file("references/names.md", "Branches are named after tickets.");
/// let server = Server::builder("docs", "1.0.0").skills(Skills::new().skill(skill)).build()?;
/// # Ok::<(), outlive::server::BuildError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Skill {
    /// The path before the name, such as `acme/billing`; empty if there is none.
    pub(crate) prefix: String,
    /// The contents of the files, by their paths in the skill.
    pub(crate) files: BTreeMap<String, Bytes>,
    /// The name that the skill must have, and where it was read.
    pub(crate) origin: Option<Origin>,
}

/// The folder that a skill was read from.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) name: String,
    pub(crate) place: String,
}

impl Skill {
    /// Makes a skill of the text of its `SKILL.md`.
    pub fn new(skill_md: impl Into<String>) -> Self {
        let text = Bytes::from(skill_md.into());
        let files = BTreeMap::from([(SKILL_MD.to_owned(), text)]);
        Self { prefix: String::new(), files, origin: None }
    }

    /// Adds a file. `path` is relative to the skill, with `/` between its parts.
    pub fn file(mut self, path: impl Into<String>, contents: impl Into<Vec<u8>>) -> Self {
        self.files.insert(path.into(), Bytes::from(contents.into()));
        self
    }

    /// Sets the path before the name, such as `acme/billing` in `skill://acme/billing/refunds/SKILL.md`.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }
}

/// The file that every skill has.
pub(crate) const SKILL_MD: &str = "SKILL.md";
