//! `#[derive(Form)]`: a struct that a user can fill in, or an enum to choose from.
//!
//! The macro generates only trait bounds, because the JSON schema of the type describes the form.
//! Each bound has the span of its field, so that the compiler points at an invalid field.

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
        errors.push(&input.generics, "a form cannot be generic; remove the parameters");
    }
    let name = &input.ident;
    let made = match &input.data {
        Data::Struct(data) => {
            let Fields::Named(fields) = &data.fields else {
                errors.push(name, "a form needs named fields; write `struct Name { field: … }`");
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
                    "the variant `{}` has data; a choice is an enum without data",
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

/// Returns the trait bound of a field. Returns `None` if the field is skipped or a function
/// provides its schema.
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

/// Attributes of a field that change its form.
#[derive(Default)]
struct Written {
    /// Whether its fields are fields of the form.
    flatten: bool,
    /// Type whose schema is used instead.
    with: Option<Type>,
    /// Whether the field is skipped or a function provides its schema.
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
            // Syntax errors are ignored, because the owner of the attribute reports them.
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
