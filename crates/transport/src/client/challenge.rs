//! Parser for `WWW-Authenticate`, which lists the authentication schemes that a server accepts.
//!
//! Spec: <https://www.rfc-editor.org/rfc/rfc9110#section-11.6.1>

use http::{HeaderMap, header};

/// An authentication scheme that a server accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Challenge {
    /// Name of the scheme as the server spells it, such as `Bearer` or `DPoP`.
    pub scheme: String,
    parameters: Vec<(String, String)>,
}

impl Challenge {
    /// Returns all challenges in the headers of a response. Skips malformed challenges.
    pub fn read(headers: &HeaderMap) -> Vec<Self> {
        let values = headers.get_all(header::WWW_AUTHENTICATE).iter();
        values.filter_map(|value| value.to_str().ok()).flat_map(parse).collect()
    }

    /// Returns the value of a parameter. The name is case-insensitive.
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut found =
            self.parameters.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.as_str())
    }

    /// Returns whether the challenge has this scheme.
    pub fn is(&self, scheme: &str) -> bool {
        self.scheme.eq_ignore_ascii_case(scheme)
    }
}

fn parse(text: &str) -> Vec<Challenge> {
    let mut challenges: Vec<Challenge> = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        if rest.is_empty() {
            return challenges;
        }
        let end = rest.find(|c: char| !is_token(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        if word.is_empty() {
            // Skip to the next comma: this element is malformed, and the next one may be valid.
            rest = rest.split_once(',').map_or("", |(_, after)| after);
            continue;
        }
        let equals = after.trim_start_matches([' ', '\t']).strip_prefix('=');
        match (equals, challenges.last_mut()) {
            (Some(after), Some(challenge)) => {
                let (value, after) = value(after.trim_start_matches([' ', '\t']));
                challenge.parameters.push((word.to_owned(), value));
                rest = after;
            }
            // A parameter before the first scheme is ignored.
            (Some(after), None) => rest = value(after).1,
            (None, _) => {
                challenges.push(Challenge { scheme: word.to_owned(), parameters: Vec::new() });
                rest = after;
            }
        }
    }
}

fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~/".contains(c)
}

/// Splits a token or a quoted string from the start of `text`. Returns the value and the rest.
fn value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', ' ', '\t']).unwrap_or(text.len());
        return (text[..end].to_owned(), &text[end..]);
    };
    let mut value = String::new();
    let mut escaped = false;
    for (at, c) in quoted.char_indices() {
        match c {
            _ if escaped => {
                value.push(c);
                escaped = false;
            }
            '\\' => escaped = true,
            '"' => return (value, &quoted[at + 1..]),
            _ => value.push(c),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, header};

    use super::Challenge;

    fn read(text: &'static str) -> Vec<Challenge> {
        let value = HeaderValue::from_static(text);
        Challenge::read(&HeaderMap::from_iter([(header::WWW_AUTHENTICATE, value)]))
    }

    // ACL-03
    #[test]
    fn header_with_several_challenges_is_split() {
        let all = read(
            r#"Basic realm="a, b=\"c\"", Bearer , DPoP algs="ES256", error=use_dpop_nonce,bearer scope="a b",Resource_Metadata = "https://a/b""#,
        );
        let schemes: Vec<&str> = all.iter().map(|it| it.scheme.as_str()).collect();
        assert_eq!(schemes, ["Basic", "Bearer", "DPoP", "bearer"]);
        assert_eq!(all[0].get("realm"), Some(r#"a, b="c""#));
        assert_eq!(all[2].get("error"), Some("use_dpop_nonce"));
        assert!(all[3].is("Bearer"));
        assert_eq!(all[3].get("scope"), Some("a b"));
        assert_eq!(all[3].get("resource_metadata"), Some("https://a/b"));
    }

    #[test]
    fn malformed_challenge_does_not_affect_the_others() {
        for text in
            ["", ",,", "=", r#"="x"#, "Negotiate a==, Bearer", r#"Bearer scope="un"#, "\\ , x"]
        {
            let _ = read(text);
        }
        assert!(
            read("Negotiate abc==, Bearer scope=a").iter().any(|it| it.get("scope") == Some("a"))
        );
        assert!(read(r#"a="b", Bearer scope=c"#)[0].is("Bearer"));
    }
}
