//! Tests of schemas as their users see them.

/// What is valid at a glance.
mod glance;
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
/// Types for the other tests, and how their arguments are judged.
mod types;
/// Verdicts that are easy to get wrong.
mod verdicts;
