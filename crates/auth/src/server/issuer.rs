//! Whose tokens a server takes, and how it checks them.

use std::{fmt, sync::Arc};

use outlive_transport::client::SecretString;

use super::{introspect::Asking, keys::Source};
use crate::jose::{Algorithm, Algorithms, JwkSet};

/// An authorization server whose tokens are taken.
///
/// Unless told otherwise its tokens are signed, and its keys are found through its metadata.
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
    pub(super) strict_kind: bool,
}

/// How tokens are checked.
#[derive(Clone, Debug)]
pub(super) enum Check {
    /// By their signature.
    Keys(Source),
    /// By asking whoever has issued them.
    Introspection(Asking),
}

impl Issuer {
    /// The issuer that calls itself so in `iss`. Every letter counts.
    pub fn new(issuer: impl Into<String>) -> Self {
        Self {
            id: issuer.into().into(),
            check: Check::Keys(Source::Issuer),
            algorithms: Algorithms::ALL,
            audiences: Vec::new(),
            any_audience: false,
            client: None,
            tenant: None,
            strict_kind: false,
        }
    }

    /// Where its keys are, for one that publishes no metadata.
    pub fn jwks_url(mut self, url: impl Into<String>) -> Self {
        self.check = Check::Keys(Source::Url(url.into().into()));
        self
    }

    /// Its keys. They are never asked for: a new one needs a new server.
    pub fn keys(mut self, keys: JwkSet) -> Self {
        self.check = Check::Keys(Source::Fixed(Arc::new(keys)));
        self
    }

    /// Asks the issuer about each token (RFC 7662), so that one which was revoked is refused within
    /// half a minute. For tokens that are not signed, and for those that must not outlive their
    /// revocation.
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

    /// Which signatures are accepted; all with key pairs, if nothing is said.
    pub fn algorithms(mut self, algorithms: impl IntoIterator<Item = Algorithm>) -> Self {
        self.algorithms = Algorithms::of(algorithms);
        self
    }

    /// One more name of this server in `aud`, for issuers that cannot be told the server's URI. Take
    /// care that nobody else is called so.
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.audiences.push(audience.into());
        self
    }

    /// Takes what introspection calls active also if nothing says for whom it is. Only for an issuer
    /// that issues tokens for this server alone.
    pub fn strict_audience(mut self) -> Self {
        self.any_audience = true;
        self
    }

    /// The claim that names the client, for issuers that have neither `client_id` nor `azp`. A token
    /// without it is refused.
    pub fn client_claim(mut self, claim: impl Into<String>) -> Self {
        self.client = Some(claim.into().into_boxed_str());
        self
    }

    /// The claim that names the caller's tenant. It becomes a part of who the caller is, and a token
    /// without it is refused.
    pub fn tenant_claim(mut self, claim: impl Into<String>) -> Self {
        self.tenant = Some(claim.into().into_boxed_str());
        self
    }

    /// Takes only tokens whose type is `at+jwt` (RFC 9068). Without this also those of no type and of
    /// type `JWT` are taken, because many issuers write that.
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
