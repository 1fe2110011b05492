//! URIs of resources: unchanged while they identify their upstream, else `NAME+URI`.

/// Separator between the name of an upstream and a URI. No scheme starts with a name and `+`
/// that belongs to an upstream, unless an upstream lists it; then the exact URI wins.
const BETWEEN: char = '+';

/// Returns the form of a URI that always identifies its upstream.
pub(crate) fn qualified(upstream: &str, uri: &str) -> String {
    format!("{upstream}{BETWEEN}{uri}")
}

/// Splits a qualified URI into the name of the upstream and the URI.
pub(crate) fn split_qualified(uri: &str) -> Option<(&str, &str)> {
    let (name, rest) = uri.split_once(BETWEEN)?;
    let is_name = name.starts_with(|first: char| first.is_ascii_lowercase())
        && name
            .chars()
            .all(|char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '-');
    (is_name && !rest.is_empty()).then_some((name, rest))
}

/// A URI template of an upstream, for finding out whether a URI fits. Compares the literal parts
/// only: the upstream decides whether the URI exists.
#[derive(Clone, Debug)]
pub(crate) struct UriTemplate {
    /// Literal parts between the expressions, at least one.
    literals: Vec<String>,
}

impl UriTemplate {
    /// Returns `None` for a template without a literal start, which would claim every URI.
    pub(crate) fn new(template: &str) -> Option<Self> {
        let mut literals = Vec::new();
        let mut rest = template;
        while let Some((literal, more)) = rest.split_once('{') {
            literals.push(literal.to_owned());
            rest = more.split_once('}')?.1;
        }
        literals.push(rest.to_owned());
        literals.first().is_some_and(|first| !first.is_empty()).then_some(Self { literals })
    }

    /// Returns whether a URI has the literal parts of the template in their order.
    pub(crate) fn fits(&self, uri: &str) -> bool {
        let [first, middle @ .., last] = self.literals.as_slice() else {
            return self.literals.first().is_some_and(|only| only == uri);
        };
        let Some(rest) = uri.strip_prefix(first.as_str()) else { return false };
        let Some(mut rest) = rest.strip_suffix(last.as_str()) else { return false };
        for literal in middle {
            match rest.find(literal.as_str()) {
                Some(at) => rest = &rest[at + literal.len()..],
                None => return false,
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qualified_uri_names_its_upstream() {
        let uri = qualified("files", "file:///a+b");
        assert_eq!(uri, "files+file:///a+b");
        assert_eq!(split_qualified(&uri), Some(("files", "file:///a+b")));
        assert_eq!(split_qualified("file:///a+b"), None);
        assert_eq!(split_qualified("Files+x:y"), None);
    }

    #[test]
    fn template_fits_uris_with_its_literals() {
        let template = UriTemplate::new("repo://{owner}/{name}/readme").unwrap();
        assert!(template.fits("repo://a/b/readme"));
        assert!(!template.fits("repo://a/b/license"));
        assert!(!template.fits("repo:/readme"));
        assert!(UriTemplate::new("plain://x").unwrap().fits("plain://x"));
        assert!(!UriTemplate::new("plain://x").unwrap().fits("plain://xy"));
    }

    #[test]
    fn template_that_claims_everything_or_is_broken_is_ignored() {
        assert!(UriTemplate::new("{+uri}").is_none());
        assert!(UriTemplate::new("a{b").is_none());
    }
}
