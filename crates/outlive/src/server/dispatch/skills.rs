//! Methods of the skills extension: `skills/list`, `skills/get`, `resources/directory/read`, and
//! the listed `SKILL.md` resources.
//!
//! They are registered as custom methods, so a server without skills does not have them.

use std::{future::ready, sync::Arc};

use outlive_protocol::{Call, CallFuture, MethodResult, Outcome, ProtocolError};
use outlive_wire::{CacheHints, RawJson, ResourceContents};
use serde::{Deserialize, Serialize};
use serde_json::value::to_raw_value;

use crate::server::{
    dispatch::{custom::CustomMethod, lists},
    env::environment::Env,
    register::{registries::UnlistedResources, resource::Resource},
    skills::catalog::Catalog,
};
use crate::skill_format::LIST;

/// Maximum length of a URI in an error message.
const SHOWN: usize = 200;

#[derive(Deserialize)]
struct Params {
    #[serde(default)]
    uri: Option<String>,
    #[serde(default)]
    cursor: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed<'a> {
    skills: Vec<&'a RawJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    #[serde(flatten)]
    cache: CacheHints,
}

#[derive(Serialize)]
struct Got<'a> {
    skill: &'a RawJson,
    #[serde(flatten)]
    cache: CacheHints,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Directory {
    resources: Vec<outlive_wire::Resource>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    #[serde(flatten)]
    cache: CacheHints,
}

impl UnlistedResources for Catalog {
    fn has(&self, uri: &str) -> bool {
        self.has(uri)
    }

    fn read(&self, uri: &str) -> Option<ResourceContents> {
        self.read(uri)
    }
}

/// Returns the methods of the extension, by name.
pub(crate) fn methods(catalog: &Arc<Catalog>) -> [(&'static str, CustomMethod); 3] {
    [
        (LIST, method(catalog, listed)),
        ("skills/get", method(catalog, got)),
        ("resources/directory/read", method(catalog, directory)),
    ]
}

/// Returns the `SKILL.md` of every skill as a listed resource.
pub(crate) fn resources(catalog: &Arc<Catalog>) -> Vec<Resource> {
    let resource = |info: outlive_wire::Resource| {
        let (catalog, uri) = (Arc::clone(catalog), info.uri.clone());
        Resource::from_info(info, move || {
            let contents = catalog.read(&uri);
            async move { contents }
        })
    };
    catalog.manifests().into_iter().map(resource).collect()
}

fn method(
    catalog: &Arc<Catalog>,
    answer: fn(&Catalog, &Env, &Call, &Params) -> Result<RawJson, ProtocolError>,
) -> CustomMethod {
    let catalog = Arc::clone(catalog);
    Box::new(move |env, call| -> CallFuture {
        let params = serde_json::from_str(call.params()).map_err(|error| {
            ProtocolError::invalid_params(format!(
                "`params.uri` and `params.cursor` must be strings: {error}"
            ))
        });
        let answered = params.and_then(|params| answer(&catalog, env, &call, &params));
        Box::pin(ready(answered.map(|raw| Outcome::Complete(MethodResult::Raw(raw)))))
    })
}

fn listed(
    catalog: &Catalog,
    env: &Env,
    call: &Call,
    params: &Params,
) -> Result<RawJson, ProtocolError> {
    let (skip, count) = place(env, call, params.cursor.as_deref())?;
    let (skills, is_more) = catalog.page(skip, count);
    let next_cursor = next(env, call, is_more, skip, count)?;
    written(&Listed { skills, next_cursor, cache: env.cache })
}

fn got(catalog: &Catalog, env: &Env, _: &Call, params: &Params) -> Result<RawJson, ProtocolError> {
    let uri = uri(params)?;
    let unknown = || ProtocolError::invalid_params(format!("no skill is served at {}", shown(uri)));
    let skill = catalog.entry(uri).ok_or_else(unknown)?;
    written(&Got { skill, cache: env.cache })
}

fn directory(
    catalog: &Catalog,
    env: &Env,
    call: &Call,
    params: &Params,
) -> Result<RawJson, ProtocolError> {
    let uri = uri(params)?;
    let (skip, count) = place(env, call, params.cursor.as_deref())?;
    let none =
        || ProtocolError::invalid_params(format!("{} is not a directory resource", shown(uri)));
    let (resources, is_more) = catalog.children(uri, skip, count).ok_or_else(none)?;
    let next_cursor = next(env, call, is_more, skip, count)?;
    written(&Directory { resources, next_cursor, cache: env.cache })
}

fn uri(params: &Params) -> Result<&str, ProtocolError> {
    params.uri.as_deref().ok_or_else(|| ProtocolError::invalid_params("`params.uri` is missing"))
}

/// Returns the number of items that a page skips, and its size.
fn place(env: &Env, call: &Call, cursor: Option<&str>) -> Result<(usize, usize), ProtocolError> {
    let skip = lists::open_cursor(env, call, cursor)?.unwrap_or(0);
    let count = env.profile.limits.page_size.max(1);
    Ok((usize::try_from(skip).unwrap_or(usize::MAX), count))
}

fn next(
    env: &Env,
    call: &Call,
    is_more: bool,
    skip: usize,
    count: usize,
) -> Result<Option<String>, ProtocolError> {
    let after = skip.saturating_add(count) as u64;
    is_more.then(|| lists::seal_cursor(env, call, after)).transpose()
}

fn written(result: &impl Serialize) -> Result<RawJson, ProtocolError> {
    to_raw_value(result).map_err(ProtocolError::internal)
}

fn shown(uri: &str) -> String {
    uri.chars().take(SHOWN).collect()
}
