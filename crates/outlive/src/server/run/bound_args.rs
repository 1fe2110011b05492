//! The context that a request state is valid for: principal, server, method, target and bound
//! arguments.

use std::sync::Arc;

use outlive_protocol::{Call, ProtocolError, Seal};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{hex::hex, server::env::environment::Env};

/// Names of the bound arguments. `None` binds all arguments.
pub(crate) type BoundArgs = Option<Arc<[String]>>;

/// Associated data of a sealed request state.
pub(crate) struct Context {
    principal: String,
    audience: String,
    method: String,
    target: String,
    digest: String,
}

impl Context {
    pub(crate) fn parts(&self) -> [&str; 6] {
        let Self { principal, audience, method, target, digest } = self;
        [Seal::REQUEST_STATE, principal, audience, method, target, digest]
    }
}

/// Returns the context that must be the same in every round.
pub(crate) fn context(
    env: &Env,
    call: &Call,
    bound_args: &BoundArgs,
) -> Result<Context, ProtocolError> {
    // A resource is identified by its URI, other targets by their name.
    let target = call.name().or_else(|_| call.uri())?;
    Ok(Context {
        principal: call.principal().key().to_owned(),
        audience: env.profile.info.name.clone(),
        method: call.method_name().to_owned(),
        target: target.into_owned(),
        digest: digest(call.arguments()?, bound_args)?,
    })
}

/// Returns the fingerprint of a request: its method, target and bound arguments.
pub(crate) fn fingerprint(
    env: &Env,
    call: &Call,
    bound_args: &BoundArgs,
) -> Result<String, ProtocolError> {
    let context = context(env, call, bound_args)?;
    Ok([&context.method, &context.target, &context.digest].map(String::as_str).join(" "))
}

/// Returns a hash of the bound arguments. Formatting and member order do not affect it.
pub(crate) fn digest(arguments: &str, bound_args: &BoundArgs) -> Result<String, ProtocolError> {
    let mut value: Value = serde_json::from_str(arguments)
        .map_err(|error| ProtocolError::invalid_params(format!("`params.arguments`: {error}")))?;
    if let (Some(bound_args), Value::Object(members)) = (bound_args, &mut value) {
        members.retain(|name, _| bound_args.contains(name));
    }
    Ok(hex(&Sha256::digest(canonical(&value))))
}

/// Returns a value in canonical form: equal values have the same one.
pub(crate) fn canonical(value: &Value) -> String {
    let mut canonical = String::new();
    write(value, &mut canonical);
    canonical
}

/// Returns a hash of several strings. Each string is prefixed with its length, so that the hash is
/// unambiguous.
pub(crate) fn hash(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hex(&hash.finalize())
}

/// Writes a value in canonical form: members in order, no white space, `1.0` as `1`.
fn write(value: &Value, out: &mut String) {
    match value {
        Value::Array(items) => {
            out.push('[');
            for item in items {
                write(item, out);
                out.push(',');
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            out.push('{');
            for (name, value) in members {
                out.push_str(&Value::from(name.as_str()).to_string());
                out.push(':');
                write(value, out);
                out.push(',');
            }
            out.push('}');
        }
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (None, Some(float)) if is_exact(float) => out.push_str(&(float as i64).to_string()),
            _ => out.push_str(&number.to_string()),
        },
        other => out.push_str(&other.to_string()),
    }
}

/// Returns whether a float is an integer that `f64` represents exactly.
fn is_exact(float: f64) -> bool {
    const LARGEST: f64 = 9_007_199_254_740_992.0;
    float.fract() == 0.0 && float.abs() <= LARGEST
}

#[cfg(test)]
mod tests {
    use super::digest;

    #[test]
    fn digest_ignores_formatting_and_member_order() {
        let of = |text: &str| digest(text, &None).unwrap();
        let first = of(r#"{"a":1,"b":{"x":"é","y":[1.50,null]}}"#);
        assert_eq!(first, of(r#" {"b": {"y":[1.5, null],"x":"\u00e9"}, "a":1.0} "#));
        for other in [
            r#"{"a":1,"b":{"x":"e","y":[1.5,null]}}"#,
            r#"{"a":1,"b":{"x":"é","y":[null,1.5]}}"#,
            r#"{"a":"1","b":{"x":"é","y":[1.5,null]}}"#,
            r#"{"a":1}"#,
            "{}",
        ] {
            assert_ne!(first, of(other), "{other}");
        }
        assert_ne!(of(r#"{"a":{"b":1}}"#), of(r#"{"a":{},"b":1}"#));
    }

    #[test]
    fn digest_with_bound_arguments_ignores_the_others() {
        let bound_args = Some(["repo".to_owned()].into());
        let of = |text: &str| digest(text, &bound_args).unwrap();
        assert_eq!(of(r#"{"repo":"a","verbose":true}"#), of(r#"{"repo":"a"}"#));
        assert_ne!(of(r#"{"repo":"b"}"#), of(r#"{"repo":"a"}"#));
    }
}
