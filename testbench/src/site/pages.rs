//! Pages of the site, as `site/nav.json` lists them, and their text as the generator takes it.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

/// A group of pages in the side bar.
#[derive(Debug, Deserialize)]
pub(super) struct Section {
    pub(super) items: Vec<Page>,
}

/// A page of the site.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub(super) struct Page {
    /// Path on the site, without `.md`.
    pub(super) url: String,
    /// Path in the project.
    pub(super) file: String,
}

/// Reads the list of pages.
pub(super) fn read(root: &Path) -> Result<Vec<Page>> {
    let text =
        fs::read_to_string(root.join("site/nav.json")).context("could not read the pages")?;
    let sections: Vec<Section> =
        serde_json::from_str(&text).context("site/nav.json is not a list of sections")?;
    Ok(sections.into_iter().flat_map(|section| section.items).collect())
}

impl Page {
    /// Returns the address that links on the site have.
    pub(super) fn address(&self) -> String {
        let url = self.url.strip_suffix("index").unwrap_or(&self.url);
        format!("/{url}")
    }
}

/// Returns code blocks as a reader wants them: without the lines that rustdoc hides, and with a language
/// that the generator knows. Text outside of code has no `{{`, which the generator would evaluate.
pub(super) fn readable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut fence: Option<bool> = None;
    for line in text.lines() {
        if let Some(info) = line.trim_start().strip_prefix("```") {
            let language = info.split(',').next().unwrap_or_default().trim();
            fence = if fence.is_some() { None } else { Some(language == "rust") };
            let indent = &line[..line.len() - line.trim_start().len()];
            out.push_str(&format!("{indent}```{language}\n"));
            continue;
        }
        let hidden =
            fence == Some(true) && (line.trim() == "#" || line.trim_start().starts_with("# "));
        if !hidden {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{Page, read, readable};

    #[test]
    fn index_page_has_address_of_its_folder() {
        let page = |url: &str| Page { url: url.to_owned(), file: String::new() };
        assert_eq!(page("index").address(), "/");
        assert_eq!(page("performance/index").address(), "/performance/");
        assert_eq!(page("concepts/tasks").address(), "/concepts/tasks");
    }

    #[test]
    fn code_block_rendered_omits_hidden_lines_and_rustdoc_options() {
        let text = "# Title\n```rust,no_run\nuse a;\n# use b;\n#[tool]\n#\nfn c() {}\n```\n```sh\n# kept\n```\n";
        let shown = "# Title\n```rust\nuse a;\n#[tool]\nfn c() {}\n```\n```sh\n# kept\n```\n";
        assert_eq!(readable(text), shown);
    }

    #[test]
    fn every_page_exists_and_has_one_address() {
        let root = xtask::process::root();
        let pages = read(root).unwrap();
        let mut urls: Vec<&str> = pages.iter().map(|page| page.url.as_str()).collect();
        urls.sort_unstable();
        urls.dedup();
        assert_eq!(urls.len(), pages.len());
        for page in &pages {
            assert!(root.join(&page.file).is_file(), "{} is missing", page.file);
        }
    }

    #[test]
    fn links_of_guides_have_a_target_in_rustdoc() {
        let folder = xtask::process::root().join("crates/outlive");
        let read = |path: &str| std::fs::read_to_string(folder.join(path)).unwrap();
        let known = read("src/guide-links.md");
        let guides = read("src/docs.rs");
        let files: Vec<&str> =
            guides.split('"').filter(|part| part.ends_with(".md")).skip(1).collect();
        assert!(files.len() > 5, "{files:?}");
        for file in files {
            let text = read(&format!("docs/{file}"));
            for line in text.lines().filter(|line| {
                line.starts_with('[') && line.contains("]: ") && !line.contains("://")
            }) {
                let label = line.split_once("]: ").unwrap().0;
                assert!(
                    known.contains(&format!("{label}]: ")),
                    "{file}: {label}] is not in guide-links.md"
                );
            }
            assert!(
                !text.contains("](../") && !text.contains(".md)"),
                "{file} has a link without a label"
            );
        }
    }
}
