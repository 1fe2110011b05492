//! Checks that the server can serve every skill in the skills folder.

use std::path::Path;

use outlive::server::skills::Skills;

use super::{Check, Level};

const SKILLS: &str = "skills";

/// Checks a skills folder.
pub(crate) fn skills(folder: &Path) -> Check {
    match Skills::from_folder(folder) {
        Ok(skills) if skills.is_empty() => Check::new(
            SKILLS,
            Level::Warning,
            format!("{} has no skills", folder.display()),
            "add a folder with a SKILL.md to it, or remove `skills`",
        ),
        Ok(skills) => {
            Check::ok(SKILLS, format!("{} has {}", folder.display(), number(skills.len())))
        }
        Err(error) => {
            let remedy =
                "correct the skill, or remove `skills`; docs/skills.md describes the format";
            Check::new(SKILLS, Level::Refused, error.to_string(), remedy)
        }
    }
}

fn number(skills: usize) -> String {
    if skills == 1 { "1 skill".to_owned() } else { format!("{skills} skills") }
}
