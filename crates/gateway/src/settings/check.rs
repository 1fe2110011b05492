//! Checks settings before the gateway uses them.

use std::collections::{HashMap, HashSet};

use http::header::AUTHORIZATION;

use super::{
    check_auth::check_auth,
    check_url::check_url,
    upstream::{Credential, Endpoint, Upstream},
};
use crate::names::{Glob, RESERVED};

/// Longest name of an upstream.
const MAX_NAME: usize = 32;

/// Invalid settings of a gateway.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("upstream `{upstream}`: {reason}")]
#[non_exhaustive]
pub struct GatewayError {
    /// Name of the upstream.
    pub upstream: String,
    /// Reason and remedy.
    pub reason: String,
}

/// Checks the settings of all upstreams.
pub(crate) fn check(upstreams: &[Upstream]) -> Result<(), GatewayError> {
    let mut names = HashSet::new();
    let mut prefixes: HashMap<&str, &str> = HashMap::new();
    for upstream in upstreams {
        let bad = |reason: String| GatewayError {
            upstream: outlive::text::line(&upstream.name).into_owned(),
            reason,
        };
        check_name(&upstream.name).map_err(bad)?;
        if !names.insert(&*upstream.name) {
            return Err(bad("the name is used twice; choose another".to_owned()));
        }
        let prefix = upstream.shown_prefix();
        check_prefix(prefix).map_err(bad)?;
        if let Some(other) = prefixes.insert(prefix, &upstream.name) {
            return Err(bad(format!(
                "it has the prefix {prefix:?}, as `{other}`; set another `prefix`"
            )));
        }
        check_endpoint(upstream).map_err(bad)?;
        check_tools(upstream).map_err(bad)?;
    }
    Ok(())
}

fn check_name(name: &str) -> Result<(), String> {
    let mut chars = name.chars();
    let is_start = chars.next().is_some_and(|first| first.is_ascii_lowercase());
    let is_rest = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '-';
    match is_start && chars.all(is_rest) && name.len() <= MAX_NAME {
        true => Ok(()),
        false => Err(format!(
            "a name has 1 to {MAX_NAME} lower-case letters, digits and `-`, and a letter first"
        )),
    }
}

fn check_prefix(prefix: &str) -> Result<(), String> {
    let is_allowed = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '.' | '-');
    match prefix.len() <= MAX_NAME && prefix.chars().all(is_allowed) {
        true => Ok(()),
        false => {
            Err(format!("`prefix` has at most {MAX_NAME} letters, digits and the characters `_.-`"))
        }
    }
}

fn check_endpoint(upstream: &Upstream) -> Result<(), String> {
    match &upstream.endpoint {
        Endpoint::Command(words) => {
            if words.first().is_none_or(|program| program.is_empty()) {
                return Err("`command` is empty; name a program".to_owned());
            }
            if !matches!(upstream.credential, Credential::None) || !upstream.headers.is_empty() {
                return Err(
                    "headers, tokens and `auth` need a `url`; pass a variable with `env`".into()
                );
            }
            Ok(())
        }
        Endpoint::Url(url) => {
            check_url("url", url, upstream.allow_http)?;
            let has_token = !matches!(upstream.credential, Credential::None);
            if has_token && upstream.headers.contains_key(AUTHORIZATION) {
                return Err("it has both an `Authorization` header and a token; remove one".into());
            }
            if let Some(auth) = upstream.oauth() {
                check_auth(upstream, auth)?;
            }
            let reserved = upstream.headers.keys().find(|name| name.as_str().starts_with("mcp-"));
            match reserved {
                Some(name) => {
                    Err(format!("`Mcp-*` headers belong to the protocol; remove `{name}`"))
                }
                None => Ok(()),
            }
        }
        Endpoint::Misconfigured(_) => Ok(()),
    }
}

fn check_tools(upstream: &Upstream) -> Result<(), String> {
    for glob in upstream.only.iter().chain(&upstream.hide) {
        if Glob::new(glob).is_none() {
            return Err(format!("{glob:?} has too many `*`; at most 8 are allowed"));
        }
    }
    let mut renamed = HashSet::new();
    for (tool, settings) in &upstream.tools {
        let Some(name) = &settings.name else { continue };
        if name.is_empty() {
            return Err(format!("the `name` of tool {tool:?} is empty"));
        }
        if upstream.shown_prefix().is_empty() && RESERVED.contains(&name.as_str()) {
            return Err(format!("tool {tool:?} cannot have the name `{name}` of a gateway's tool"));
        }
        if !renamed.insert(name) {
            return Err(format!("two tools have the `name` {name:?}; choose another"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;
    use crate::settings::ToolSettings;

    #[track_caller]
    fn assert_refused(upstreams: &[Upstream], part: &str) {
        let error = check(upstreams).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }

    #[test]
    fn settings_of_valid_upstreams_are_accepted() {
        let upstreams = [
            Upstream::command("files", ["npx", "files"]).prefix(""),
            Upstream::url("linear", "https://mcp.linear.app/mcp").token("secret"),
            Upstream::url("local", "http://127.0.0.1:8000/mcp"),
        ];
        assert_eq!(check(&upstreams), Ok(()));
    }

    #[test]
    fn name_outside_the_pattern_is_refused() {
        for name in ["", "Files", "9files", "a_b", "a".repeat(33).as_str()] {
            assert_refused(&[Upstream::command(name, ["x"])], "a name has");
        }
    }

    #[test]
    fn equal_prefixes_are_refused_also_if_empty() {
        let upstreams =
            [Upstream::command("a", ["x"]).prefix(""), Upstream::command("b", ["x"]).prefix("")];
        assert_refused(&upstreams, "as `a`");
        let upstreams = [Upstream::command("a", ["x"]), Upstream::command("b", ["x"]).prefix("a")];
        assert_refused(&upstreams, "as `a`");
    }

    #[test]
    fn clear_text_to_another_machine_needs_a_permission() {
        let upstream = Upstream::url("a", "http://mcp.example/mcp");
        assert_refused(std::slice::from_ref(&upstream), "allow_http = true");
        assert_eq!(check(&[upstream.allow_http(true)]), Ok(()));
    }

    #[test]
    fn header_with_a_credential_or_of_the_protocol_is_refused() {
        let value = HeaderValue::from_static("x");
        let upstream = Upstream::url("a", "https://a.example");
        let doubled = upstream.clone().token("t").header(AUTHORIZATION, value.clone());
        assert_refused(&[doubled], "both an `Authorization` header and a token");
        let session = upstream.header(HeaderName::from_static("mcp-session-id"), value);
        assert_refused(&[session], "belong to the protocol");
    }

    #[test]
    fn equal_tool_names_are_refused() {
        let upstream = Upstream::command("a", ["x"])
            .tool("one", ToolSettings::new().name("same"))
            .tool("two", ToolSettings::new().name("same"));
        assert_refused(&[upstream], "two tools have the `name`");
    }
}
