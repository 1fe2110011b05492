//! `#[prompt]`: its keys and the generated call of `Prompt::new`.

use proc_macro2::TokenStream;
use quote::quote;

use crate::{
    errors::Errors,
    function::{Function, Product},
    settings::{Key, Settings},
};

const PROMPT: Product = Product { built: "Prompt", function: "prompt", doc: "Prompt" };

const KEYS: &[Key] = &[
    Key::text("name"),
    Key::text("title"),
    Key::text("description"),
    Key::names("scopes"),
    Key::flag("always_listed"),
];

pub(crate) fn expand(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let Some(function) = Function::read("prompt", &item, &mut errors) else {
        return errors.beside(item);
    };
    let settings = Settings::read(attribute, KEYS, &mut errors);
    function.refuse_headers(&mut errors);
    let name = settings.name_or(&function.name());
    errors.beside(function.expand(&PROMPT, &quote!(#name), &settings))
}
