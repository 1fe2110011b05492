//! What a request asks for: names and values, in a query or a form.

use outlive_auth::fetch::form;

/// The parameters of a request.
pub(super) struct Params(Vec<(String, String)>);

impl Params {
    pub(super) fn read(text: &str) -> Self {
        // One without a value is as good as none (RFC 6749 section 3.1).
        Self(form::decode(text).into_iter().filter(|(_, value)| !value.is_empty()).collect())
    }

    /// A parameter, if it is there.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// All values of a parameter that may be there more than once.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Whether one of these is there twice: nobody knows then which is meant.
    pub(super) fn doubled(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.all(name).nth(1).is_some())
    }
}
