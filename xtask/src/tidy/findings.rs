//! The findings of the rules.

/// Findings of a rule: path, line, message.
#[derive(Default)]
pub(super) struct Findings(pub(super) Vec<(String, usize, String)>);

impl Findings {
    pub(super) fn add(&mut self, path: &str, line: usize, message: impl Into<String>) {
        self.0.push((path.to_owned(), line, message.into()));
    }

    /// Returns the findings in the files that `wanted` selects, as `path:line: rule: message`.
    pub(super) fn shown(&self, rule: &str, wanted: impl Fn(&str) -> bool) -> Vec<String> {
        let wanted = self.0.iter().filter(|(path, _, _)| wanted(path));
        wanted.map(|(path, line, message)| format!("{path}:{line}: {rule}: {message}")).collect()
    }
}
