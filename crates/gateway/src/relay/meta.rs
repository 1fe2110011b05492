//! `_meta` of requests to upstreams, and the detection of loops.

use std::{collections::BTreeMap, fmt::Write as _};

use outlive::{
    server::{Error, Result, layer::Call},
    wire::{LoggingLevel, Meta},
};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

/// Gateways that a request passed.
const VIA: &str = "dev.outlive/via";

/// Key under which the upstream executes a call once.
const IDEMPOTENCY_KEY: &str = "dev.outlive/idempotencyKey";

/// Prefixes of the keys that belong to one connection.
const OWN: [&str; 2] = ["io.modelcontextprotocol/", "dev.outlive/"];

/// Gateways that a request may pass.
const MAX_GATEWAYS: usize = 8;

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow, rename = "_meta")]
    meta: Option<BTreeMap<String, &'a RawValue>>,
}

/// Returns the members of `_meta` for the upstream, without braces.
///
/// # Errors
///
/// If the request passed this gateway before, or too many gateways.
pub(super) fn members(
    call: &Call,
    gateway: &str,
    level: Option<LoggingLevel>,
    key: Option<&str>,
) -> Result<String> {
    // A call without `_meta` is the common one before 2026-07-28.
    let params = call.params();
    let meta = match params.contains("\"_meta\"") {
        true => serde_json::from_str::<Params<'_>>(params).ok().and_then(|params| params.meta),
        false => None,
    };
    let meta = meta.unwrap_or_default();
    let via = via(meta.get(VIA).copied(), gateway)?;
    let mut members = format!(r#""{VIA}":{via}"#);
    if let Some(level) = level
        && let Ok(level) = serde_json::to_string(&level)
    {
        // Writing to a string does not fail.
        let _ = write!(members, r#","{}":{level}"#, Meta::LOG_LEVEL);
    }
    if let Some(key) = key {
        let _ = write!(members, r#","{IDEMPOTENCY_KEY}":{}"#, Value::from(key));
    }
    for (key, value) in &meta {
        let is_own = key == Meta::PROGRESS_TOKEN || OWN.iter().any(|own| key.starts_with(own));
        if !is_own {
            let _ = write!(members, ",{}:{}", Value::from(key.as_str()), value.get());
        }
    }
    Ok(members)
}

/// Returns the members of `_meta` for a request of the gateway itself, without braces.
pub(crate) fn own_members(gateway: &str) -> String {
    format!(r#""{VIA}":[{}]"#, Value::from(gateway))
}

/// Returns whether a request passed this gateway before.
pub(crate) fn is_loop(call: &Call, gateway: &str) -> bool {
    let params = call.params();
    // Few requests pass two gateways.
    if !params.contains(gateway) {
        return false;
    }
    let meta = serde_json::from_str::<Params<'_>>(params).ok().and_then(|params| params.meta);
    meta.is_some_and(|meta| via(meta.get(VIA).copied(), gateway).is_err())
}

/// Returns the gateways that the request passed, with this one.
fn via(passed: Option<&RawValue>, gateway: &str) -> Result<Value> {
    let passed: Vec<String> =
        passed.and_then(|passed| serde_json::from_str(passed.get()).ok()).unwrap_or_default();
    if passed.iter().any(|id| id == gateway) {
        return Err(Error::new(
            "this gateway is an upstream of itself; remove the upstream that leads back to it",
        ));
    }
    if passed.len() >= MAX_GATEWAYS {
        return Err(Error::new(format!(
            "the request passed {MAX_GATEWAYS} gateways; connect to the upstream directly"
        )));
    }
    let mut passed: Vec<Value> = passed.into_iter().map(Value::from).collect();
    passed.push(gateway.into());
    Ok(passed.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn gateway_is_added_to_those_that_the_request_passed() {
        assert_eq!(via(None, "b").unwrap().to_string(), r#"["b"]"#);
        assert_eq!(via(Some(&raw(r#"["a"]"#)), "b").unwrap().to_string(), r#"["a","b"]"#);
        assert_eq!(via(Some(&raw("7")), "b").unwrap().to_string(), r#"["b"]"#);
    }

    #[test]
    fn loop_and_long_chain_are_refused() {
        assert!(via(Some(&raw(r#"["b"]"#)), "b").is_err());
        let eight = serde_json::to_string(&["x"; 8]).unwrap();
        assert!(via(Some(&raw(&eight)), "b").is_err());
    }
}
