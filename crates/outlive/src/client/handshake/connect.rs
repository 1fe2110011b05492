//! Order in which the client tries the eras and transports.

use std::sync::Arc;

use outlive_protocol::{Era, VersionRules, era::client};
use outlive_transport::client::http::HttpLink;

use super::{
    meet::{Tried, pinned_modern, says_nothing, shake_hands, try_modern},
    pipe::{over_http_sse, over_pipe},
};
use crate::client::{
    env::ClientEnv,
    error::Result,
    exchange::Failed,
    link::{Connection, Link},
    target::Target,
    version_cache::Found,
};

pub(crate) async fn connect(env: &Arc<ClientEnv>) -> Result<Arc<Connection>> {
    match &env.target {
        Target::Url(url) => over_http(env, url).await,
        _ => over_pipe(env).await,
    }
}

async fn over_http(env: &Arc<ClientEnv>, url: &str) -> Result<Arc<Connection>> {
    let link = HttpLink::new(url, env.settings.http.clone())?;
    let place = link.address().origin();
    let memory = &env.settings.eras;
    let way = || Link::Http { link: link.clone(), session: None };
    if let Some(pinned) = env.settings.pinned {
        return match pinned.sessions {
            true => match shake_hands(env, way(), pinned).await {
                Ok(made) => Ok(made),
                Err(failed) if may_be_http_sse(&failed) && env.settings.with_http_sse => {
                    over_http_sse(env, &link, pinned).await.map_err(|_| failed.into())
                }
                Err(failed) => Err(failed.into()),
            },
            false => pinned_modern(env, way(), pinned).await,
        };
    }
    let expected = env.tries_older_first().then_some(Found::Legacy);
    match memory.of(&place).or(expected) {
        Some(Found::Legacy) => {
            match shake_hands(env, way(), VersionRules::newest(Era::Legacy)).await {
                Ok(made) => {
                    memory.note(&place, Found::Legacy);
                    return Ok(made);
                }
                Err(failed) if says_nothing(&failed) => return Err(failed.into()),
                Err(_) => env.note_not_older(),
            }
        }
        Some(Found::HttpSse) => {
            if let Ok(made) = over_http_sse(env, &link, VersionRules::newest(Era::Legacy)).await {
                return Ok(made);
            }
        }
        _ => {}
    }
    if let Tried::Modern(made) = try_modern(env, way(), VersionRules::newest(Era::Modern)).await? {
        memory.note(&place, Found::Modern);
        return Ok(made);
    }
    match shake_hands(env, way(), VersionRules::newest(Era::Legacy)).await {
        Ok(made) => {
            memory.note(&place, Found::Legacy);
            Ok(made)
        }
        Err(failed) if may_be_http_sse(&failed) && env.settings.with_http_sse => {
            match over_http_sse(env, &link, VersionRules::newest(Era::Legacy)).await {
                Ok(made) => {
                    memory.note(&place, Found::HttpSse);
                    Ok(made)
                }
                // The error of the handshake is more specific than that of the HTTP+SSE fallback.
                Err(_) => Err(failed.into()),
            }
        }
        Err(failed) => Err(failed.into()),
    }
}

fn may_be_http_sse(failed: &Failed) -> bool {
    match failed {
        Failed::Status { status: 400 | 404 | 405, error, .. } => {
            !error.as_ref().is_some_and(|error| client::is_modern_error(error.code))
        }
        _ => false,
    }
}
