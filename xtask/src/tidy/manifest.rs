//! Reads the dependencies in a `Cargo.toml`, line by line.

pub(super) struct Dependency {
    pub(super) name: String,
    pub(super) line: usize,
    pub(super) for_tests: bool,
}

/// Returns every dependency of a manifest, including those for one platform and those in separate
/// tables (`[dependencies.serde]`).
pub(super) fn dependencies(manifest: &str) -> Vec<Dependency> {
    let mut dependencies: Vec<Dependency> = Vec::new();
    let mut section = Section::Other;
    for (index, line) in manifest.lines().enumerate() {
        let (line, number) = (line.trim(), index + 1);
        if let Some(header) = line.strip_prefix('[') {
            section = Section::of(header.trim_end_matches(']'));
            if let Section::One { name, for_tests } = &section {
                dependencies.push(Dependency {
                    name: name.clone(),
                    line: number,
                    for_tests: *for_tests,
                });
            }
        } else if let (Section::List { for_tests }, Some((key, value))) =
            (&section, line.split_once('='))
        {
            let key = key.split('.').next().unwrap_or(key).trim().trim_matches('"');
            if !key.starts_with('#') {
                let name = renamed(value).unwrap_or(key).to_owned();
                dependencies.push(Dependency { name, line: number, for_tests: *for_tests });
            }
        }
    }
    dependencies
}

enum Section {
    List { for_tests: bool },
    One { name: String, for_tests: bool },
    Other,
}

impl Section {
    /// `dependencies`, `target.'cfg(unix)'.dev-dependencies`, `build-dependencies.cc`.
    fn of(header: &str) -> Self {
        let Some(at) = header.find("dependencies") else { return Self::Other };
        let for_tests = header[..at].ends_with("dev-");
        match header[at + "dependencies".len()..].strip_prefix('.') {
            Some(name) => Self::One { name: name.to_owned(), for_tests },
            None => Self::List { for_tests },
        }
    }
}

/// Returns the real name in `{ package = "real-name", … }`.
fn renamed(value: &str) -> Option<&str> {
    let (_, behind) = value.split_once("package")?;
    behind.trim_start().strip_prefix('=')?.trim_start().strip_prefix('"')?.split('"').next()
}

#[cfg(test)]
mod tests {
    use super::dependencies;

    #[test]
    fn dependencies_of_every_form_are_parsed() {
        let manifest = "[package]\nname = \"a\"\n[dependencies]\nbytes.workspace = true\n# tokio = \"1\"\n\
                        web = { package = \"hyper\", version = \"1\" }\n[dev-dependencies]\nproptest = \"1\"\n\
                        [target.'cfg(unix)'.dependencies]\nlibc = \"0.2\"\n[dependencies.serde]\nversion = \"1\"\n";
        let read = dependencies(manifest);
        let names: Vec<(&str, bool)> =
            read.iter().map(|found| (found.name.as_str(), found.for_tests)).collect();
        assert_eq!(
            names,
            [
                ("bytes", false),
                ("hyper", false),
                ("proptest", true),
                ("libc", false),
                ("serde", false)
            ]
        );
        assert_eq!(read[1].line, 6);
    }
}
