//! `public_url`: the address under which people open pages of the server.

use serde_json::json;

use super::reader::{Read, Result, Value};

/// `public_url`: an `http` or `https` URL, without a slash at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PublicUrl(pub(super) String);

impl Read for PublicUrl {
    fn read(value: Value<'_>) -> Result<Self> {
        let unfit = value.unfit("a URL such as \"https://tools.example.com\"");
        let url = String::read(value)?;
        let url = url.trim_end_matches('/');
        let is_fit = origin(url).is_some() && !url.contains(['?', '#', ' ']);
        if is_fit { Ok(Self(url.to_owned())) } else { Err(unfit) }
    }

    fn schema() -> serde_json::Value {
        json!({"type": "string", "pattern": "^https?://[^/?# ]+(/[^?# ]*)?$"})
    }
}

/// Returns the scheme and the authority of an `http` or `https` URL.
pub(super) fn origin(url: &str) -> Option<&str> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
    let authority = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    (authority > 0).then(|| &url[..url.len() - rest.len() + authority])
}

#[cfg(test)]
mod tests {
    use super::super::file::parse;

    #[track_caller]
    fn check(file: &str, expected: Option<&str>) {
        let file = format!("[tools.t]\ndescription = \"d\"\ncommand = [\"c\"]\n{file}");
        let config = parse(&file).unwrap_or_else(|problem| panic!("{problem}"));
        assert_eq!(config.base_url().as_deref(), expected, "{file}");
    }

    #[test]
    fn base_url_is_public_url_or_resource_or_loopback_address() {
        let auth = "[auth]\nresource = \"https://a.example/mcp\"\nissuer = \"https://id\"\n";
        let public = "[server]\npublic_url = \"https://b.example/tools/\"\n";
        check("", Some("http://127.0.0.1:8000"));
        check("[server]\nlisten = \"0.0.0.0:8000\"\n", None);
        check(auth, Some("https://a.example"));
        check(public, Some("https://b.example/tools"));
        check(&format!("{public}{auth}"), Some("https://b.example/tools"));
    }

    #[test]
    fn public_url_that_is_not_a_web_address_is_rejected() {
        for url in ["tools.example.com", "ftp://a", "https://", "https://a/?b", "https://a b"] {
            let file = format!("[server]\npublic_url = \"{url}\"\n");
            let problems = parse(&file).expect_err(url).to_string();
            assert!(problems.contains("`server.public_url` must be a URL such as"), "{problems}");
        }
    }
}
