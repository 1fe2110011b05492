//! Trusted issuers, and how their tokens are verified.

use std::{fmt, sync::Arc};

use outlive_transport::client::SecretString;

use super::{introspect::Asking, keys::Source};
use crate::jose::{Algorithm, Algorithms, JwkSet};

/// An authorization server whose tokens are accepted.
///
/// By default, tokens are signed, and the keys are discovered through the metadata of the issuer.
#[derive(Clone, Debug)]
#[must_use]
pub struct Issuer {
    pub(super) id: Arc<str>,
    pub(super) check: Check,
    pub(super) algorithms: Algorithms,
    pub(super) audiences: Vec<String>,
    pub(super) any_audience: bool,
    pub(super) client: Option<Box<str>>,
    pub(super) tenant: Option<Box<str>>,
    pub(super) person: Option<Box<str>>,
    pub(super) deciding_client: Option<Box<str>>,
    pub(super) strict_kind: bool,
}

/// Method of verifying tokens.
#[derive(Clone, Debug)]
pub(super) enum Check {
    /// By signature.
    Keys(Source),
    /// By introspection at the issuer.
    Introspection(Asking),
}

impl Issuer {
    /// Creates an issuer with this `iss`, which is compared verbatim.
    pub fn new(issuer: impl Into<String>) -> Self {
        Self {
            id: issuer.into().into(),
            check: Check::Keys(Source::Issuer),
            algorithms: Algorithms::ALL,
            audiences: Vec::new(),
            any_audience: false,
            client: None,
            tenant: None,
            person: None,
            deciding_client: None,
            strict_kind: false,
        }
    }

    /// Sets the URL of the keys, for an issuer without metadata.
    pub fn jwks_url(mut self, url: impl Into<String>) -> Self {
        self.check = Check::Keys(Source::Url(url.into().into()));
        self
    }

    /// Sets the keys. They are never fetched: a new key requires a new server.
    pub fn keys(mut self, keys: JwkSet) -> Self {
        self.check = Check::Keys(Source::Fixed(Arc::new(keys)));
        self
    }

    /// Verifies each token by introspection (RFC 7662), so that a revoked token is rejected within
    /// half a minute. For unsigned tokens, and for tokens whose revocation must take effect soon.
    pub fn introspection(
        mut self,
        url: impl Into<String>,
        client_id: impl Into<String>,
        client_secret: impl Into<SecretString>,
    ) -> Self {
        let asking = Asking::new(url.into(), &client_id.into(), &client_secret.into());
        self.check = Check::Introspection(asking);
        self
    }

    /// Sets the accepted algorithms. The default is all algorithms with key pairs.
    pub fn algorithms(mut self, algorithms: impl IntoIterator<Item = Algorithm>) -> Self {
        self.algorithms = Algorithms::of(algorithms);
        self
    }

    /// Adds an accepted `aud` value, for issuers that do not support resource URIs. The value must
    /// be unique to this server.
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.audiences.push(audience.into());
        self
    }

    /// Sets whether introspected tokens need an audience; by default they do. Set it to `false` only if
    /// the issuer issues tokens for this server alone.
    pub fn strict_audience(mut self, strict: bool) -> Self {
        self.any_audience = !strict;
        self
    }

    /// Sets the claim with the client ID, for issuers that have neither `client_id` nor `azp`. A
    /// token without the claim is rejected.
    pub fn client_claim(mut self, claim: impl Into<String>) -> Self {
        self.client = Some(claim.into().into_boxed_str());
        self
    }

    /// Sets the claim with the tenant, which becomes part of the principal. A token without the
    /// claim is rejected.
    pub fn tenant_claim(mut self, claim: impl Into<String>) -> Self {
        self.tenant = Some(claim.into().into_boxed_str());
        self
    }

    /// Sets the claim that identifies a person together with issuer and tenant; `sub` by default. An
    /// issuer with pairwise subjects, which differ by client, needs another claim, such as `oid`. A
    /// token without the claim is rejected.
    pub fn person_claim(mut self, claim: impl Into<String>) -> Self {
        self.person = Some(claim.into().into_boxed_str());
        self
    }

    /// Sets the client whose tokens decide for their person: that of the console. The MCP endpoint
    /// rejects them.
    pub fn deciding_client(mut self, client_id: impl Into<String>) -> Self {
        self.deciding_client = Some(client_id.into().into_boxed_str());
        self
    }

    /// Accepts only tokens of type `at+jwt` (RFC 9068). By default, tokens without a type and of
    /// type `JWT` are accepted too, because many issuers use them.
    pub fn require_at_jwt(mut self) -> Self {
        self.strict_kind = true;
        self
    }
}

impl fmt::Display for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id)
    }
}
