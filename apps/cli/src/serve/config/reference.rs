//! Values of upstreams that may be secrets: a text, `env:VARIABLE` or `file:PATH`.
//!
//! They are read when the server starts and when it reloads the file, and written to no file.

use std::{env, fmt, fs, path::Path};

use serde_json::json;

use super::reader::{Problem, Read, Result, Value};

/// A text, or the place of a text.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Reference {
    Text(String),
    Variable(String),
    File(String),
}

impl Reference {
    pub(crate) fn parse(text: &str) -> Self {
        match (text.strip_prefix("env:"), text.strip_prefix("file:")) {
            (Some(variable), _) => Self::Variable(variable.to_owned()),
            (_, Some(path)) => Self::File(path.to_owned()),
            _ => Self::Text(text.to_owned()),
        }
    }

    /// Returns the text. Relative paths are relative to `base`.
    ///
    /// # Errors
    ///
    /// Returns the reason and the remedy if the variable is not set or the file cannot be read.
    pub(crate) fn text(&self, base: &Path) -> std::result::Result<String, String> {
        match self {
            Self::Text(text) => Ok(text.clone()),
            Self::Variable(name) => env::var(name).map_err(|_| {
                format!(
                    "the environment variable {name} is not set; set it and restart `outlive serve`"
                )
            }),
            Self::File(path) => {
                let path = base.join(path);
                let text = fs::read_to_string(&path).map_err(|error| {
                    format!("cannot read {}: {error}; write the value to this file", path.display())
                })?;
                Ok(text.trim_end_matches(['\n', '\r']).to_owned())
            }
        }
    }
}

impl fmt::Debug for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // It may be a secret.
            Self::Text(_) => f.write_str("Text"),
            Self::Variable(name) => write!(f, "Variable({name:?})"),
            Self::File(path) => write!(f, "File({path:?})"),
        }
    }
}

impl Read for Reference {
    fn read(value: Value<'_>) -> Result<Self> {
        let line = value.line;
        let reference = Self::parse(&String::read(value)?);
        let what = match &reference {
            Self::Variable(name) if !is_variable(name) => {
                format!("`env:{name}` does not name an environment variable")
            }
            Self::File(path) if path.is_empty() => "`file:` has no path".to_owned(),
            _ => return Ok(reference),
        };
        Err(Problem::at(line, what)
            .remedy("write \"env:VARIABLE\", \"file:PATH\", or the value itself"))
    }

    fn schema() -> serde_json::Value {
        json!({"type": "string", "examples": ["env:VARIABLE", "file:PATH"]})
    }
}

/// Returns whether a text can be the name of an environment variable.
pub(super) fn is_variable(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0', ' '])
}

#[cfg(test)]
mod tests {
    use std::{env, fs, path::Path};

    use super::Reference;

    #[test]
    fn reference_returns_text_of_its_place() {
        let base = env::temp_dir();
        let file = format!("outlive-reference-{}", std::process::id());
        fs::write(base.join(&file), "from a file\n").unwrap();
        let text = |written: &str| Reference::parse(written).text(&base);
        assert_eq!(text("plain"), Ok("plain".to_owned()));
        assert_eq!(text(&format!("file:{file}")), Ok("from a file".to_owned()));
        assert_eq!(text("env:PATH"), Ok(env::var("PATH").unwrap()));
        fs::remove_file(base.join(&file)).unwrap();
        assert!(
            text(&format!("file:{file}")).unwrap_err().contains("write the value to this file")
        );
        assert!(text("env:OUTLIVE_NO_SUCH").unwrap_err().contains("OUTLIVE_NO_SUCH is not set"));
    }

    #[test]
    fn debug_output_of_text_hides_it() {
        assert_eq!(format!("{:?}", Reference::parse("hunter2")), "Text");
        assert_eq!(Reference::parse("x").text(Path::new("/")), Ok("x".to_owned()));
    }
}
