//! `#[derive(Form)]`: a struct that a user can fill in, or an enum that one can choose from.
//!
//! Nothing is made but proofs: what the form looks like is said by the type's JSON schema. Each
//! field is proved to be possible where it stands, so that the compiler points at the one that
//! is not.

use proc_macro2::{TokenStream, TokenTree};
use quote::{quote, quote_spanned};
use syn::{Attribute, Data, DeriveInput, Field, Fields, LitStr, Token, Type, spanned::Spanned};

use crate::errors::Errors;

pub(crate) fn expand(item: TokenStream) -> TokenStream {
    let input: DeriveInput = match syn::parse2(item) {
        Ok(input) => input,
        Err(error) => return error.into_compile_error(),
    };
    let mut errors = Errors::default();
    if !input.generics.params.is_empty() {
        errors.push(&input.generics, "a form is one type; it has no parameters");
    }
    let name = &input.ident;
    let made = match &input.data {
        Data::Struct(data) => {
            let Fields::Named(fields) = &data.fields else {
                errors.push(name, "a form has fields with names: `struct Name { field: … }`");
                return errors.beside(TokenStream::new());
            };
            let proofs = fields.named.iter().filter_map(proof);
            quote! {
                impl ::outlive::server::forms::Form for #name {}
                const _: () = {
                    const fn can_be_a_field<T: ::outlive::server::forms::FormField>() {}
                    #[allow(dead_code, reason = "only flattened fields are forms themselves")]
                    const fn can_be_a_form<T: ::outlive::server::forms::Form>() {}
                    #(#proofs)*
                };
            }
        }
        Data::Enum(data) => {
            for variant in
                data.variants.iter().filter(|variant| !matches!(variant.fields, Fields::Unit))
            {
                let message = format!(
                    "the variant `{}` has data; only an enum without any can be chosen from",
                    variant.ident
                );
                errors.push(variant, message);
            }
            quote! {
                impl ::outlive::server::forms::FormField for #name {}
                impl ::outlive::server::forms::Choice for #name {}
            }
        }
        Data::Union(_) => {
            errors.push(name, "a form is a struct with named fields, or an enum without data");
            TokenStream::new()
        }
    };
    match errors.is_empty() {
        true => made,
        false => errors.beside(TokenStream::new()),
    }
}

/// What is to be proved of a field; `None` if it is never asked for, or if a function says how.
fn proof(field: &Field) -> Option<TokenStream> {
    let written = Written::read(&field.attrs);
    let kind = written.with.as_ref().unwrap_or(&field.ty);
    match written {
        Written { elsewhere: true, .. } => None,
        Written { flatten: true, .. } => {
            Some(quote_spanned!(kind.span()=> can_be_a_form::<#kind>();))
        }
        _ => Some(quote_spanned!(kind.span()=> can_be_a_field::<#kind>();)),
    }
}

/// What the attributes of a field change about how it is asked for.
#[derive(Default)]
struct Written {
    /// Its fields stand among those of the form.
    flatten: bool,
    /// The type that it is on the wire.
    with: Option<Type>,
    /// It is never asked for, or a function says how.
    elsewhere: bool,
}

impl Written {
    fn read(attributes: &[Attribute]) -> Self {
        let mut written = Self::default();
        for attribute in attributes {
            let serde = attribute.path().is_ident("serde");
            if !serde && !attribute.path().is_ident("schemars") {
                continue;
            }
            // What cannot be parsed, its owner will refuse.
            let _ = attribute.parse_nested_meta(|meta| {
                let is = |keys: &[&str]| keys.iter().any(|key| meta.path.is_ident(key));
                if is(&["flatten"]) {
                    written.flatten = true;
                } else if is(&["skip", "skip_deserializing", "schema_with"]) {
                    written.elsewhere = true;
                } else if is(&["with"]) && !serde && meta.input.peek(Token![=]) {
                    written.with = Some(meta.value()?.parse::<LitStr>()?.parse()?);
                }
                while !meta.input.is_empty() && !meta.input.peek(Token![,]) {
                    meta.input.parse::<TokenTree>()?;
                }
                Ok(())
            });
        }
        written
    }
}
