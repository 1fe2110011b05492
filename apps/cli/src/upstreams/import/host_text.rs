//! Texts of a host's file, which may refer to variables: `Bearer ${TOKEN}`.

use std::path::Path;

/// One part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Literal(String),
    /// An environment variable of the host, and the value if it is not set.
    Variable {
        name: String,
        default: Option<String>,
    },
    /// The content of a file.
    File(String),
    /// A value that the user types into the host.
    Input(String),
    /// A reference that only the host can resolve.
    Unknown(String),
}

/// Folders that references of a host name.
#[derive(Clone, Debug, Default)]
pub(super) struct Folders {
    pub(super) home: String,
    /// Folder of the project that the file belongs to.
    pub(super) project: String,
}

/// Splits a text into its parts. Folders become literals.
pub(super) fn parts(text: &str, folders: &Folders) -> Vec<Part> {
    if let Some(name) = text.strip_prefix('$').filter(|name| is_shouted(name)) {
        return vec![Part::Variable { name: name.to_owned(), default: None }];
    }
    let mut parts = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let Some(length) = rest[start..].find('}') else { break };
        literal.push_str(&rest[..start]);
        match reference(&rest[start + 2..start + length], folders) {
            Part::Literal(text) => literal.push_str(&text),
            part => {
                if !literal.is_empty() {
                    parts.push(Part::Literal(std::mem::take(&mut literal)));
                }
                parts.push(part);
            }
        }
        rest = &rest[start + length + 1..];
    }
    literal.push_str(rest);
    if !literal.is_empty() || parts.is_empty() {
        parts.push(Part::Literal(literal));
    }
    parts
}

/// Parses the text between `${` and `}`.
fn reference(text: &str, folders: &Folders) -> Part {
    let unknown = || Part::Unknown(format!("${{{text}}}"));
    match text {
        "userHome" => return Part::Literal(folders.home.clone()),
        "workspaceFolder" => return Part::Literal(folders.project.clone()),
        "workspaceFolderBasename" => {
            let name = Path::new(&folders.project).file_name().unwrap_or_default();
            return Part::Literal(name.to_string_lossy().into_owned());
        }
        "pathSeparator" | "/" => return Part::Literal(std::path::MAIN_SEPARATOR.to_string()),
        _ => {}
    }
    match text.split_once(':') {
        Some(("input", id)) => Part::Input(id.to_owned()),
        Some(("file", path)) => Part::File(path.to_owned()),
        Some(("env", name)) if is_variable(name) => {
            Part::Variable { name: name.to_owned(), default: None }
        }
        Some((name, default)) if is_variable(name) && default.starts_with('-') => {
            let default = Some(default[1..].to_owned());
            Part::Variable { name: name.to_owned(), default }
        }
        None if is_variable(text) => Part::Variable { name: text.to_owned(), default: None },
        _ => unknown(),
    }
}

/// Returns whether a text is a valid name of an environment variable.
pub(super) fn is_variable(name: &str) -> bool {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit()) && name.bytes().all(fine)
}

/// Returns whether a text is the name of a variable in capital letters. `$a1b2` may be a password.
fn is_shouted(name: &str) -> bool {
    is_variable(name) && name.len() > 1 && !name.bytes().any(|byte| byte.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::{Folders, Part, parts};

    fn literal(text: &str) -> Part {
        Part::Literal(text.to_owned())
    }

    fn variable(name: &str, default: Option<&str>) -> Part {
        Part::Variable { name: name.to_owned(), default: default.map(str::to_owned) }
    }

    #[test]
    fn references_of_every_host_are_recognized() {
        let folders = Folders { home: "/home/ada".to_owned(), project: "/src/shop".to_owned() };
        for (text, wanted) in [
            ("plain", vec![literal("plain")]),
            ("", vec![literal("")]),
            ("${TOKEN}", vec![variable("TOKEN", None)]),
            ("$TOKEN", vec![variable("TOKEN", None)]),
            ("$a1b2", vec![literal("$a1b2")]),
            ("${env:TOKEN}", vec![variable("TOKEN", None)]),
            ("${PORT:-80}", vec![variable("PORT", Some("80"))]),
            ("Bearer ${TOKEN}", vec![literal("Bearer "), variable("TOKEN", None)]),
            ("${input:key}", vec![Part::Input("key".to_owned())]),
            ("${file:/run/key}", vec![Part::File("/run/key".to_owned())]),
            ("${userHome}/x", vec![literal("/home/ada/x")]),
            ("${workspaceFolder}/x", vec![literal("/src/shop/x")]),
            ("${workspaceFolderBasename}", vec![literal("shop")]),
            ("${config:a.b}", vec![Part::Unknown("${config:a.b}".to_owned())]),
            ("a${", vec![literal("a${")]),
            ("${A}${B}", vec![variable("A", None), variable("B", None)]),
        ] {
            assert_eq!(parts(text, &folders), wanted, "{text}");
        }
    }
}
