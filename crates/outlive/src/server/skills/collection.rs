//! The skills that an application gives to a server.

use std::path::Path;

use crate::server::skills::{catalog::Catalog, error::SkillError, folder, skill::Skill};

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
    pub(crate) fn extend(&mut self, more: Self) {
        self.skills.extend(more.skills);
    }

    pub(crate) fn into_catalog(self) -> Result<Catalog, SkillError> {
        Catalog::new(self.skills)
    }
}
