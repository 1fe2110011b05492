//! Names of principals and persons: issuer, subject, client and tenant in one string. A person has no
//! client.
//!
//! Two principals never have the same name, nor do two persons, and the length is limited, because stores index the
//! names.

use ring::digest;

use crate::jose::encode_base64url;

/// Maximum length of a name. Names occur in store keys and in log entries.
const LONGEST: usize = 240;

/// Identity in a token.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caller<'a> {
    pub(super) issuer: &'a str,
    pub(super) subject: &'a str,
    pub(super) client: &'a str,
    pub(super) tenant: Option<&'a str>,
}

impl Caller<'_> {
    /// Returns the name of the principal. A long name is replaced by its hash.
    pub(super) fn name(&self) -> String {
        joined([self.issuer, self.subject, self.client].into_iter().chain(self.tenant))
    }

    /// Returns the name of the person, which is the same for all clients. A long name is replaced by
    /// its hash.
    pub(super) fn person(&self) -> String {
        joined([self.issuer, self.subject].into_iter().chain(self.tenant))
    }
}

fn joined<'a>(parts: impl Iterator<Item = &'a str>) -> String {
    let mut name = String::with_capacity(LONGEST);
    for (index, part) in parts.enumerate() {
        if index > 0 {
            name.push('|');
        }
        escape(part, &mut name);
    }
    if name.len() <= LONGEST {
        return name;
    }
    // A literal name cannot start with `#`, because that character is escaped.
    format!("#{}", encode_base64url(digest::digest(&digest::SHA256, name.as_bytes())))
}

/// Escapes separators, line breaks and invisible characters.
fn escape(part: &str, out: &mut String) {
    for char in part.chars() {
        match char {
            '|' | '%' | '#' => push_escaped(char, out),
            char if char.is_ascii_graphic() => out.push(char),
            char => push_escaped(char, out),
        }
    }
}

fn push_escaped(char: char, out: &mut String) {
    let mut bytes = [0; 4];
    for byte in char.encode_utf8(&mut bytes).bytes() {
        out.push('%');
        out.extend(
            [byte >> 4, byte & 15].map(|digit| char::from(b"0123456789ABCDEF"[usize::from(digit)])),
        );
    }
}

/// Returns the name of a principal, as a [`ResourceServer`](super::ResourceServer) derives it from
/// a token.
///
/// Two principals never have the same name. A name is at most 240 bytes long.
pub fn principal_name(issuer: &str, subject: &str, client: &str, tenant: Option<&str>) -> String {
    Caller { issuer, subject, client, tenant }.name()
}

/// Returns the name of the person behind a principal, as a [`ResourceServer`](super::ResourceServer)
/// derives it from a token without a person claim.
pub fn person_name(issuer: &str, subject: &str, tenant: Option<&str>) -> String {
    Caller { issuer, subject, client: "", tenant }.person()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::Caller;

    fn name(issuer: &str, subject: &str, client: &str, tenant: Option<&str>) -> String {
        Caller { issuer, subject, client, tenant }.name()
    }

    #[test]
    fn name_of_short_parts_is_readable() {
        assert_eq!(name("https://id.example", "ann", "app", None), "https://id.example|ann|app");
        assert_eq!(name("https://id.example", "ann", "", Some("t1")), "https://id.example|ann||t1");
        assert_eq!(name("i", "a b\n|é", "c", None), "i|a%20b%0A%7C%C3%A9|c");
    }

    #[test]
    fn principals_with_different_parts_have_different_names() {
        let parts = ["", "a", "b", "|", "a|b", "%7C", "#", "|a", "a|", "%", " "];
        let mut names = HashSet::new();
        let mut count = 0;
        for issuer in parts {
            for subject in parts {
                for client in parts {
                    for tenant in parts.into_iter().map(Some).chain([None]) {
                        names.insert(name(issuer, subject, client, tenant));
                        count += 1;
                    }
                }
            }
        }
        assert_eq!(names.len(), count);
    }

    #[test]
    fn person_has_issuer_subject_and_tenant() {
        let person = |client, tenant| {
            Caller { issuer: "https://id.example", subject: "ann", client, tenant }.person()
        };
        assert_eq!(person("app", None), "https://id.example|ann");
        assert_eq!(person("app", Some("t|1")), "https://id.example|ann|t%7C1");
        assert_eq!(person("app", Some("t")), person("editor", Some("t")));
    }

    #[test]
    fn long_name_is_replaced_by_a_hash() {
        let long = "x".repeat(10_000);
        let one = name("https://id.example", &long, "app", None);
        assert_eq!(one.len(), 44);
        assert_ne!(one, name("https://id.example", &long, "app", Some("")));
        assert_ne!(one, name("https://id.example", &one, "app", None));
    }
}
