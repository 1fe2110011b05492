//! Which variables of the server's environment are secrets that no command is given.

use std::{fs, path::Path};

use toml::{Table, Value};

/// Names of the variables that any `*_env` key of the file names. A file that cannot be read has none: who reads it for
/// its tools says why.
pub(super) fn variables(file: Option<&Path>) -> Vec<String> {
    let text = file.and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default();
    let mut names = Vec::new();
    collect(&text.parse().unwrap_or_default(), &mut names);
    names
}

fn collect(table: &Table, names: &mut Vec<String>) {
    for (key, value) in table {
        match value {
            Value::String(name) if key.ends_with("_env") => names.push(name.clone()),
            Value::Table(inner) => collect(inner, names),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::collect;

    #[test]
    fn every_key_that_names_a_variable_counts() {
        let file = "[auth]\nintrospection_secret_env = \"A\"\n[auth.proxy]\nsigning_secret_env = \"B\"\n[tools.t]\ninherit_env = true\npass_env = [\"C\"]\n";
        let mut names = Vec::new();
        collect(&file.parse().expect("is TOML"), &mut names);
        names.sort();
        assert_eq!(names, ["A", "B"]);
    }
}
