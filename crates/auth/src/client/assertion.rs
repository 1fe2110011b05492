//! Identity assertions from a third party, such as the token of a workload or the ID token of a
//! user.

use std::{fmt, fs, future::Future, path::PathBuf, pin::Pin, sync::Arc};

use outlive_transport::client::SecretString;

use super::error::OAuthError;

type Giving = Pin<Box<dyn Future<Output = Result<SecretString, String>> + Send>>;

/// Source of identity assertions. Each token request gets a new assertion.
#[derive(Clone)]
pub struct Assertion(Arc<dyn Fn() -> Giving + Send + Sync>);

impl Assertion {
    /// Creates a source that always returns the same assertion.
    pub fn fixed(jwt: impl Into<SecretString>) -> Self {
        let jwt = jwt.into();
        Self::from_fn(move || {
            let jwt = jwt.clone();
            async move { Ok(jwt) }
        })
    }

    /// Creates a source that reads a file, which a platform replaces before the assertion expires.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self::from_fn(move || {
            let read = fs::read_to_string(&path).map_err(|error| {
                format!("cannot read `{}`: {error}; check that the file is mounted", path.display())
            });
            async move { Ok(SecretString::new(read?.trim())) }
        })
    }

    /// Creates a source that calls a function.
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
