//! Re-exports are explicit lists: no `pub use x::*`.

use super::findings::Findings;
use super::tree::Tree;

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    for file in tree.rust_files() {
        // The line of an export whose `;` has not been reached.
        let mut export = None;
        for line in file.lines() {
            if is_export(line.code.trim_start()) {
                export = Some(line.number);
            }
            let Some(begun) = export else { continue };
            if line.code.contains('*') {
                findings.add(&file.path, begun, "list the exported names");
            }
            if line.code.contains(';') {
                export = None;
            }
        }
    }
}

/// `pub use …`, `pub(crate) use …`.
fn is_export(code: &str) -> bool {
    let Some(rest) = code.strip_prefix("pub") else { return false };
    let rest = match rest.strip_prefix('(') {
        Some(scope) => scope.split_once(')').map_or("", |(_, rest)| rest),
        None => rest,
    };
    rest.starts_with(" use ")
}

#[cfg(test)]
mod tests {
    use super::super::rules::found;
    use super::check;

    #[test]
    fn glob_reexport_is_finding() {
        let text = "pub use a::{B, C};\nuse super::*;\npub use d::*;\npub(crate) use e::{\n    f::*,\n};\nlet g = h * i;\n";
        let found = found(check, &[("a.rs", text)]);
        assert_eq!(found, ["a.rs:3: list the exported names", "a.rs:4: list the exported names"]);
    }
}
