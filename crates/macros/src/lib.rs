//! Macros `#[tool]`, `#[resource]`, `#[prompt]` and `#[derive(Form)]`.
//!
//! Each attribute keeps its async function and adds a type of the same name. Its function returns
//! the product for the server builder. The generated code only calls the public builder, and
//! add further settings to the product: `.tool(add::tool().max_concurrent(4))`.
//!
//! An expansion: `function` parses the function, `params` separates extractors from arguments,
//! `settings` parses the attribute, `approve` its key of that name. `tool`, `resource` and `prompt` generate the builder calls.
//!
//! This crate must not depend on `outlive`, not even in tests, because cargo would build it twice.
//! The tests of the generated code are in `suite`, and the examples are doctests of `outlive`.

mod approve;
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
