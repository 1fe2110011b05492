//! Tokens of the provider for handlers, refreshed when needed.

use std::{sync::Arc, time::Duration};

use outlive_protocol::Principal;
use outlive_transport::client::SecretString;

use super::{
    entries::{key, put_unless_ended, read},
    error::ProviderTokenError,
    keys::digest,
    login_store::LoginStoreError,
    provider_client::{ProviderError, ProviderTokens},
    reply::ErrorReply,
    state::ProxyState,
};

/// Remaining lifetime in seconds below which a token is refreshed.
const MARGIN: i64 = 60;

/// Lifetime of the lock for a refresh.
const RENEWING: Duration = Duration::from_secs(30);

/// Interval and maximum number of checks whether another refresh is done.
const PAUSE: Duration = Duration::from_millis(100);
const LOOKS: usize = 120;

/// Returns the provider's token of a principal.
pub(super) async fn get(
    proxy: &Arc<ProxyState>,
    caller: &Principal,
) -> Result<SecretString, ProviderTokenError> {
    let name = caller.name().ok_or(ProviderTokenError::LoginRequired)?;
    let grant: Option<String> = read(proxy, &key("caller", &digest(name))).await?;
    let grant = grant.ok_or(ProviderTokenError::LoginRequired)?;
    fresh(proxy, &grant, false).await.map(|tokens| SecretString::from(tokens.access))
}

/// Checks that the user is still logged in at the provider, and extends the stored tokens.
pub(super) async fn renew(proxy: &Arc<ProxyState>, grant: &str) -> Result<(), ProviderTokenError> {
    fresh(proxy, grant, true).await.map(drop)
}

/// Returns valid tokens of the provider. Only one refresh runs at a time on all replicas, because a
/// refresh token may be valid only once.
async fn fresh(
    proxy: &Arc<ProxyState>,
    grant: &str,
    keep_longer: bool,
) -> Result<ProviderTokens, ProviderTokenError> {
    let lock = key("renewing", grant);
    for _ in 0..LOOKS {
        let tokens = tokens_of(proxy, grant).await?;
        if !keep_longer && is_fresh(proxy, &tokens) {
            return Ok(tokens);
        }
        if proxy.logins.put_if_absent(&lock, String::new(), RENEWING).await? {
            let (proxy, grant) = (Arc::clone(proxy), grant.to_owned());
            // Spawned, because it must finish even if the caller is dropped: new tokens of the
            // provider would be lost. The task ends with its two requests, which have timeouts.
            let renewing = tokio::spawn(async move {
                let renewed = renew_now(&proxy, &grant).await;
                let unlocked = proxy.logins.delete(&lock).await;
                renewed.and_then(|tokens| unlocked.map(|()| tokens).map_err(Into::into))
            });
            return renewing.await.unwrap_or(Err(ProviderTokenError::Unavailable));
        }
        proxy.clock.sleep(PAUSE).await;
    }
    Err(ProviderTokenError::Unavailable)
}

async fn renew_now(proxy: &ProxyState, grant: &str) -> Result<ProviderTokens, ProviderTokenError> {
    let mut tokens = tokens_of(proxy, grant).await?;
    if !is_fresh(proxy, &tokens) {
        let refresh = tokens.refresh.as_deref().ok_or(ProviderTokenError::LoginRequired)?;
        tokens = proxy.provider.renew(refresh).await?;
    }
    put_unless_ended(proxy, grant, "upstream", &tokens).await?;
    Ok(tokens)
}

async fn tokens_of(proxy: &ProxyState, grant: &str) -> Result<ProviderTokens, ProviderTokenError> {
    let tokens: Option<ProviderTokens> = read(proxy, &key("upstream", grant)).await?;
    tokens.ok_or(ProviderTokenError::LoginRequired)
}

fn is_fresh(proxy: &ProxyState, tokens: &ProviderTokens) -> bool {
    tokens.until.is_none_or(|until| proxy.now().saturating_add(MARGIN) < until)
}

impl From<ProviderError> for ProviderTokenError {
    fn from(error: ProviderError) -> Self {
        match error {
            ProviderError::Refused => Self::LoginRequired,
            ProviderError::Unavailable => Self::Unavailable,
        }
    }
}

impl From<LoginStoreError> for ProviderTokenError {
    fn from(error: LoginStoreError) -> Self {
        ErrorReply::from(error).into()
    }
}

impl From<ErrorReply> for ProviderTokenError {
    fn from(error: ErrorReply) -> Self {
        match error.code {
            "invalid_grant" => Self::LoginRequired,
            _ => Self::Unavailable,
        }
    }
}
