//! Asks the issuers of a server for what their tokens are checked with, before anybody comes: for
//! whoever wants to know whether a configuration works.

use super::{
    issuer::Check,
    resource_server::{ResourceServer, Trusted},
};
use crate::{fetch::Fetcher, jose::Jwk};

/// No issuer has issued it.
const MADE_UP: &str = "made-up-to-see-whether-the-issuer-answers";

/// What came of asking an issuer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct IssuerCheck {
    /// Which one.
    pub issuer: String,
    /// How many of its keys tokens are checked with, `None` if it is asked about each; or why its
    /// tokens could not be checked now, for people.
    pub found: Result<Option<usize>, String>,
}

impl ResourceServer {
    /// Asks every issuer as the first token of it would: for its metadata and its keys, or about a
    /// token that is made up.
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
            Ok(Some(_)) => Err("it calls a token active that nobody has issued".to_owned()),
            Err(error) => Err(error.to_string()),
        },
        (Check::Keys(_), None) => Ok(Some(0)),
        (Check::Keys(_), Some(keys)) => {
            let set = keys.fetch().await?;
            let fits = |key: &&Jwk| issuer.algorithms.iter().any(|algorithm| key.fits(algorithm));
            let usable = set.keys().iter().filter(fits).count();
            match usable {
                0 => Err("none of its keys can be used to check tokens".to_owned()),
                usable => Ok(Some(usable)),
            }
        }
    }
}
