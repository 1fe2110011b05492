//! Tests of the public behavior of schemas.

/// Documents that need the feature `json-schema`, with the feature.
#[cfg(feature = "json-schema")]
mod full;
/// `x-mcp-header` annotations.
mod header_params;
/// Messages of violations.
mod messages;
/// Comparison of verdicts with `jsonschema`, on generated values.
mod oracle;
/// Generator of values and schemas.
mod random;
/// Registration of schemas.
mod registration;
/// Documents that the built-in validator covers.
mod supported;
/// Argument types for the other tests.
mod types;
/// Documents that need the feature `json-schema`, without the feature.
#[cfg(not(feature = "json-schema"))]
mod unsupported;
/// Verdicts that are easy to get wrong.
mod verdicts;
