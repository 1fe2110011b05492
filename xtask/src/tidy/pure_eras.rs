//! Versions and codecs are pure: no async, no clock.

use super::tree::Tree;
use super::{era_wall, findings::Findings};

const IMPURE: &[&str] = &["async", "await", "SystemTime"];

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    let is_pure =
        |path: &str| path.starts_with(era_wall::ERAS) || path.starts_with(era_wall::RULES);
    for file in tree.rust_files().filter(|file| is_pure(&file.path)) {
        for line in file.lines() {
            let words = line.code.split(|char: char| !char.is_alphanumeric() && char != '_');
            let mut found: Vec<&str> = words.filter(|word| IMPURE.contains(word)).collect();
            if line.code.contains("Instant::now") {
                found.push("Instant::now");
            }
            for word in found {
                findings.add(
                    &file.path,
                    line.number,
                    format!("`{word}`: an era must be pure, without async code and clocks"),
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rules::found;
    use super::check;

    #[test]
    fn async_code_or_clock_in_era_is_finding() {
        let text = "//! Not async.\nasync fn a() {}\nlet now = Instant::now();\nfn asynchronous() {}\nuse std::time::SystemTime;\n";
        assert_eq!(found(check, &[("crates/protocol/src/era/a.rs", text)]).len(), 3);
        assert!(found(check, &[("crates/transport/src/a.rs", text)]).is_empty());
    }
}
