//! The token for the next request: renewed before it expires.

use std::sync::Arc;

use super::{
    error::OAuthError,
    grant::Grant,
    oauth::{Source, Why},
    token::Held,
};

/// Seconds before its expiry at which a token is renewed.
const EARLY: u64 = 30;

impl Source {
    /// Returns the token if it is valid. Refreshes it before it expires.
    pub(super) async fn available(self: &Arc<Self>) -> Result<Option<Arc<Held>>, OAuthError> {
        let Some(held) = self.held().await? else { return Ok(None) };
        match held.refresh.is_some() && held.expires_within(EARLY, self.now()) {
            true => self.replaced(&held, Why::expiring(&held)).await,
            false => Ok(Some(held).filter(|held| !held.expires_within(0, self.now()))),
        }
    }

    /// Returns a token. Acquires one if it is missing or expires soon.
    ///
    /// # Errors
    ///
    /// Returns an error if a valid token is missing, and can be acquired only with a user.
    pub(super) async fn required(self: &Arc<Self>) -> Result<Arc<Held>, OAuthError> {
        if let Some(held) = self.fresh() {
            return Ok(held);
        }
        // Another process may have logged in, or renewed the token.
        self.reload().await?;
        if let Some(held) = self.fresh() {
            return Ok(held);
        }
        let is_user_needed = matches!(self.settings.grant, Grant::Code);
        let found = match self.current() {
            Some(held) if is_user_needed && held.refresh.is_none() => Some(held),
            Some(held) if is_user_needed => self.replaced(&held, Why::expiring(&held)).await?,
            None if is_user_needed => None,
            Some(held) => self.replaced(&held, Why::unrequested(Some(&held))).await?,
            None => {
                self.renew(Why::unrequested(None)).await?;
                self.current()
            }
        };
        let found = found.filter(|held| !held.expires_within(0, self.now()));
        found.ok_or_else(|| OAuthError::LoginRequired { server: self.settings.server.clone() })
    }

    /// Renews a token, and returns the current one if it is valid.
    async fn replaced(
        self: &Arc<Self>,
        held: &Held,
        why: Why,
    ) -> Result<Option<Arc<Held>>, OAuthError> {
        let now = self.now();
        match self.renew(why).await {
            Ok(()) => {}
            // The token is still valid, so it is used; the next request retries the renewal.
            Err(error) if self.may_continue(&error) && !held.expires_within(0, now) => {}
            Err(error) => return Err(error),
        }
        Ok(self.current().filter(|held| !held.expires_within(0, now)))
    }

    /// Returns whether a token is used until it expires, although its renewal failed.
    fn may_continue(&self, error: &OAuthError) -> bool {
        error.is_transient() || matches!(self.settings.grant, Grant::Exchange(_))
    }

    /// Returns the token in memory, unless it expires soon.
    fn fresh(&self) -> Option<Arc<Held>> {
        self.current().filter(|held| !held.expires_within(EARLY, self.now()))
    }
}
