//! Logins of principals at upstreams, for the page on which they log in.

use std::sync::Arc;

use outlive::{auth::client::OAuth, server::Principal};

use crate::{
    gateway::Gateway,
    member::Member,
    refresh,
    settings::{AuthKind, Upstream},
    upstream::CatalogKey,
};

/// An upstream at which each principal logs in.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UserLoginTarget {
    /// Host of the upstream, with its port.
    pub host: String,
    /// Scopes that are requested if the upstream does not specify any.
    pub scopes: Vec<String>,
}

impl Gateway {
    /// Returns an upstream at which each principal logs in, or `None` for another name.
    pub fn user_login_target(&self, upstream: &str) -> Option<UserLoginTarget> {
        let settings = self.each_user(upstream)?.settings();
        let uri: http::Uri = settings.address()?.parse().ok()?;
        let host = uri.authority()?.to_string();
        Some(UserLoginTarget { host, scopes: settings.oauth()?.scopes.clone() })
    }

    /// Returns the OAuth client with which a principal logs in at an upstream. Its tokens belong to
    /// the principal, and no other principal can use them.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
    pub fn user_login(&self, upstream: &str, principal: &Principal) -> Option<OAuth> {
        let settings = self.each_user(upstream)?.settings();
        let credentials = &self.shared().credentials;
        credentials.user_login(&settings, settings.oauth()?, principal).ok()
    }

    /// Records that a principal has logged in at an upstream: its next call uses the login, and its
    /// lists are read again.
    pub fn user_logged_in(&self, upstream: &str, principal: &Principal) {
        let Some(member) = self.each_user(upstream) else { return };
        member.state().recovered_for(Some(principal.key()));
        member.runtime.retire_of(principal.key());
        let owner = Some(Arc::from(principal.key()));
        refresh::notify_clients_of(
            self.shared(),
            &CatalogKey { principal: owner, ..CatalogKey::default() },
        );
    }

    fn each_user(&self, upstream: &str) -> Option<Arc<Member>> {
        let config = self.shared().config();
        let is_meant = |settings: &Upstream| {
            let is_each_user = settings.oauth().is_some_and(|auth| auth.kind == AuthKind::EachUser);
            is_each_user && *settings.name == *upstream
        };
        config.members.iter().find(|member| is_meant(&member.settings())).cloned()
    }
}
