//! Links between pages: where they lead on the site, and which lead nowhere.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use super::pages::Page;

/// Folder of pictures, which the site has under `/images/`.
pub(super) const IMAGES: &str = "docs/images/";

/// The project, as links see it.
pub(super) struct Project<'a> {
    pub(super) root: &'a Path,
    /// Address of the project on its code host, for files that are not pages.
    pub(super) repository: &'a str,
    pages: BTreeMap<&'a str, (&'a Page, BTreeSet<String>)>,
}

impl<'a> Project<'a> {
    /// Takes the pages with their texts.
    pub(super) fn new(root: &'a Path, repository: &'a str, pages: &'a [(Page, String)]) -> Self {
        let pages =
            pages.iter().map(|(page, text)| (page.file.as_str(), (page, anchors(text)))).collect();
        Self { root, repository, pages }
    }

    /// Returns the page with the links of the site. Adds each broken link to `broken`.
    pub(super) fn rewritten(&self, page: &Page, text: &str, broken: &mut Vec<String>) -> String {
        let mut out = String::with_capacity(text.len());
        let mut fenced = false;
        for (index, line) in text.lines().enumerate() {
            fenced ^= line.trim_start().starts_with("```");
            if fenced {
                out.push_str(line);
            } else {
                let found = |message: String| {
                    broken.push(format!("{}:{}: {message}", page.file, index + 1));
                };
                out.push_str(&self.line(page, line, found));
            }
            out.push('\n');
        }
        out
    }

    fn line(&self, page: &Page, line: &str, mut broken: impl FnMut(String)) -> String {
        let mut out = String::new();
        let mut rest = line;
        while let Some(at) = rest.find("](") {
            let (before, target) = rest.split_at(at + 2);
            let Some(end) = target.find(')') else { break };
            out.push_str(before);
            match self.target(page, &target[..end]) {
                Ok(target) => out.push_str(&target),
                Err(message) => {
                    broken(message);
                    out.push_str(&target[..end]);
                }
            }
            rest = &target[end..];
        }
        out.push_str(rest);
        // A definition of a link by its name.
        match out.strip_prefix('[').and_then(|line| line.split_once("]: ")) {
            Some((name, target)) => match self.target(page, target.trim()) {
                Ok(target) => format!("[{name}]: {target}"),
                Err(message) => {
                    broken(message);
                    out
                }
            },
            None => out,
        }
    }

    /// Returns where a link leads on the site.
    fn target(&self, page: &Page, target: &str) -> Result<String, String> {
        if target.contains("://") || target.starts_with("mailto:") {
            return Ok(target.to_owned());
        }
        let (path, anchor) =
            target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
        let file = if path.is_empty() { page.file.clone() } else { resolved(&page.file, path) };
        if let Some((linked, anchors)) = self.pages.get(file.as_str()) {
            if let Some(anchor) = anchor.filter(|anchor| !anchors.contains(*anchor)) {
                return Err(format!("{file} has no heading for `#{anchor}`"));
            }
            let anchor = anchor.map_or_else(String::new, |anchor| format!("#{anchor}"));
            let address = if path.is_empty() { String::new() } else { linked.address() };
            return Ok(format!("{address}{anchor}"));
        }
        if !self.root.join(&file).exists() {
            return Err(format!("`{target}` is broken: {file} does not exist"));
        }
        Ok(match file.strip_prefix(IMAGES) {
            Some(image) => format!("/images/{image}"),
            None => format!("{}/blob/main/{file}", self.repository),
        })
    }
}

/// Resolves a link against the page that has it.
fn resolved(page: &str, link: &str) -> String {
    let folder = Path::new(page).parent().unwrap_or(Path::new(""));
    let mut path = PathBuf::new();
    for part in folder.join(link).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::Normal(part) => path.push(part),
            _ => {}
        }
    }
    path.to_string_lossy().into_owned()
}

/// Anchors of a page's headings, as code hosts make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut fenced = false;
    for line in text.lines() {
        fenced ^= line.trim_start().starts_with("```");
        let heading = line.trim_start_matches('#');
        if !fenced && line.starts_with('#') && heading.starts_with(' ') {
            anchors.insert(slug(heading));
        }
    }
    anchors
}

fn slug(heading: &str) -> String {
    let heading = heading.trim().to_lowercase();
    let kept = heading.chars().filter(|char| char.is_alphanumeric() || " -_".contains(*char));
    kept.map(|char| if char == ' ' { '-' } else { char }).collect()
}

#[cfg(test)]
mod tests {
    use super::{Page, Project, anchors};

    fn rewritten(text: &str) -> (String, Vec<String>) {
        let page = |file: &str, url: &str| Page { file: file.to_owned(), url: url.to_owned() };
        let tasks = (
            page("docs/tasks.md", "concepts/tasks"),
            "# Tasks\n## What `x` is, and why\n".to_owned(),
        );
        let pages = [(page("docs/a.md", "a"), text.to_owned()), tasks];
        let project = Project::new(xtask::process::root(), "https://host/x", &pages);
        let mut broken = Vec::new();
        let text = project.rewritten(&pages[0].0, text, &mut broken);
        (text, broken)
    }

    #[test]
    fn link_rewritten_points_to_site_or_code_host() {
        let text = "[t](tasks.md#what-x-is-and-why), [c](../Cargo.toml) and [w](https://a.b/c.md)\n[ref]: tasks.md\n";
        let shown = "[t](/concepts/tasks#what-x-is-and-why), [c](https://host/x/blob/main/Cargo.toml) and \
                     [w](https://a.b/c.md)\n[ref]: /concepts/tasks\n";
        assert_eq!(rewritten(text), (shown.to_owned(), Vec::new()));
    }

    #[test]
    fn broken_link_is_reported_with_its_line() {
        let (_, broken) = rewritten(
            "a\n[x](missing.md) [y](tasks.md#no) [z](#none)\n```\n[code](missing.md)\n```\n",
        );
        assert_eq!(broken.len(), 3, "{broken:?}");
        assert_eq!(
            broken[0],
            "docs/a.md:2: `missing.md` is broken: docs/missing.md does not exist"
        );
        assert_eq!(broken[1], "docs/a.md:2: docs/tasks.md has no heading for `#no`");
    }

    #[test]
    fn heading_in_code_is_not_an_anchor() {
        let anchors = anchors("# A b\n```sh\n# comment\n```\n#![x]\n");
        assert_eq!(anchors.into_iter().collect::<Vec<_>>(), ["a-b"]);
    }
}
