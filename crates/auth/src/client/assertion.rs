//! Assertions of an identity that somebody else vouches for: a workload's token, a user's ID token.

use std::{fmt, fs, future::Future, path::PathBuf, pin::Pin, sync::Arc};

use outlive_transport::client::SecretString;

use super::error::OAuthError;

type Giving = Pin<Box<dyn Future<Output = Result<SecretString, String>> + Send>>;

/// Where an assertion comes from. It is got anew for every token that is asked for with it.
#[derive(Clone)]
pub struct Assertion(Arc<dyn Fn() -> Giving + Send + Sync>);

impl Assertion {
    /// Always the same one.
    pub fn fixed(jwt: impl Into<SecretString>) -> Self {
        let jwt = jwt.into();
        Self::from_fn(move || {
            let jwt = jwt.clone();
            async move { Ok(jwt) }
        })
    }

    /// The content of a file, which a platform replaces before it expires.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self::from_fn(move || {
            let read = fs::read_to_string(&path).map_err(|error| {
                format!("`{}` cannot be read: {error}; check that it is mounted", path.display())
            });
            async move { Ok(SecretString::new(read?.trim())) }
        })
    }

    /// Whatever a function gives.
    pub fn from_fn<F, G>(give: F) -> Self
    where
        F: Fn() -> G + Send + Sync + 'static,
        G: Future<Output = Result<SecretString, String>> + Send + 'static,
    {
        Self(Arc::new(move || Box::pin(give())))
    }

    pub(super) async fn get(&self) -> Result<SecretString, OAuthError> {
        (self.0)().await.map_err(OAuthError::Assertion)
    }
}

impl fmt::Debug for Assertion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Assertion(…)")
    }
}
