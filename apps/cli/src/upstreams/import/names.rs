//! Names of imported upstreams.

use std::{fs, path::Path};

use toml::Table;

/// Longest name of an upstream.
const LONGEST: usize = 32;

/// Names of one import, each used once.
#[derive(Default)]
pub(super) struct Names(Vec<String>);

impl Names {
    /// Converts a name of a host to a valid one: small letters, digits and `-`.
    pub(super) fn valid(&mut self, written: &str) -> String {
        let plain =
            |char: char| if char.is_ascii_alphanumeric() { char.to_ascii_lowercase() } else { '-' };
        let mut name: String = written.chars().map(plain).collect();
        while name.contains("--") {
            name = name.replace("--", "-");
        }
        let mut name = name.trim_matches('-').to_owned();
        if !name.starts_with(|char: char| char.is_ascii_lowercase()) {
            name.insert_str(0, "mcp-");
        }
        let cut = |length: usize| name.chars().take(length).collect::<String>();
        let mut valid = cut(LONGEST).trim_end_matches('-').to_owned();
        let mut number = 2;
        while self.0.contains(&valid) {
            let end = format!("-{number}");
            valid = cut(LONGEST - end.len()).trim_end_matches('-').to_owned() + &end;
            number += 1;
        }
        self.0.push(valid.clone());
        valid
    }
}

/// Returns the upstreams of a configuration file. Returns none if the file is missing or invalid.
pub(super) fn existing(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let table: Table = text.parse().unwrap_or_default();
    let upstreams = table.get("upstreams").and_then(|upstreams| upstreams.as_table());
    upstreams.map(|upstreams| upstreams.keys().cloned().collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::Names;

    #[test]
    fn names_of_hosts_become_valid_and_unique() {
        let mut names = Names::default();
        for (written, valid) in [
            ("github", "github"),
            ("GitHub", "github-2"),
            ("My Server (dev)", "my-server-dev"),
            ("21st.dev/magic", "mcp-21st-dev-magic"),
            ("", "mcp-"),
            ("a-very-long-name-of-a-server-that-is-cut", "a-very-long-name-of-a-server-tha"),
            ("a-very-long-name-of-a-server-that-is-cut-too", "a-very-long-name-of-a-server-t-2"),
        ] {
            assert_eq!(names.valid(written), valid.trim_end_matches('-'), "{written}");
        }
    }
}
