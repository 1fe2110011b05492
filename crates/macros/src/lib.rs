//! `#[tool]`, `#[resource]`, `#[prompt]` and `#[derive(Form)]`: less to type, nothing to hide.
//!
//! Each leaves its async function as it is, and puts a type of the same name beside it, with a function
//! that returns what the builder wants. What is written there is a call of the public builder and
//! nothing else; whatever a macro cannot say is said on what it returns:
//! `.tool(add::tool().max_concurrent(4))`.
//!
//! The path of one expansion: `function` reads the function, `params` sorts its parameters into
//! extractors and arguments, `settings` reads what stands in the attribute, and `tool`, `resource`
//! and `prompt` put the builder calls together.
//!
//! Nothing here uses the facade, not even a test: for a crate of macros cargo would build all of it a
//! second time. What the macros make is tested in `suite`, and their examples with those of `outlive`.

mod description;
mod errors;
mod field;
mod form;
mod function;
mod params;
mod prompt;
mod resource;
mod settings;
mod span;
mod template;
mod tool;

#[cfg(test)]
mod tests;

use proc_macro::TokenStream;

#[cfg_attr(not(doctest), doc = include_str!("../docs/tool.md"))]
#[proc_macro_attribute]
pub fn tool(settings: TokenStream, function: TokenStream) -> TokenStream {
    tool::expand(settings.into(), function.into()).into()
}

#[cfg_attr(not(doctest), doc = include_str!("../docs/resource.md"))]
#[proc_macro_attribute]
pub fn resource(settings: TokenStream, function: TokenStream) -> TokenStream {
    resource::expand(settings.into(), function.into()).into()
}

#[cfg_attr(not(doctest), doc = include_str!("../docs/prompt.md"))]
#[proc_macro_attribute]
pub fn prompt(settings: TokenStream, function: TokenStream) -> TokenStream {
    prompt::expand(settings.into(), function.into()).into()
}

#[cfg_attr(not(doctest), doc = include_str!("../docs/form.md"))]
#[proc_macro_derive(Form)]
pub fn derive_form(item: TokenStream) -> TokenStream {
    form::expand(item.into()).into()
}
