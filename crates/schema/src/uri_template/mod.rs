//! URI templates of resources: expansion, and matching of URIs.
//!
//! All four levels of RFC 6570 are supported. Values are strings, so `*` has no effect on
//! expansion. In matching, it lets a variable span several parts.
//!
//! A URI matches if some values expand to it, with three exceptions for routing. An unnamed
//! variable is never empty. The variables of `{?a,b}`, `{&a,b}` and `{;a,b}` may come in any order.
//! A URI need not encode every character that expansion encodes, because people and models write
//! URIs by hand: `{id}` matches `me@home`, but not `/`.
//! Spec: <https://www.rfc-editor.org/rfc/rfc6570>

mod matcher;
mod parse;
mod part;
mod template;

#[cfg(test)]
mod tests;

pub use parse::UriTemplateError;
pub use template::UriTemplate;
