//! The code blocks of a page of the documentation, for tests that follow it as a reader does.

use std::fs;

use anyhow::{Context, Result};
use xtask::process;

/// A page of the documentation.
#[derive(Debug)]
pub(crate) struct Page {
    /// Path in the repository.
    pub(crate) path: &'static str,
    text: String,
}

/// A block of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block<'p> {
    pub(crate) language: &'p str,
    /// Number of its first line.
    pub(crate) line: usize,
    pub(crate) text: &'p str,
}

impl Page {
    pub(crate) fn read(path: &'static str) -> Result<Self> {
        let text = fs::read_to_string(process::root().join(path))
            .with_context(|| format!("could not read {path}"))?;
        Ok(Self { path, text })
    }

    /// Returns all blocks, in their order.
    pub(crate) fn blocks(&self) -> Vec<Block<'_>> {
        blocks(&self.text)
    }

    /// Returns the block with this index among those of a language in a section, which has a number.
    pub(crate) fn block(&self, section: usize, language: &str, index: usize) -> Result<&str> {
        let own = blocks(self.section(section)?).into_iter();
        let found = own.filter(|block| block.language == language).nth(index);
        let found = found.map(|block| block.text);
        found.with_context(|| {
            format!("section {section} of {} has no block {index} in `{language}`", self.path)
        })
    }

    /// Returns the code in a sentence of a section that starts with these words.
    pub(crate) fn code(&self, section: usize, start: &str) -> Result<&str> {
        let mut code = self.section(section)?.split('`');
        let found = code.find(|code| code.starts_with(start));
        found.with_context(|| format!("section {section} of {} has no `{start}…`", self.path))
    }

    fn section(&self, number: usize) -> Result<&str> {
        let rest = self.text.split_once(&format!("\n## {number}. ")).map(|(_, rest)| rest);
        let own = rest.map(|rest| rest.split("\n## ").next().unwrap_or(rest));
        own.with_context(|| format!("{} has no section {number}", self.path))
    }
}

/// Returns the blocks of a text.
fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find("```") {
        let (language, body) = rest[start + 3..].split_once('\n').unwrap_or_default();
        let end = body.find("```").unwrap_or(body.len());
        let line = text[..text.len() - body.len()].lines().count();
        blocks.push(Block { language: language.trim(), line, text: &body[..end] });
        rest = body.get(end + 3..).unwrap_or_default();
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::{Block, Page, blocks};

    #[test]
    fn blocks_of_page_have_language_line_and_text() {
        let page = "# A\n\n```sh\none\ntwo\n```\n\nb\n\n```text\nthree\n```\n";
        let expected = [("sh", 3, "one\ntwo\n"), ("text", 10, "three\n")];
        let expected = expected.map(|(language, line, text)| Block { language, line, text });
        assert_eq!(blocks(page), expected);
    }

    #[test]
    fn block_is_found_in_its_section_only() {
        let text = "# A\n\n## 1. One\n\n```sh\na\n```\n\n## 2. Two\n\n```sh\nb\n```\n```sh\nc\n```\nRun `d e`.\n";
        let page = Page { path: "page.md", text: text.to_owned() };
        assert_eq!(page.block(1, "sh", 0).unwrap(), "a\n");
        assert_eq!(page.block(2, "sh", 1).unwrap(), "c\n");
        assert_eq!(page.code(2, "d").unwrap(), "d e");
        assert!(page.block(1, "sh", 1).unwrap_err().to_string().contains("page.md"));
    }
}
