//! The project's text files in memory: all files that git tracks or would track.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::thread;

use anyhow::{Context, Result, bail};

use super::source::{self, Line};
use crate::rust::{self, Facts, Krate};
use xtask::process;

pub(super) struct Tree {
    files: Vec<File>,
    /// Facts about the sources by path, computed at first use.
    facts: OnceLock<HashMap<String, Result<Facts, String>>>,
}

pub(super) struct File {
    /// The path from the root of the project, with `/` as separator.
    pub(super) path: String,
    pub(super) text: String,
    /// The split lines of a Rust file; empty for other files.
    lines: Vec<Line>,
}

impl Tree {
    pub(super) fn read(root: &Path) -> Result<Self> {
        let mut git = Command::new("git");
        git.args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
            .current_dir(root);
        let output =
            git.output().context("could not start git, which lists the files of the project")?;
        if !output.status.success() {
            bail!("`git ls-files` failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let paths = String::from_utf8_lossy(&output.stdout);
        // A deleted or binary file has nothing to check.
        let texts = paths.split_terminator('\0').filter_map(|path| {
            let text = String::from_utf8(fs::read(root.join(path)).ok()?).ok()?;
            (!text.contains('\0')).then(|| File::new(path, text))
        });
        let mut files: Vec<File> = texts.collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { files, facts: OnceLock::new() })
    }

    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|(path, text)| File::new(path, (*text).to_owned())).collect();
        Self { files, facts: OnceLock::new() }
    }

    pub(super) fn files(&self) -> &[File] {
        &self.files
    }

    pub(super) fn rust_files(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.is_rust())
    }

    /// The Rust files of the product, `crates/*/src` and `apps/*/src`, without test files.
    pub(super) fn product_files(&self) -> impl Iterator<Item = &File> {
        let in_product = |path: &str| {
            let mut parts = path.split('/');
            matches!(parts.next(), Some("apps" | "crates")) && parts.nth(1) == Some("src")
        };
        self.rust_files().filter(move |file| in_product(&file.path) && !file.is_test())
    }

    /// The Rust files of every crate's `src`, without test files.
    pub(super) fn source_files(&self) -> impl Iterator<Item = &File> {
        self.rust_files().filter(|file| file.path.contains("/src/") && !file.is_test())
    }

    /// Returns the facts of a source file; `None` if it is not a source file or cannot be parsed.
    pub(super) fn facts(&self, path: &str) -> Option<&Facts> {
        self.all_facts().get(path)?.as_ref().ok()
    }

    /// The source files that cannot be parsed, with the error.
    pub(super) fn unreadable(&self) -> impl Iterator<Item = (&str, &str)> {
        self.all_facts()
            .iter()
            .filter_map(|(path, facts)| Some((path.as_str(), facts.as_ref().err()?.as_str())))
    }

    /// Every crate that has a `src/lib.rs` or `src/main.rs`.
    pub(super) fn crates(&self) -> Vec<Krate<'_>> {
        let readable = self.all_facts().iter();
        let readable =
            readable.filter_map(|(path, facts)| Some((path.as_str(), facts.as_ref().ok()?)));
        let facts: HashMap<&str, &Facts> = readable.collect();
        self.source_files()
            .map(|file| file.path.as_str())
            .filter(|path| path.ends_with("/src/lib.rs") || path.ends_with("/src/main.rs"))
            .map(|root| Krate::new(root, &facts))
            .collect()
    }

    /// Parsed on all processors, because parsing takes most of the time of tidy.
    fn all_facts(&self) -> &HashMap<String, Result<Facts, String>> {
        self.facts.get_or_init(|| {
            let files: Vec<&File> = self.source_files().collect();
            let threads = process::cores();
            let part = |first: usize| {
                let files = files.iter().skip(first).step_by(threads);
                let read = |file: &&File| {
                    let facts =
                        rust::read(&file.text_without_tests()).map_err(|error| error.to_string());
                    (file.path.clone(), facts)
                };
                files.map(read).collect::<Vec<_>>()
            };
            thread::scope(|scope| {
                let part = &part;
                let parts: Vec<_> =
                    (0..threads).map(|first| scope.spawn(move || part(first))).collect();
                parts
                    .into_iter()
                    .flat_map(|part| part.join().expect("reading does not panic"))
                    .collect()
            })
        })
    }

    pub(super) fn get(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Whether a file exists, or, for a path that ends with `/`, a file in that folder.
    pub(super) fn has(&self, path: &str) -> bool {
        if path.ends_with('/') {
            self.files.iter().any(|file| file.path.starts_with(path))
        } else {
            self.get(path).is_some()
        }
    }
}

impl File {
    fn new(path: &str, text: String) -> Self {
        let lines = if path.ends_with(".rs") { source::lines(&text) } else { Vec::new() };
        Self { path: path.to_owned(), text, lines }
    }

    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether the file contains only tests: `foo/tests.rs`, or any file in a folder `tests/`.
    pub(super) fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs") || self.path.contains("/tests/")
    }

    /// The text with empty bodies of `#[cfg(test)] mod … { }` and unchanged line numbers: a third
    /// less to parse.
    fn text_without_tests(&self) -> String {
        let mut text = String::with_capacity(self.text.len());
        for (line, written) in self.lines.iter().zip(self.text.lines()) {
            let is_frame = line.code.starts_with(['#', 'm', '}']);
            if !line.in_tests || is_frame {
                text.push_str(written);
            }
            text.push('\n');
        }
        text
    }

    /// Every line of a Rust file.
    pub(super) fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// The lines outside `#[cfg(test)] mod … { }`.
    pub(super) fn lines_without_tests(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(|line| !line.in_tests)
    }
}

#[cfg(test)]
mod tests {
    use super::Tree;

    #[test]
    fn bodies_of_test_modules_are_emptied() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {\n        r\"\n}\";\n    }\n}\nfn c() {}\n";
        let tree = Tree::of(&[("crates/x/src/lib.rs", text)]);
        let kept = "fn a() {}\n#[cfg(test)]\nmod tests {\n\n\n\n\n}\nfn c() {}\n";
        assert_eq!(tree.files()[0].text_without_tests(), kept);
        assert_eq!(tree.facts("crates/x/src/lib.rs").unwrap().scopes[0].items, ["a", "c"]);
    }
}
