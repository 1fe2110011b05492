//! The client of a call, as the host table and learned limits identify it.

use outlive_protocol::Call;
use serde::{Deserialize, Serialize};

/// Longest stored name or version of a client, in bytes. Names of hosts are shorter; the limit
/// bounds the keys of learned limits.
const MAX_LABEL: usize = 64;

/// Transport of a client's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Transport {
    /// A pipe: stdio, or another byte stream.
    Stdio,
    Http,
}

/// Name, version and transport of a client.
///
/// The client chooses its name and version, so they decide only how its own calls wait.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Client {
    /// Name in lower case; empty if the client has none.
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) transport: Transport,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ClientInfo {
    name: String,
    version: String,
}

impl Client {
    /// Returns the client of a call.
    pub(crate) fn from_call(call: &Call) -> Self {
        let transport = match call.http() {
            Some(_) => Transport::Http,
            None => Transport::Stdio,
        };
        let info: ClientInfo =
            call.client_info().and_then(|info| serde_json::from_str(info).ok()).unwrap_or_default();
        Self::new(&info.name, &info.version, transport)
    }

    /// Returns a client with this name and version.
    pub(crate) fn new(name: &str, version: &str, transport: Transport) -> Self {
        Self { name: label(name).to_lowercase(), version: label(version).to_owned(), transport }
    }

    /// Returns whether `pattern` matches the client's name. A `*` at the end matches any rest.
    pub(crate) fn is_named(&self, pattern: &str) -> bool {
        let pattern = pattern.to_lowercase();
        match pattern.strip_suffix('*') {
            Some(start) => self.name.starts_with(start),
            None => self.name == pattern,
        }
    }

    /// Returns whether the client's version is `since` or later. A version that is not a list of
    /// numbers is earlier than every other one.
    pub(crate) fn is_since(&self, since: &str) -> bool {
        numbers(&self.version) >= numbers(since)
    }
}

/// Returns the start of a name or version, up to the maximum length.
fn label(text: &str) -> &str {
    let ends = text.char_indices().map(|(start, letter)| start + letter.len_utf8());
    let end = ends.take_while(|end| *end <= MAX_LABEL).last();
    &text[..end.unwrap_or(0)]
}

/// Returns the leading numbers of a version: `2.1.319-beta` has 2, 1 and 319.
fn numbers(version: &str) -> Vec<u64> {
    let digits = version.find(|c: char| c != '.' && !c.is_ascii_digit());
    let version = &version[..digits.unwrap_or(version.len())];
    version.split('.').map_while(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::{Client, MAX_LABEL, Transport};

    fn client(name: &str, version: &str) -> Client {
        Client::new(name, version, Transport::Stdio)
    }

    #[test]
    fn name_in_any_case_matches_pattern() {
        for (name, pattern, matches) in [
            ("Claude-Code", "claude-code", true),
            ("visual studio code", "Visual Studio Code", true),
            ("gemini-cli-mcp-client-1", "gemini-cli-mcp-client*", true),
            ("gemini-cli-mcp-client", "gemini-cli-mcp-client*", true),
            ("claude-code-2", "claude-code", false),
            ("mcp", "mcp-*", false),
            ("anything", "*", true),
        ] {
            assert_eq!(client(name, "1").is_named(pattern), matches, "{name} {pattern}");
        }
    }

    #[test]
    fn version_compares_by_number() {
        for (version, since, is_since) in [
            ("2.1.319", "2.1.319", true),
            ("2.1.1000", "2.1.319", true),
            ("2.1.99", "2.1.319", false),
            ("3", "2.1.319", true),
            ("2.1", "2.1.319", false),
            ("2.1.319-beta.1", "2.1.319", true),
            ("dev", "0.1", false),
            ("", "0.1", false),
        ] {
            assert_eq!(client("c", version).is_since(since), is_since, "{version} {since}");
        }
    }

    #[test]
    fn long_name_is_cut_at_character() {
        let name = client(&"ä".repeat(MAX_LABEL), "1").name;
        assert_eq!(name, "ä".repeat(MAX_LABEL / 2));
    }
}
