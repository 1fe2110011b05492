//! Authorization server metadata (RFC 8414).

use bytes::Bytes;
use outlive_protocol::Scopes;
use serde::Serialize;

pub(super) const WELL_KNOWN: &str = "/.well-known/oauth-authorization-server";

#[derive(Serialize)]
struct Written<'a> {
    issuer: &'a str,
    authorization_endpoint: String,
    token_endpoint: String,
    registration_endpoint: String,
    revocation_endpoint: String,
    jwks_uri: String,
    scopes_supported: Vec<&'a str>,
    response_types_supported: [&'static str; 1],
    response_modes_supported: [&'static str; 1],
    grant_types_supported: [&'static str; 2],
    token_endpoint_auth_methods_supported: [&'static str; 1],
    revocation_endpoint_auth_methods_supported: [&'static str; 1],
    code_challenge_methods_supported: [&'static str; 1],
    authorization_response_iss_parameter_supported: bool,
    client_id_metadata_document_supported: bool,
}

/// Returns the metadata document.
pub(super) fn document(issuer: &str, scopes: &Scopes) -> Bytes {
    let at = |path: &str| format!("{issuer}{path}");
    let written = Written {
        issuer,
        authorization_endpoint: at("/authorize"),
        token_endpoint: at("/token"),
        registration_endpoint: at("/register"),
        revocation_endpoint: at("/revoke"),
        jwks_uri: at("/jwks"),
        scopes_supported: scopes.iter().collect(),
        response_types_supported: ["code"],
        response_modes_supported: ["query"],
        grant_types_supported: ["authorization_code", "refresh_token"],
        token_endpoint_auth_methods_supported: ["none"],
        revocation_endpoint_auth_methods_supported: ["none"],
        code_challenge_methods_supported: ["S256"],
        authorization_response_iss_parameter_supported: true,
        client_id_metadata_document_supported: true,
    };
    serde_json::to_vec(&written).expect("strings and lists of strings always serialize").into()
}
