//! Skills as an application gives them to a server.

use std::{collections::BTreeMap, path::Path};

use bytes::Bytes;

use super::{catalog::Catalog, error::SkillError, folder};

/// A skill: a `SKILL.md` and the files that it refers to.
///
/// `SKILL.md` begins with YAML between two lines of `---`, which has at least `name` and `description`.
/// The name is 1 to 64 lower-case letters, digits and single hyphens. The server checks everything in
/// [`ServerBuilder::build`](super::super::ServerBuilder::build).
///
/// ```
/// use outlive::server::{Server, Skill, Skills};
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
    pub(super) prefix: String,
    /// The contents of the files, by their paths in the skill.
    pub(super) files: BTreeMap<String, Bytes>,
    /// The name that the skill must have, and where it was read.
    pub(super) origin: Option<Origin>,
}

/// The folder that a skill was read from.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub(super) name: String,
    pub(super) place: String,
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
pub(super) const SKILL_MD: &str = "SKILL.md";

/// The skills of a server.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Skills {
    skills: Vec<Skill>,
}

impl Skills {
    /// Makes an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads every skill of a folder into memory: each folder in it that has a `SKILL.md`.
    ///
    /// Folders may nest; `skills/acme/refunds/SKILL.md` becomes `skill://acme/refunds/SKILL.md`. Files
    /// whose names begin with a dot are left out. A symbolic link is followed if it stays in the
    /// folder. Changes are seen when the folder is read again.
    ///
    /// # Errors
    ///
    /// When the folder cannot be read, a link leads out of it, something in it is neither a file nor a
    /// folder, a skill is not valid, or a limit is exceeded.
    pub fn from_folder(folder: impl AsRef<Path>) -> Result<Self, SkillError> {
        let skills = folder::read(folder.as_ref())?;
        let read = Self { skills };
        // Checked here as well, so that the error comes from where the folder is named.
        read.clone().into_catalog()?;
        Ok(read)
    }

    /// Adds a skill.
    pub fn skill(mut self, skill: Skill) -> Self {
        self.skills.push(skill);
        self
    }

    /// Returns the number of skills.
    pub fn len(&self) -> usize {
        self.skills.len()
    }

    /// Returns whether there is no skill.
    pub fn is_empty(&self) -> bool {
        self.skills.is_empty()
    }

    /// Adds all skills of another set.
    pub(in crate::server) fn extend(&mut self, more: Self) {
        self.skills.extend(more.skills);
    }

    pub(in crate::server) fn into_catalog(self) -> Result<Catalog, SkillError> {
        Catalog::new(self.skills)
    }
}
