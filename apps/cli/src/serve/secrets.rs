//! Environment variables with secrets of the server, which no command inherits.

use std::{env, fs, path::Path};

use toml::{Table, Value};

use crate::error::{CliError, Result};

/// Returns the secret in an environment variable. `example` stands for the value in the remedy.
///
/// # Errors
///
/// Returns an error if the variable is not set or empty.
pub(super) fn secret(variable: &str, example: &str) -> Result<String> {
    let secret = env::var(variable).ok().map(|secret| secret.trim().to_owned());
    secret.filter(|secret| !secret.is_empty()).ok_or_else(|| {
        CliError::usage(format_args!("the environment variable {variable} is not set or empty"))
            .remedy(format_args!("{variable}={example} outlive serve"))
    })
}

/// Returns the variables that the `*_env` keys of the file name. Returns none if the file cannot be
/// read; loading the tools reports that error.
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
    fn variables_of_all_env_keys_are_collected() {
        let file = "[auth]\nintrospection_secret_env = \"A\"\n[auth.proxy]\nsigning_secret_env = \"B\"\n[tools.t]\ninherit_env = true\npass_env = [\"C\"]\n";
        let mut names = Vec::new();
        collect(&file.parse().expect("is TOML"), &mut names);
        names.sort();
        assert_eq!(names, ["A", "B"]);
    }
}
