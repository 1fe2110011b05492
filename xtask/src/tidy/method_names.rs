//! The name of a method is spelled in one file; all other code uses `Method::ToolsCall`.
//!
//! Attributes are exempt, because `#[serde(rename = "…")]` takes only a literal.

use super::findings::Findings;
use super::tree::{File, Tree};

pub(super) const METHODS: &str = "crates/wire/src/method.rs";

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    let Some(methods) = tree.get(METHODS) else { return };
    let names = names(methods);
    if names.is_empty() {
        findings.add(
            METHODS,
            1,
            "no line has the form `Name = \"method/name\",`; adapt this rule to the new form",
        );
    }
    for file in tree.product_files().filter(|file| file.path != METHODS) {
        for line in
            file.lines_without_tests().filter(|line| !line.code.trim_start().starts_with("#["))
        {
            for literal in line.literals.iter().filter(|literal| names.contains(&literal.as_str()))
            {
                findings.add(
                    &file.path,
                    line.number,
                    format!("\"{literal}\" is defined in {METHODS}; use `Method`"),
                );
            }
        }
    }
}

/// Returns the names in lines of the form `ToolsCall = "tools/call",`.
fn names(file: &File) -> Vec<&str> {
    let assigns = |code: &str| {
        code.trim()
            .strip_suffix(" = \"\",")
            .is_some_and(|name| name.chars().all(char::is_alphanumeric))
    };
    let lines = file.lines_without_tests().filter(|line| assigns(&line.code));
    lines.flat_map(|line| &line.literals).map(String::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::super::rules::found;
    use super::{METHODS, check};

    const NAMES: &str =
        "//! Names.\nmethods! {\n    Ping = \"ping\",\n    ToolsCall = \"tools/call\",\n}\n";

    #[test]
    fn method_name_outside_method_file_is_finding() {
        let text = "//! Answers \"ping\".\n#[serde(rename = \"ping\")]\nif method == \"ping\" {}\nlog(\"a ping came\");\n\
                    #[cfg(test)]\nmod tests {\n    call(\"tools/call\");\n}\n";
        let found = found(check, &[(METHODS, NAMES), ("crates/protocol/src/a.rs", text)]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("crates/protocol/src/a.rs:3:"));
    }

    #[test]
    fn method_list_in_unknown_form_is_finding() {
        assert_eq!(
            found(check, &[(METHODS, "//! Names.\nconst PING: &str = \"ping\";\n")]).len(),
            1
        );
    }
}
