//! Converts values of a host's file to values of `outlive.toml`: a text, `env:VARIABLE` or
//! `file:PATH`.

use std::path::Path;

use super::{
    host_text::{Folders, Part, parts},
    secret::{Secrets, is_secret},
};
use crate::error::{CliError, Kind, Result};

/// State of an import.
pub(super) struct Import<'i> {
    pub(super) folders: Folders,
    pub(super) secrets: Secrets,
    /// Returns a variable of this program's environment.
    pub(super) environment: &'i dyn Fn(&str) -> Option<String>,
    /// Messages for the user, each about one upstream.
    pub(super) notes: Vec<String>,
}

impl Import<'_> {
    pub(super) fn note(&mut self, upstream: &str, what: impl std::fmt::Display) {
        self.notes.push(format!("{upstream}: {what}"));
    }

    /// Converts the value of the variable or header `name`. Returns `None` if it cannot be
    /// converted; a note says why.
    pub(super) fn value(
        &mut self,
        upstream: &str,
        name: &str,
        text: &str,
    ) -> Result<Option<String>> {
        let parts = parts(text, &self.folders);
        match &parts[..] {
            [Part::Literal(text)] => self.literal(upstream, name, text).map(Some),
            [Part::Variable { name: variable, default }] => {
                match (default, (self.environment)(variable)) {
                    (Some(default), None) => self.literal(upstream, name, default).map(Some),
                    _ => Ok(Some(format!("env:{variable}"))),
                }
            }
            [Part::File(path)] => Ok(Some(format!("file:{path}"))),
            [Part::Input(_)] => self.typed_in_host(upstream, name).map(Some),
            _ => match self.resolved(upstream, name, &parts) {
                Some(text) => self.secret(upstream, name, &text).map(Some),
                None => Ok(None),
            },
        }
    }

    /// Returns a harmless text as it is, and stores any other one.
    fn literal(&mut self, upstream: &str, name: &str, text: &str) -> Result<String> {
        // Such a text would be read as a reference.
        let is_reference = text.starts_with("env:") || text.starts_with("file:");
        match is_reference || is_secret(name, text) {
            true => self.secret(upstream, name, text),
            false => Ok(text.to_owned()),
        }
    }

    /// Stores a secret, and returns the reference to it.
    pub(super) fn secret(&mut self, upstream: &str, name: &str, text: &str) -> Result<String> {
        let stored = self.secrets.store(upstream, name, text);
        let path = stored.map_err(|error| unwritable(self.secrets.folder(), &error))?;
        Ok(format!("file:{}", path.display()))
    }

    /// Returns the reference to a secret that the user typed into the host, which does not store it
    /// in its file.
    fn typed_in_host(&mut self, upstream: &str, name: &str) -> Result<String> {
        let reserved = self.secrets.reserve(upstream, name);
        let path = reserved.map_err(|error| unwritable(self.secrets.folder(), &error))?;
        let path = path.display();
        self.note(
            upstream,
            format_args!("the host asks for the value of `{name}`; write it to {path} (chmod 600)"),
        );
        Ok(format!("file:{path}"))
    }

    /// Returns a text with the values that its variables have now.
    fn resolved(&mut self, upstream: &str, name: &str, parts: &[Part]) -> Option<String> {
        let mut text = String::new();
        for part in parts {
            match part {
                Part::Literal(literal) => text.push_str(literal),
                Part::Variable { name: variable, default } => {
                    match (self.environment)(variable).or_else(|| default.clone()) {
                        Some(value) => text.push_str(&value),
                        None => {
                            self.note(
                                upstream,
                                format_args!("`{name}` is left out, because it contains ${{{variable}}}, which is not set here; set it and import again"),
                            );
                            return None;
                        }
                    }
                }
                Part::File(_) | Part::Input(_) | Part::Unknown(_) => {
                    self.note(
                        upstream,
                        format_args!(
                            "`{name}` is left out, because only the host can resolve its references; add it by hand"
                        ),
                    );
                    return None;
                }
            }
        }
        Some(text)
    }
}

fn unwritable(folder: &Path, error: &std::io::Error) -> CliError {
    let folder = folder.display();
    CliError::new(Kind::Failed, format_args!("cannot store secrets in {folder}: {error}"))
        .remedy("choose another folder with --secrets FOLDER")
}
