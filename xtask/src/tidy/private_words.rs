//! No path of somebody's machine and no address of a package registry in any text file.
//!
//! Either would tie the project to a place. `Cargo.lock` alone names the registry its crates come
//! from, because cargo writes it so. The words are put together here from halves: this file is
//! checked as well.

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
                    format!("`{host}` is an address of a registry; say it without"),
                );
            }
            for folder in FOLDERS.iter().filter(|folder| names_folder(line, folder)) {
                findings.add(
                    &file.path,
                    index + 1,
                    format!("`{folder}` is a folder of one machine; use a path from the project"),
                );
            }
        }
    }
}

/// Whether the folder stands in the line as an absolute path, rather than inside a longer one.
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
    fn folders_of_one_machine_are_found() {
        for folder in FOLDERS {
            let text = format!("see {folder}a\nand file://{folder}b\n");
            assert_eq!(found(check, &[("docs/a.md", &text)]).len(), 2, "{folder}");
        }
    }

    #[test]
    fn longer_paths_and_addresses_are_not() {
        let text = FOLDERS
            .iter()
            .map(|folder| format!("https://example.com{folder}a and test:/{folder}b\n"));
        assert!(found(check, &[("docs/a.md", &text.collect::<String>())]).is_empty());
    }

    #[test]
    fn registries_are_found_except_where_cargo_writes_them() {
        for host in HOSTS {
            let text = format!("source = \"registry+https://{host}/index\"\n");
            assert_eq!(found(check, &[("docs/a.md", &text)]).len(), 1, "{host}");
            assert!(found(check, &[("Cargo.lock", &text)]).is_empty(), "{host}");
        }
    }
}
