//! No text file contains a path of a single machine or an address of a package registry.
//!
//! Either would tie the project to a place. Only `Cargo.lock` names the registry of its crates,
//! because cargo writes it. The words are concatenated from halves, because this file is checked
//! too.

use super::findings::Findings;
use super::tree::Tree;

const HOSTS: &[&str] = &[
    concat!("crates", ".io"),
    concat!("pypi", ".org"),
    concat!("registry.npmjs", ".org"),
    concat!("deb.debian", ".org"),
];

const FOLDERS: &[&str] =
    &[concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/tmp/", "target")];

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    for file in tree.files() {
        let is_lock = file.path == "Cargo.lock" || file.path.ends_with("/Cargo.lock");
        for (index, line) in file.text.lines().enumerate() {
            if is_lock && line.contains("registry+") {
                continue;
            }
            for host in HOSTS.iter().filter(|host| line.contains(**host)) {
                findings.add(
                    &file.path,
                    index + 1,
                    format!("`{host}` is the address of a registry; remove it"),
                );
            }
            for folder in FOLDERS.iter().filter(|folder| names_folder(line, folder)) {
                findings.add(
                    &file.path,
                    index + 1,
                    format!("`{folder}` is a folder of a single machine; use a path relative to the project"),
                );
            }
        }
    }
}

/// Whether the folder occurs in the line as an absolute path, not inside a longer path.
fn names_folder(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = &line[..at];
        before.ends_with("file://")
            || !before.ends_with(|char: char| char.is_alphanumeric() || "._-~/}".contains(char))
    })
}

#[cfg(test)]
mod tests {
    use super::super::rules::found;
    use super::{FOLDERS, HOSTS, check};

    #[test]
    fn path_of_single_machine_is_finding() {
        for folder in FOLDERS {
            let text = format!("see {folder}a\nand file://{folder}b\n");
            assert_eq!(found(check, &[("docs/a.md", &text)]).len(), 2, "{folder}");
        }
    }

    #[test]
    fn longer_path_or_url_is_allowed() {
        let text = FOLDERS
            .iter()
            .map(|folder| format!("https://example.com{folder}a and test:/{folder}b\n"));
        assert!(found(check, &[("docs/a.md", &text.collect::<String>())]).is_empty());
    }

    #[test]
    fn registry_address_outside_lock_file_is_finding() {
        for host in HOSTS {
            let text = format!("source = \"registry+https://{host}/index\"\n");
            assert_eq!(found(check, &[("docs/a.md", &text)]).len(), 1, "{host}");
            assert!(found(check, &[("Cargo.lock", &text)]).is_empty(), "{host}");
        }
    }
}
