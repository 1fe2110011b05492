//! Tests of schemas as their users see them.

/// What needs the feature `json-schema`, with it.
#[cfg(feature = "json-schema")]
mod full;
/// Which annotations are headers, and which are refused.
mod header_params;
/// What a violation says.
mod messages;
/// Our verdict against that of `jsonschema`, on generated values.
mod oracle;
/// Generated values and schemas.
mod random;
/// What can be registered.
mod registration;
/// Which documents our own validator covers.
mod supported;
/// Types for the other tests, and how their arguments are judged.
mod types;
/// What needs the feature `json-schema`, without it.
#[cfg(not(feature = "json-schema"))]
mod unsupported;
/// Verdicts that are easy to get wrong.
mod verdicts;
