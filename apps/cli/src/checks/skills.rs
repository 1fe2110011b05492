//! The folder of skills: whether everything in it can be served.

use std::path::Path;

use outlive::server::skills::Skills;

use super::{Check, Level};

const SKILLS: &str = "skills";

/// Checks a folder of skills.
pub(crate) fn skills(folder: &Path) -> Check {
    match Skills::from_folder(folder) {
        Ok(skills) if skills.is_empty() => Check::new(
            SKILLS,
            Level::Warning,
            format!("{} has no skills", folder.display()),
            "a folder in it with a SKILL.md; or leave `skills` out",
        ),
        Ok(skills) => {
            Check::ok(SKILLS, format!("{} has {}", folder.display(), number(skills.len())))
        }
        Err(error) => {
            let remedy =
                "correct it, or leave `skills` out; docs/skills.md says what a skill needs";
            Check::new(SKILLS, Level::Refused, error.to_string(), remedy)
        }
    }
}

fn number(skills: usize) -> String {
    if skills == 1 { "1 skill".to_owned() } else { format!("{skills} skills") }
}
