//! Checks the configured issuers before the first request, to validate a configuration.

use super::{
    issuer::Check,
    resource_server::{ResourceServer, Trusted},
};
use crate::{fetch::Fetcher, jose::Jwk};

/// Token that no issuer has issued.
const MADE_UP: &str = "made-up-to-see-whether-the-issuer-answers";

/// Result of checking an issuer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct IssuerCheck {
    /// Issuer.
    pub issuer: String,
    /// Number of usable keys, or `None` for introspection. The error is the reason why tokens
    /// cannot be verified.
    pub found: Result<Option<usize>, String>,
}

impl ResourceServer {
    /// Checks every issuer: fetches its metadata and keys, or introspects a made-up token.
    pub async fn check_issuers(&self) -> Vec<IssuerCheck> {
        let mut all = Vec::new();
        for trusted in &self.0.issuers {
            let found = Box::pin(found(trusted, &self.0.fetch)).await;
            all.push(IssuerCheck { issuer: trusted.issuer.id.to_string(), found });
        }
        all
    }
}

async fn found(
    Trusted { issuer, keys }: &Trusted,
    fetch: &Fetcher,
) -> Result<Option<usize>, String> {
    match (&issuer.check, keys) {
        (Check::Introspection(asking), _) => match asking.about(fetch, MADE_UP).await {
            Ok(None) => Ok(None),
            Ok(Some(_)) => Err("the issuer reports a made-up token as active".to_owned()),
            Err(error) => Err(error.to_string()),
        },
        (Check::Keys(_), None) => Ok(Some(0)),
        (Check::Keys(_), Some(keys)) => {
            let set = keys.fetch().await?;
            let fits = |key: &&Jwk| issuer.algorithms.iter().any(|algorithm| key.fits(algorithm));
            let usable = set.keys().iter().filter(fits).count();
            match usable {
                0 => Err("the issuer has no usable keys".to_owned()),
                usable => Ok(Some(usable)),
            }
        }
    }
}
