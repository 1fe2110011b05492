//! Compares the listings with the snapshots, or writes them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::list::list;
use super::model::Model;
use xtask::args::Args;
use xtask::process;

/// The crates that follow semver, with their snapshots.
const SNAPSHOTS: &[(&str, &str)] =
    &[("outlive", "api/outlive.txt"), ("outlive_wire", "api/outlive-wire.txt")];

/// Modules whose names are counted, because a reader sees all of them at once.
const COUNTED: &[&str] = &["outlive::server", "outlive::client"];

pub(crate) fn run(mut args: Args) -> Result<()> {
    let update = args.flag("--update");
    args.finish()?;
    let root = process::root();
    let model = Model::read(&libraries(&root.join("crates"))?)?;
    let mut differs = false;
    for (krate, file) in SNAPSHOTS {
        let now = list(&model, krate);
        println!("{krate}: {} public lines", now.len());
        for module in COUNTED.iter().filter(|module| module.starts_with(&format!("{krate}::"))) {
            println!("{module}: {} names, modules not counted", names(&now, module));
        }
        let path = root.join(file);
        if update {
            fs::create_dir_all(root.join("api"))?;
            fs::write(&path, now.join("\n") + "\n")
                .with_context(|| format!("cannot write {file}"))?;
            continue;
        }
        let before = fs::read_to_string(&path).unwrap_or_default();
        let before: Vec<&str> = before.lines().collect();
        let diff = diff(&before, &now);
        differs |= !diff.is_empty();
        if !diff.is_empty() {
            println!("{file}:\n{}", diff.join("\n"));
        }
    }
    if differs {
        bail!(
            "the public API differs from its snapshot; if that is intended, run `cargo xtask public-api --update` and review the diff line by line"
        );
    }
    Ok(())
}

/// Returns every library in a folder: its crate name and its root file. A library may re-export
/// names of another.
fn libraries(folder: &Path) -> Result<Vec<(String, PathBuf)>> {
    let mut libraries = Vec::new();
    for entry in fs::read_dir(folder).context("cannot list the crates")? {
        let folder = entry?.path();
        let root = folder.join("src/lib.rs");
        let Ok(manifest) = fs::read_to_string(folder.join("Cargo.toml")) else { continue };
        let name =
            manifest.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
        if let (Some(name), true) = (name, root.exists()) {
            libraries.push((name.replace('-', "_"), root));
        }
    }
    libraries.sort();
    Ok(libraries)
}

/// Returns removed (`-`) and added (`+`) lines in order. Both inputs are sorted.
fn diff(before: &[&str], now: &[String]) -> Vec<String> {
    let gone =
        before.iter().filter(|line| now.binary_search_by(|now| now.as_str().cmp(line)).is_err());
    let come = now.iter().filter(|line| before.binary_search(&line.as_str()).is_err());
    let mut diff: Vec<(&str, &str)> = gone.map(|line| (*line, "-")).collect();
    diff.extend(come.map(|line| (line.as_str(), "+")));
    diff.sort_unstable();
    diff.into_iter().map(|(line, sign)| format!("{sign} {line}")).collect()
}

/// Number of items directly in a module.
fn names(lines: &[String], module: &str) -> usize {
    const KINDS: &[&str] =
        &["struct ", "enum ", "trait ", "fn ", "const ", "static ", "type ", "use "];
    let inside = lines.iter().filter(|line| {
        let line = line.strip_prefix("#[non_exhaustive] ").unwrap_or(line);
        let Some(line) = line.strip_prefix("pub ") else { return false };
        let line = KINDS.iter().find_map(|kind| line.strip_prefix(kind)).unwrap_or("");
        let path = line.split([' ', '<', '(']).next().unwrap_or("").trim_end_matches(':');
        let name = path.strip_prefix(module).and_then(|rest| rest.strip_prefix("::"));
        name.is_some_and(|name| !name.contains("::"))
    });
    inside.count()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{Model, diff, libraries, list, names, process};

    /// The listing of a library `a` with these files, beside a library `outlive_wire`.
    fn listed(name: &str, files: &[(&str, &str)]) -> Vec<String> {
        let folder =
            std::env::temp_dir().join(format!("outlive-api-{name}-{}", std::process::id()));
        for (path, text) in files {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let wire = folder.join("wire/lib.rs");
        fs::create_dir_all(wire.parent().unwrap()).unwrap();
        fs::write(&wire, "pub struct Meta;\n").unwrap();
        let libraries =
            [("a".to_owned(), folder.join("lib.rs")), ("outlive_wire".to_owned(), wire)];
        let model = Model::read(&libraries).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        list(&model, "a")
    }

    #[test]
    fn public_names_are_listed_under_their_public_path() {
        let lines = listed(
            "names",
            &[
                (
                    "lib.rs",
                    "mod b;\npub mod c { pub use crate::b::B as D; }\npub use b::B;\npub use outlive_wire::Meta;\n",
                ),
                (
                    "b.rs",
                    "#[derive(Clone)]\n#[non_exhaustive]\npub struct B { pub e: u8, f: u8 }\nimpl B { pub fn g(&self) -> u8 { 0 } fn h() {} }\nimpl Default for B {}\npub struct Hidden;\n",
                ),
            ],
        );
        assert_eq!(
            lines,
            [
                "#[non_exhaustive] pub struct a::B",
                "impl Clone for a::B",
                "impl Default for a::B",
                "pub a::B::e: u8",
                "pub fn a::B::g(&self) -> u8",
                "pub mod a",
                "pub mod a::c",
                "pub use a::Meta = outlive_wire::Meta",
                "pub use a::c::D = a::B",
            ]
        );
        assert_eq!(names(&lines, "a"), 2);
    }

    #[test]
    fn public_traits_enums_and_macros_are_listed() {
        let lines = listed(
            "kinds",
            &[(
                "lib.rs",
                "pub trait T: Send { fn u(&self); fn v() {} }\npub enum W { X, Y(u8) }\n\
                 macro_rules! m { () => { pub fn n() {} } }\nimpl W { m!(); }\n#[cfg(test)]\npub fn test_only() {}\n",
            )],
        );
        assert_eq!(
            lines,
            [
                "a::W::X",
                "a::W::Y(u8)",
                "provided fn a::T::v()",
                "pub enum a::W",
                "pub fn a::W::n (by m!)",
                "pub mod a",
                "pub trait a::T: Send",
                "required fn a::T::u(&self)",
            ]
        );
    }

    #[test]
    fn libraries_of_the_project_are_found() {
        let libraries = libraries(&process::root().join("crates")).unwrap();
        for name in ["outlive", "outlive_protocol", "outlive_wire"] {
            assert!(libraries.iter().any(|(found, _)| found == name), "{name}: {libraries:?}");
        }
    }

    #[test]
    fn diff_shows_removed_and_added_lines() {
        let now = ["pub fn a::c()".to_owned(), "pub mod a".to_owned()];
        assert_eq!(
            diff(&["pub fn a::b()", "pub mod a"], &now),
            ["- pub fn a::b()", "+ pub fn a::c()"]
        );
        assert!(diff(&["pub fn a::c()", "pub mod a"], &now).is_empty());
    }
}
