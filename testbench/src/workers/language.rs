//! The languages of tool workers, and the sections of their configuration.

use std::path::Path;

use xtask::process;

/// A language with a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Python,
    TypeScript,
}

pub(super) const BOTH: [Language; 2] = [Language::Python, Language::TypeScript];

impl Language {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Python => "Python",
            Self::TypeScript => "TypeScript",
        }
    }

    /// Program and script of the tools in `tools/`.
    pub(super) fn words(self) -> [String; 2] {
        let (program, script) = match self {
            Self::Python => ("python3", "bench.py"),
            Self::TypeScript => ("node", "bench.mjs"),
        };
        let script = process::root().join("testbench/src/workers/tools").join(script);
        [program.to_owned(), script.display().to_string()]
    }

    /// The variable that names the package, and its value.
    pub(super) fn package(self) -> (&'static str, String) {
        let path = |path: &str| process::root().join(path).display().to_string();
        match self {
            Self::Python => ("PYTHONPATH", path("workers/python")),
            Self::TypeScript => ("PACKAGE", path("workers/node/outlive.mjs")),
        }
    }

    /// The section of a tool worker that records its executions in a file. `before` are words before
    /// the command, and `more` has further keys.
    pub(super) fn section(self, executions: &Path, before: &[String], more: &str) -> String {
        let words = [before, &self.words()].concat();
        let (name, value) = self.package();
        let executions = executions.display();
        format!(
            "[workers.bench]\ncommand = {words:?}\n{more}\n\
             [workers.bench.env]\nEXECUTIONS = \"{executions}\"\n{name} = {value:?}\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::BOTH;

    #[test]
    fn section_names_existing_script_and_file_of_executions() {
        for language in BOTH {
            assert!(Path::new(&language.words()[1]).exists());
            let section = language.section(Path::new("/tmp/executions"), &["tap".to_owned()], "");
            assert!(section.starts_with("[workers.bench]\ncommand = [\"tap\", "), "{section}");
            assert!(section.contains("\nEXECUTIONS = \"/tmp/executions\"\n"), "{section}");
        }
    }
}
