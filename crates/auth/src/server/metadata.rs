//! Protected resource metadata (RFC 9728), which tells clients how to get a token.

use bytes::Bytes;
use outlive_protocol::Scopes;
use serde::Serialize;

use crate::jose::{Algorithm, Algorithms};

use super::resource_uri::ResourceUri;

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The metadata document and its URL.
#[derive(Debug)]
pub(super) struct Metadata {
    document: Bytes,
    /// Path that challenges contain: the well-known prefix followed by the path of the resource.
    path: String,
    url: String,
}

/// Content of the metadata document.
pub(super) struct About<'a> {
    pub(super) resource: &'a ResourceUri,
    pub(super) issuers: Vec<&'a str>,
    pub(super) scopes: &'a Scopes,
    pub(super) name: Option<&'a str>,
    pub(super) documentation: Option<&'a str>,
    pub(super) proofs: Algorithms,
    pub(super) proof_required: bool,
}

#[derive(Serialize)]
struct Written<'a> {
    resource: &'a str,
    authorization_servers: &'a [&'a str],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    scopes_supported: Vec<&'a str>,
    bearer_methods_supported: [&'static str; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_documentation: Option<&'a str>,
    dpop_signing_alg_values_supported: Vec<&'static str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    dpop_bound_access_tokens_required: bool,
}

impl Metadata {
    pub(super) fn new(about: &About<'_>) -> Self {
        let written = Written {
            resource: about.resource.as_str(),
            authorization_servers: &about.issuers,
            scopes_supported: about.scopes.iter().collect(),
            bearer_methods_supported: ["header"],
            resource_name: about.name,
            resource_documentation: about.documentation,
            dpop_signing_alg_values_supported: about.proofs.iter().map(Algorithm::as_str).collect(),
            dpop_bound_access_tokens_required: about.proof_required,
        };
        let document =
            serde_json::to_vec(&written).expect("strings and lists of strings always serialize");
        // For a root path, the document is at the well-known prefix itself.
        let own = about.resource.path().trim_end_matches('/');
        let path = format!("{WELL_KNOWN}{own}");
        let url = format!("{}{path}", about.resource.origin());
        Self { document: document.into(), path, url }
    }

    pub(super) fn document(&self) -> Bytes {
        self.document.clone()
    }

    /// Returns the URL of the document.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Returns the document for either of its paths. Clients without a challenge try both.
    pub(super) fn at(&self, path: &str) -> Option<Bytes> {
        let path = path.strip_suffix('/').unwrap_or(path);
        (path == self.path || path == WELL_KNOWN).then(|| self.document.clone())
    }
}
