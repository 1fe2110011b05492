//! The provider's token of a caller: kept fresh, and handed to those who ask for it by name.

use std::{sync::Arc, time::Duration};

use outlive_protocol::Principal;
use outlive_transport::client::SecretString;

use super::{
    grant::key,
    keys::digest,
    login_store::LoginStoreError,
    provider::{Trouble, UpstreamTokens},
    proxy::{AuthProxy, ProxyState},
    reply::Fault,
};

/// A token that is good for less than this is renewed, in seconds.
const MARGIN: i64 = 60;

/// How long one renewal keeps others from beginning another.
const RENEWING: Duration = Duration::from_secs(30);

/// How often it is looked whether somebody else's renewal is done, and how many times.
const PAUSE: Duration = Duration::from_millis(100);
const LOOKS: usize = 120;

/// Why there is no token of the provider's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UpstreamTokenError {
    /// The caller has not logged in through this proxy, or that is over.
    #[error("this caller has to log in again")]
    LoginRequired,
    /// The provider, or the place where logins are kept, cannot be asked.
    #[error("the identity provider cannot be asked at the moment; try again later")]
    Unavailable,
}

impl AuthProxy {
    /// The provider's own token of a caller, to call the provider in the caller's name.
    ///
    /// It can do there whatever [`Upstream::scopes`](super::Upstream::scopes) has asked for. Use it where
    /// it is needed and put it nowhere: not into a result, a log, a step of a journal or a task.
    ///
    /// # Errors
    ///
    /// When the caller is not logged in, or nobody can be asked.
    pub async fn upstream(&self, caller: &Principal) -> Result<SecretString, UpstreamTokenError> {
        let office = &self.0;
        let name = caller.name().ok_or(UpstreamTokenError::LoginRequired)?;
        let grant: Option<String> = office.read(&key("caller", &digest(name))).await?;
        let grant = grant.ok_or(UpstreamTokenError::LoginRequired)?;
        office.fresh(&grant, false).await.map(|tokens| SecretString::from(tokens.access))
    }
}

impl ProxyState {
    /// Sees to it that the provider still has the user logged in, and keeps that for longer.
    pub(super) async fn renewed(self: &Arc<Self>, grant: &str) -> Result<(), UpstreamTokenError> {
        self.fresh(grant, true).await.map(drop)
    }

    /// The provider's tokens, good for a while. One renewal at a time, on all replicas together:
    /// a provider's refresh token may well be good for one time only.
    async fn fresh(
        self: &Arc<Self>,
        grant: &str,
        keep_longer: bool,
    ) -> Result<UpstreamTokens, UpstreamTokenError> {
        let lock = key("renewing", grant);
        for _ in 0..LOOKS {
            let tokens = self.upstream_tokens(grant).await?;
            if !keep_longer && self.is_fresh(&tokens) {
                return Ok(tokens);
            }
            if self.logins.put_if_absent(&lock, String::new(), RENEWING).await? {
                let (office, grant) = (Arc::clone(self), grant.to_owned());
                // On its own, because it has to go on when the caller leaves: what the provider gives
                // once is lost if it is not kept. It ends with its two requests, which have time-outs.
                let renewing = tokio::spawn(async move {
                    let renewed = office.renew(&grant).await;
                    let unlocked = office.logins.delete(&lock).await;
                    renewed.and_then(|tokens| unlocked.map(|()| tokens).map_err(Into::into))
                });
                return renewing.await.unwrap_or(Err(UpstreamTokenError::Unavailable));
            }
            self.clock.sleep(PAUSE).await;
        }
        Err(UpstreamTokenError::Unavailable)
    }

    async fn renew(&self, grant: &str) -> Result<UpstreamTokens, UpstreamTokenError> {
        let mut tokens = self.upstream_tokens(grant).await?;
        if !self.is_fresh(&tokens) {
            let refresh = tokens.refresh.as_deref().ok_or(UpstreamTokenError::LoginRequired)?;
            tokens = self.provider.renew(refresh).await?;
        }
        self.put_unless_ended(grant, "upstream", &tokens).await?;
        Ok(tokens)
    }

    async fn upstream_tokens(&self, grant: &str) -> Result<UpstreamTokens, UpstreamTokenError> {
        let tokens: Option<UpstreamTokens> = self.read(&key("upstream", grant)).await?;
        tokens.ok_or(UpstreamTokenError::LoginRequired)
    }

    fn is_fresh(&self, tokens: &UpstreamTokens) -> bool {
        tokens.until.is_none_or(|until| self.now().saturating_add(MARGIN) < until)
    }
}

impl From<Trouble> for UpstreamTokenError {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Refused => Self::LoginRequired,
            Trouble::Unavailable => Self::Unavailable,
        }
    }
}

impl From<LoginStoreError> for UpstreamTokenError {
    fn from(error: LoginStoreError) -> Self {
        Fault::from(error).into()
    }
}

impl From<Fault> for UpstreamTokenError {
    fn from(fault: Fault) -> Self {
        match fault.error {
            "invalid_grant" => Self::LoginRequired,
            _ => Self::Unavailable,
        }
    }
}
