//! Checks that the people whom the file names can decide.

use std::{collections::BTreeMap, fs, path::Path};

use outlive::server::http::StaticTokens;

use super::{Check, Level};
use crate::serve::config::{ApproveConfig, Config};

const PEOPLE: &str = "people";

/// The only person of a server without tokens.
const LOCAL: &str = "local";

/// Checks the names in `approve`, `operators` and `viewers` against the tokens of the server. With
/// [auth], people log in, and their names are known only then.
pub(crate) fn people(config: &Config, token_file: Option<&Path>) -> Vec<Check> {
    if config.auth.is_some() {
        return Vec::new();
    }
    let known = match token_file {
        None => Known { file: None, names: BTreeMap::from([(LOCAL.to_owned(), true)]) },
        Some(file) => match Known::read(file) {
            Some(known) => known,
            // The check of the file reports the error.
            None => return Vec::new(),
        },
    };
    let mut checks = Vec::new();
    for (place, rule) in config.approval_rules() {
        known.approvers(&place, rule, &mut checks);
    }
    let console = &config.console;
    for (key, names) in [("operators", &console.operators), ("viewers", &console.viewers)] {
        let place = format!("`{key}` of [console]");
        checks.extend(names.iter().filter_map(|name| known.visitor(&place, name)));
    }
    checks
}

/// The people with a token, and whether one of their tokens decides.
struct Known {
    file: Option<String>,
    names: BTreeMap<String, bool>,
}

impl Known {
    /// Reads the names in a token file. Returns `None` if the file is not valid.
    fn read(file: &Path) -> Option<Self> {
        StaticTokens::from_file(file).ok()?;
        let text = fs::read_to_string(file).ok()?;
        let mut names = BTreeMap::new();
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
            let mut words = line.split_whitespace();
            if let Some(name) = words.next() {
                *names.entry(name.to_owned()).or_insert(false) |= words.nth(1) == Some("decide");
            }
        }
        Some(Self { file: Some(file.display().to_string()), names })
    }

    /// Checks the people of a rule.
    fn approvers(&self, place: &str, rule: &ApproveConfig, checks: &mut Vec<Check>) {
        let (names, scope) = rule.addressees();
        for name in names {
            match self.names.get(name) {
                None => {
                    let what = format!("{place} names `{name}`, but {}", self.without(name));
                    checks.push(Check::new(PEOPLE, Level::Refused, what, self.remedy(name)));
                }
                Some(false) if !rule.links => {
                    let what = format!("{place} names `{name}`, whose tokens cannot decide");
                    checks.push(Check::new(PEOPLE, Level::Warning, what, self.remedy(name)));
                }
                Some(_) => {}
            }
        }
        // Without tokens, the local user has every scope.
        if let (Some(scope), Some(file)) = (scope, &self.file) {
            let what =
                format!("{place} has the scope `{scope}`, but no token in {file} has scopes");
            let remedy = "name people in `by`, or use [auth] with an issuer";
            checks.push(Check::new(PEOPLE, Level::Refused, what, remedy));
        }
    }

    /// Checks a person with a role in the console.
    fn visitor(&self, place: &str, name: &str) -> Option<Check> {
        let what = match self.names.get(name) {
            Some(true) => return None,
            Some(false) => format!("{place} names `{name}`, whose tokens cannot sign in"),
            None => format!("{place} names `{name}`, but {}", self.without(name)),
        };
        Some(Check::new(PEOPLE, Level::Warning, what, self.remedy(name)))
    }

    fn without(&self, name: &str) -> String {
        match &self.file {
            Some(file) => format!("{file} has no token of `{name}`"),
            None => format!("a server without tokens knows only the person `{LOCAL}`"),
        }
    }

    fn remedy(&self, name: &str) -> String {
        match &self.file {
            Some(file) => {
                format!("add the line `{name} TOKEN decide` to {file}, or correct the name")
            }
            None => format!("set `token_file` in [server], with a line `{name} TOKEN decide`"),
        }
    }
}
