//! The set of skills that an application adds to a server.

use std::path::Path;

use crate::server::skills::{catalog::Catalog, error::SkillError, folder, skill::Skill};

/// The skills of a server.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Skills {
    skills: Vec<Skill>,
}

impl Skills {
    /// Returns an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads all skills of a folder into memory: each subfolder that contains a `SKILL.md`.
    ///
    /// Folders may nest; `skills/acme/refunds/SKILL.md` becomes `skill://acme/refunds/SKILL.md`.
    /// Files whose names start with a dot are ignored. A symbolic link is followed if its target is
    /// inside the folder. Later changes of the files have no effect until the folder is read again.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder cannot be read, a skill is invalid, or a limit is exceeded.
    /// Also fails if a link points outside the folder, or an entry is neither a file nor a folder.
    pub fn from_folder(folder: impl AsRef<Path>) -> Result<Self, SkillError> {
        let skills = folder::read(folder.as_ref())?;
        let read = Self { skills };
        // Validated here too, so that the error refers to the folder.
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

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.skills.is_empty()
    }

    /// Adds all skills of another set.
    pub(crate) fn extend(&mut self, more: Self) {
        self.skills.extend(more.skills);
    }

    pub(crate) fn into_catalog(self) -> Result<Catalog, SkillError> {
        Catalog::new(self.skills)
    }
}
