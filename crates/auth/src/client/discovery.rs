//! Discovery of the authorization server of an MCP server, and of its metadata.
//!
//! The client tries the URL in the challenge, then the well-known URLs, then the default endpoints
//! of 2025-03-26.
//! Spec: <https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization/authorization-server-discovery>

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use outlive_transport::client::Challenge;
use outlive_wire::Version;

use super::{
    error::OAuthError,
    metadata::{ResourceMetadata, ServerMetadata},
    url::Place,
};
use crate::fetch::{FetchResponse, Fetcher};

const PROTECTED: &str = "/.well-known/oauth-protected-resource";
const AUTHORIZATION: &str = "/.well-known/oauth-authorization-server";
const OPENID: &str = "/.well-known/openid-configuration";

/// Fetches the protected resource metadata of a server. Returns `None` if the server publishes
/// none.
pub(super) async fn resource(
    fetch: &Fetcher,
    server: &Place,
    named: Option<&str>,
) -> Result<Option<ResourceMetadata>, OAuthError> {
    let mut places: Vec<String> = named.map(str::to_owned).into_iter().collect();
    let (origin, path, query) = (server.origin(), server.path(), server.query());
    // The well-known path goes between the host and the path, including the query (RFC 9728 section
    // 3.1).
    if !query.is_empty() {
        places.push(format!("{origin}{PROTECTED}{path}{query}"));
    }
    if !path.is_empty() {
        places.push(format!("{origin}{PROTECTED}{path}"));
    }
    places.push(format!("{origin}{PROTECTED}"));
    for place in places {
        let fetched = fetch.get(&place, HeaderMap::new()).await?;
        let Some(metadata) = document::<ResourceMetadata>(&fetched)? else { continue };
        if !server.is_within(&metadata.resource) {
            return Err(OAuthError::OtherResource {
                server: server.to_string(),
                named: metadata.resource,
            });
        }
        return Ok(Some(metadata));
    }
    Ok(None)
}

/// Requests the MCP server without a token, and returns the challenges of its response. Returns none
/// if the server sends another response.
pub(super) async fn challenges(fetch: &Fetcher, server: &str) -> Vec<Challenge> {
    match fetch.get(server, HeaderMap::new()).await {
        Ok(fetched) if fetched.status == StatusCode::UNAUTHORIZED => {
            Challenge::read(&fetched.headers)
        }
        _ => Vec::new(),
    }
}

/// Fetches the metadata of an authorization server (RFC 8414 or OpenID Connect Discovery).
///
/// # Errors
///
/// Returns an error if the server publishes no metadata, names another issuer, or is unreachable.
pub async fn discover_server(fetch: &Fetcher, issuer: &str) -> Result<ServerMetadata, OAuthError> {
    let missing = || OAuthError::NoMetadata { issuer: issuer.to_owned() };
    let place = Place::parse(issuer).ok_or_else(missing)?;
    let (origin, path) = (place.origin(), place.path().trim_end_matches('/'));
    let places = match path {
        "" => vec![format!("{origin}{AUTHORIZATION}"), format!("{origin}{OPENID}")],
        path => vec![
            format!("{origin}{AUTHORIZATION}{path}"),
            format!("{origin}{OPENID}{path}"),
            format!("{origin}{path}{OPENID}"),
        ],
    };
    for place in places {
        let fetched = fetch.get(&place, HeaderMap::new()).await?;
        let Some(metadata) = document::<ServerMetadata>(&fetched)? else { continue };
        // Compared byte for byte, so that a document on a shared host cannot impersonate another
        // issuer.
        if metadata.issuer != issuer {
            return Err(OAuthError::OtherIssuer {
                issuer: issuer.to_owned(),
                named: metadata.issuer,
            });
        }
        return Ok(metadata);
    }
    Err(missing())
}

/// Returns the metadata of an MCP server that publishes no resource metadata. Such a server is its
/// own authorization server.
pub(super) async fn assumed(fetch: &Fetcher, server: &Place) -> Result<ServerMetadata, OAuthError> {
    let origin = server.origin();
    let version = Version::V2025_03_26; // tidy: version is a value here
    let headers = HeaderMap::from_iter([(
        HeaderName::from_static("mcp-protocol-version"),
        HeaderValue::from_static(version.as_str()),
    )]);
    let fetched = fetch.get(&format!("{origin}{AUTHORIZATION}"), headers).await?;
    let Some(metadata) = document::<ServerMetadata>(&fetched)? else {
        return Ok(ServerMetadata::assumed(origin));
    };
    // 2025-03-26 does not define how issuers are discovered. The issuer may have a path, but must
    // have the same origin.
    match Place::parse(&metadata.issuer).is_some_and(|issuer| issuer.is_same_origin(server)) {
        true => Ok(metadata),
        false => Err(OAuthError::OtherIssuer { issuer: origin.to_owned(), named: metadata.issuer }),
    }
}

/// Parses a metadata document. Returns `None` if the URL has no document, or if the server responds
/// with another kind of page.
fn document<T: serde::de::DeserializeOwned>(
    fetched: &FetchResponse,
) -> Result<Option<T>, OAuthError> {
    match fetched.status.as_u16() {
        200..=299 => Ok(serde_json::from_slice(&fetched.body).ok()),
        500.. | 429 => Err(fetched.status_error().into()),
        _ => Ok(None),
    }
}
