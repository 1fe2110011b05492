//! URI templates of resources: expanding one to a URI, and telling whether a URI comes from one.
//!
//! All four levels of RFC 6570 are read. Values are strings, so `*` changes nothing when a template
//! is expanded; when a URI is matched, it lets a variable take several parts.
//!
//! Matching follows the idea that a URI fits if some values expand to it, with three liberties that
//! make it useful for routing. An unnamed variable is never empty. The variables of `{?a,b}`, `{&a,b}`
//! and `{;a,b}` come in any order. And a URI need not encode every character that expanding would
//! have encoded, since people and models write them by hand: `{id}` takes `me@home`, but no `/`.
//! Spec: <https://www.rfc-editor.org/rfc/rfc6570>

mod matcher;
mod parse;
mod part;
mod template;

#[cfg(test)]
mod tests;

pub use parse::UriTemplateError;
pub use template::UriTemplate;
