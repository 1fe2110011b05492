//! What a client needs to know before it can be let in: the protected resource metadata (RFC 9728).

use bytes::Bytes;
use outlive_protocol::Scopes;
use serde::Serialize;

use crate::jose::{Algorithm, Algorithms};

use super::resource_uri::ResourceUri;

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The document, and where it is found.
#[derive(Debug)]
pub(super) struct Metadata {
    document: Bytes,
    /// The path of the form that is told in challenges: the well-known part before the resource's own.
    path: String,
    url: String,
}

/// What the document says.
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
        let document = serde_json::to_vec(&written).expect("texts and lists of texts are JSON");
        // A path of just a slash is none: the well-known part alone then names the resource.
        let own = about.resource.path().trim_end_matches('/');
        let path = format!("{WELL_KNOWN}{own}");
        let url = format!("{}{path}", about.resource.origin());
        Self { document: document.into(), path, url }
    }

    pub(super) fn document(&self) -> Bytes {
        self.document.clone()
    }

    /// Where a client finds it.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// The document, at both of its places: clients that were told nothing try one after the other.
    pub(super) fn at(&self, path: &str) -> Option<Bytes> {
        let path = path.strip_suffix('/').unwrap_or(path);
        (path == self.path || path == WELL_KNOWN).then(|| self.document.clone())
    }
}
