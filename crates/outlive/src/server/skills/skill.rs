//! A skill that an application adds to a server.

use std::collections::BTreeMap;

use bytes::Bytes;

/// Maximum bytes of one file. A result contains the whole file, and Base64 adds a third for binary
/// files.
pub(crate) const MAX_FILE_BYTES: usize = 4 << 20;

/// Maximum bytes of all files of all skills, which stay in memory.
pub(crate) const MAX_TOTAL_BYTES: usize = 64 << 20;

/// A skill: a `SKILL.md` and the files that it refers to.
///
/// `SKILL.md` starts with YAML frontmatter between two `---` lines, with at least `name` and
/// `description`. The name has 1 to 64 lowercase letters, digits and single hyphens.
/// [`ServerBuilder::build`](crate::server::ServerBuilder::build) validates the skill.
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
    /// Path before the name, such as `acme/billing`; may be empty.
    pub(crate) prefix: String,
    /// Contents of the files, by path relative to the skill.
    pub(crate) files: BTreeMap<String, Bytes>,
    /// Required name and source path of a skill that was read from a folder.
    pub(crate) origin: Option<Origin>,
}

/// Folder that a skill was read from.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) name: String,
    pub(crate) place: String,
}

impl Skill {
    /// Returns a skill with the given `SKILL.md`.
    pub fn new(skill_md: impl Into<String>) -> Self {
        let text = Bytes::from(skill_md.into());
        let files = BTreeMap::from([(SKILL_MD.to_owned(), text)]);
        Self { prefix: String::new(), files, origin: None }
    }

    /// Adds a file. `path` is relative to the skill and uses `/` as separator.
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

/// File that every skill has.
pub(crate) const SKILL_MD: &str = "SKILL.md";
