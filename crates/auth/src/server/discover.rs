//! What an issuer publishes about itself (RFC 8414, OpenID Connect Discovery), as far as a server
//! needs it: where its keys are.

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

/// Where the keys of an issuer are.
pub(super) async fn keys_of(fetch: &Fetcher, issuer: &str) -> Result<Arc<str>, String> {
    let mut last = "it has no URL".to_owned();
    for url in places(issuer) {
        let metadata: Metadata = match fetch.get(&url, HeaderMap::new()).await {
            Ok(fetched) if fetched.status.is_client_error() => {
                last = format!("{url} answered HTTP {}", fetched.status.as_u16());
                continue;
            }
            // What is there and broken is not made up for by another place.
            Ok(fetched) => fetched.json().map_err(|error| error.to_string())?,
            Err(error) => return Err(error.to_string()),
        };
        // As it is written: whoever answers here must not speak for another issuer.
        if metadata.issuer != issuer {
            return Err(format!("{url} is about another issuer"));
        }
        return metadata.jwks_uri.map(Arc::from).ok_or(format!("{url} names no `jwks_uri`"));
    }
    Err(last)
}

/// Where an issuer's metadata may be, in the order of the specification.
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
    fn metadata_is_looked_for_where_the_rfcs_put_it() {
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
