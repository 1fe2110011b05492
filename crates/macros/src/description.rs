//! Doc comments as descriptions.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// Returns the text of a doc comment as an expression, or `None` without one.
///
/// Joins the lines and removes the space after `///` and surrounding blank lines. Also supports
/// `#[doc = include_str!("…")]`.
pub(crate) fn of(attributes: &[Attribute]) -> Option<TokenStream> {
    let mut parts: Vec<Part<'_>> = Vec::new();
    for value in attributes.iter().filter_map(doc) {
        match (value, parts.last_mut()) {
            (Expr::Lit(ExprLit { lit: Lit::Str(text), .. }), Some(Part::Text(lines))) => {
                lines.extend(lines_of(&text.value()));
            }
            (Expr::Lit(ExprLit { lit: Lit::Str(text), .. }), _) => {
                parts.push(Part::Text(lines_of(&text.value())));
            }
            (other, _) => parts.push(Part::Computed(other)),
        }
    }
    match parts.as_slice() {
        [] => None,
        [Part::Text(lines)] => {
            let text = trimmed(lines);
            (!text.is_empty()).then(|| quote!(#text))
        }
        [Part::Computed(expression)] => Some(quote!(#expression)),
        [first, rest @ ..] => Some(quote!(::core::concat!(#first #(, "\n", #rest)*))),
    }
}

/// Returns the text of a doc comment that consists only of string literals.
pub(crate) fn text_of(attributes: &[Attribute]) -> Option<String> {
    let mut lines = Vec::new();
    for value in attributes.iter().filter_map(doc) {
        let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = value else { return None };
        lines.extend(lines_of(&text.value()));
    }
    Some(trimmed(&lines)).filter(|text| !text.is_empty())
}

enum Part<'a> {
    Text(Vec<String>),
    Computed(&'a Expr),
}

impl ToTokens for Part<'_> {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        match self {
            Self::Text(lines) => lines.join("\n").to_tokens(tokens),
            Self::Computed(expression) => expression.to_tokens(tokens),
        }
    }
}

fn doc(attribute: &Attribute) -> Option<&Expr> {
    match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => Some(&pair.value),
        _ => None,
    }
}

/// Returns the lines of one `///` or `/** … */` without the decoration of the comment.
fn lines_of(text: &str) -> Vec<String> {
    let starred = text.lines().count() > 1
        && text
            .lines()
            .skip(1)
            .all(|line| line.trim().is_empty() || line.trim_start().starts_with('*'));
    let undrawn = |line: &str| {
        let line = match starred {
            true => line.trim_start().strip_prefix('*').unwrap_or(line),
            false => line,
        };
        line.strip_prefix(' ').unwrap_or(line).trim_end().to_owned()
    };
    match text.is_empty() {
        true => vec![String::new()],
        false => text.lines().map(undrawn).collect(),
    }
}

fn trimmed(lines: &[String]) -> String {
    let blank = |line: &String| line.trim().is_empty();
    let first = lines.iter().position(|line| !blank(line)).unwrap_or(lines.len());
    let last = lines.iter().rposition(|line| !blank(line)).map_or(first, |last| last + 1);
    lines[first..last].join("\n")
}
