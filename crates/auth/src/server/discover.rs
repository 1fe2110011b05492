//! Discovery of an issuer's keys from its metadata (RFC 8414, OpenID Connect Discovery).

use std::sync::Arc;

use http::HeaderMap;
use serde::Deserialize;

use super::resource_uri::ResourceUri;
use crate::fetch::Fetcher;

#[derive(Deserialize)]
struct Metadata {
    issuer: String,
    #[serde(default)]
    jwks_uri: Option<String>,
}

/// Returns the URL of an issuer's keys.
pub(super) async fn keys_of(fetch: &Fetcher, issuer: &str) -> Result<Arc<str>, String> {
    let mut last = "the issuer is not a URL".to_owned();
    for url in places(issuer) {
        let metadata: Metadata = match fetch.get(&url, HeaderMap::new()).await {
            Ok(fetched) if fetched.status.is_client_error() => {
                last = format!("{url} returned HTTP {}", fetched.status.as_u16());
                continue;
            }
            // An invalid document is an error: the next URL is tried only if the document is
            // absent.
            Ok(fetched) => fetched.json().map_err(|error| error.to_string())?,
            Err(error) => return Err(error.to_string()),
        };
        // Issuers are compared verbatim, so that a server cannot impersonate another one.
        if metadata.issuer != issuer {
            return Err(format!("{url} describes another issuer"));
        }
        return metadata.jwks_uri.map(Arc::from).ok_or(format!("{url} has no `jwks_uri`"));
    }
    Err(last)
}

/// Returns the URLs of an issuer's metadata, in the order of the specification.
fn places(issuer: &str) -> Vec<String> {
    let Some(uri) = ResourceUri::normal(issuer) else { return Vec::new() };
    let (origin, path) = (uri.origin(), uri.path().trim_end_matches('/'));
    let (oauth, openid) =
        ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration");
    match path {
        "" => vec![format!("{origin}{oauth}"), format!("{origin}{openid}")],
        path => vec![
            format!("{origin}{oauth}{path}"),
            format!("{origin}{openid}{path}"),
            format!("{origin}{path}{openid}"),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::places;

    // ARS-15
    #[test]
    fn metadata_urls_follow_the_rfcs() {
        assert_eq!(
            places("https://id.example/"),
            [
                "https://id.example/.well-known/oauth-authorization-server",
                "https://id.example/.well-known/openid-configuration"
            ]
        );
        assert_eq!(
            places("https://id.example/t1"),
            [
                "https://id.example/.well-known/oauth-authorization-server/t1",
                "https://id.example/.well-known/openid-configuration/t1",
                "https://id.example/t1/.well-known/openid-configuration"
            ]
        );
    }
}
