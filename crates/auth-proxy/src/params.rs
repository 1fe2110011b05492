//! Parameters of a query or a form.

use outlive_auth::fetch::form;

/// Parameters of a request.
pub(super) struct Params(Vec<(String, String)>);

impl Params {
    pub(super) fn read(text: &str) -> Self {
        // A parameter without a value counts as absent (RFC 6749 section 3.1).
        Self(form::decode(text).into_iter().filter(|(_, value)| !value.is_empty()).collect())
    }

    /// Returns a parameter.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Returns all values of a repeatable parameter.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns whether one of these parameters occurs more than once, which is ambiguous.
    pub(super) fn doubled(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.all(name).nth(1).is_some())
    }
}
