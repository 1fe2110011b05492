//! The key `approve` of a tool: `approve = "caller"` or `approve(scope = "…", count = 2)`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Expr, ExprAssign, ExprLit, ExprPath, Ident, Lit, Token, punctuated::Punctuated};

/// Settings in parentheses. The first two select the approvers.
const SETTINGS: [&str; 6] = ["by", "scope", "count", "max_open", "message", "links"];

/// Returns the rule of a word.
pub(crate) fn word(key: &Ident, word: &Expr) -> syn::Result<TokenStream> {
    match word {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) if text.value() == "caller" => {
            Ok(quote!(::outlive::server::approve::Approve::caller()))
        }
        _ => Err(unknown(key)),
    }
}

/// Returns the rule of settings in parentheses.
pub(crate) fn rule(
    key: &Ident,
    settings: &Punctuated<Expr, Token![,]>,
) -> syn::Result<TokenStream> {
    let settings = settings.iter().map(setting).collect::<syn::Result<Vec<_>>>()?;
    let value =
        |wanted: &str| settings.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value);
    let approvers = match (value("by"), value("scope")) {
        (Some(names), None) => quote!(by(#names)),
        (None, Some(scope)) => quote!(scope(#scope)),
        (Some(names), Some(scope)) => quote!(by(#names).or_scope(#scope)),
        (None, None) => return Err(unknown(key)),
    };
    let others = settings.iter().filter(|(name, _)| *name != "by" && *name != "scope");
    let calls = others.map(|(name, value)| quote!(.#name(#value)));
    Ok(quote!(::outlive::server::approve::Approve::#approvers #(#calls)*))
}

/// Returns the error for a value that names no approvers.
pub(crate) fn unknown(key: &Ident) -> syn::Error {
    let help = format!(
        "`{key}` must say who decides; write `{key} = \"caller\"`, `{key}(by = [\"ada\"])` or \
         `{key}(scope = \"…\")`"
    );
    syn::Error::new(key.span(), help)
}

/// Returns the name and the value of one setting.
fn setting(setting: &Expr) -> syn::Result<(Ident, &Expr)> {
    let known = SETTINGS.map(|name| format!("`{name} = …`")).join(", ");
    let wrong =
        || syn::Error::new_spanned(setting, format!("unknown setting; write one of {known}"));
    let Expr::Assign(ExprAssign { left, right, .. }) = setting else { return Err(wrong()) };
    let Expr::Path(ExprPath { path, .. }) = &**left else { return Err(wrong()) };
    let name = path.get_ident().filter(|name| SETTINGS.iter().any(|known| *name == known));
    Ok((name.ok_or_else(wrong)?.clone(), right))
}
