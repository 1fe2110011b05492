//! Compares the listings with the snapshots, or writes them.

use std::fs;

use anyhow::{Context, Result, bail};

use super::list::list;
use super::model::Model;
use crate::args::Args;
use crate::process;

/// The libraries whose names can be reached from those with snapshots: name in code, and folder.
const LIBRARIES: &[(&str, &str)] = &[
    ("outlive", "crates/outlive"),
    ("outlive_auth", "crates/auth"),
    ("outlive_macros", "crates/macros"),
    ("outlive_protocol", "crates/protocol"),
    ("outlive_tasks", "crates/tasks"),
    ("outlive_transport", "crates/transport"),
    ("outlive_wire", "crates/wire"),
];

/// The crates that follow semver, with their snapshots.
const SNAPSHOTS: &[(&str, &str)] =
    &[("outlive", "api/outlive.txt"), ("outlive_wire", "api/outlive-wire.txt")];

/// Modules whose names are counted: a reader sees all of them at once.
const COUNTED: &[&str] = &["outlive::server", "outlive::client"];

pub(crate) fn run(mut args: Args) -> Result<()> {
    let update = args.flag("--update");
    args.finish()?;
    let root = process::root();
    let libraries: Vec<_> = LIBRARIES
        .iter()
        .map(|(name, folder)| (*name, root.join(folder).join("src/lib.rs")))
        .collect();
    let model = Model::read(&libraries)?;
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
            "the public API differs from its snapshot; if that is meant, `cargo xtask public-api --update`, and review the diff line by line"
        );
    }
    Ok(())
}

/// What has gone (`-`) and what has come (`+`), in the order of the lines. Both are sorted.
fn diff(before: &[&str], now: &[String]) -> Vec<String> {
    let gone =
        before.iter().filter(|line| now.binary_search_by(|now| now.as_str().cmp(line)).is_err());
    let come = now.iter().filter(|line| before.binary_search(&line.as_str()).is_err());
    let mut diff: Vec<(&str, &str)> = gone.map(|line| (*line, "-")).collect();
    diff.extend(come.map(|line| (line.as_str(), "+")));
    diff.sort_unstable();
    diff.into_iter().map(|(line, sign)| format!("{sign} {line}")).collect()
}

/// How many items stand directly in a module.
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

    use super::{Model, diff, list, names};

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
        let model = Model::read(&[("a", folder.join("lib.rs")), ("outlive_wire", wire)]).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        list(&model, "a")
    }

    #[test]
    fn names_are_listed_where_users_find_them() {
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
    fn traits_enums_and_macros_are_listed() {
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
    fn diff_shows_what_has_gone_and_what_has_come() {
        let now = ["pub fn a::c()".to_owned(), "pub mod a".to_owned()];
        assert_eq!(
            diff(&["pub fn a::b()", "pub mod a"], &now),
            ["- pub fn a::b()", "+ pub fn a::c()"]
        );
        assert!(diff(&["pub fn a::c()", "pub mod a"], &now).is_empty());
    }
}
