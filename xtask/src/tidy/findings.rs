//! The findings of the rules.

/// Findings of a rule: path, line, message.
#[derive(Default)]
pub(super) struct Findings(pub(super) Vec<(String, usize, String)>);

impl Findings {
    pub(super) fn add(&mut self, path: &str, line: usize, message: impl Into<String>) {
        self.0.push((path.to_owned(), line, message.into()));
    }
}
