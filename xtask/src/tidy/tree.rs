//! The project's text files in memory: what git tracks or would track.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::source::{self, Line};

pub(super) struct Tree(Vec<File>);

pub(super) struct File {
    /// From the root of the project, with `/` between the parts.
    pub(super) path: String,
    pub(super) text: String,
    /// The lines taken apart, for Rust files; empty for others.
    lines: Vec<Line>,
}

impl Tree {
    pub(super) fn read(root: &Path) -> Result<Self> {
        let mut git = Command::new("git");
        git.args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
            .current_dir(root);
        let output =
            git.output().context("could not start git, which tidy asks for the project's files")?;
        if !output.status.success() {
            bail!("`git ls-files` failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let paths = String::from_utf8_lossy(&output.stdout);
        // A file that git knows but that is deleted, or that is not text, has nothing to check.
        let texts = paths.split_terminator('\0').filter_map(|path| {
            let text = String::from_utf8(fs::read(root.join(path)).ok()?).ok()?;
            (!text.contains('\0')).then(|| File::new(path, text))
        });
        let mut files: Vec<File> = texts.collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self(files))
    }

    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        Self(files.iter().map(|(path, text)| File::new(path, (*text).to_owned())).collect())
    }

    pub(super) fn files(&self) -> &[File] {
        &self.0
    }

    pub(super) fn rust_files(&self) -> impl Iterator<Item = &File> {
        self.0.iter().filter(|file| file.is_rust())
    }

    /// The Rust files of the product itself, `crates/*/src`, without the files that hold tests.
    pub(super) fn product_files(&self) -> impl Iterator<Item = &File> {
        let in_product = |path: &str| {
            let mut parts = path.split('/');
            matches!(parts.next(), Some("apps" | "crates")) && parts.nth(1) == Some("src")
        };
        self.rust_files().filter(move |file| in_product(&file.path) && !file.is_test())
    }

    pub(super) fn get(&self, path: &str) -> Option<&File> {
        self.0.iter().find(|file| file.path == path)
    }

    /// Whether there is such a file, or, for a path that ends with `/`, a file in that folder.
    pub(super) fn has(&self, path: &str) -> bool {
        if path.ends_with('/') {
            self.0.iter().any(|file| file.path.starts_with(path))
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

    /// A file of nothing but tests: `foo/tests.rs` or anything in a folder `tests/`.
    pub(super) fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs") || self.path.contains("/tests/")
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
