//! Paths inside of macros, which `syn` leaves as tokens.

use proc_macro2::{TokenStream, TokenTree};

use super::facts::{Mention, Scope};

/// Collects every path `a::b::c` in these tokens.
pub(super) fn paths(tokens: TokenStream, found: &mut Scope) {
    let mut path: Vec<String> = Vec::new();
    let mut line = 0;
    let mut colons = 0;
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => {
                // A second name, or a name after one colon, starts another path.
                if colons != 2 {
                    end(&mut path, line, found);
                }
                if path.is_empty() {
                    line = ident.span().start().line;
                }
                path.push(ident.to_string());
                colons = 0;
            }
            TokenTree::Punct(punct) if punct.as_char() == ':' && !path.is_empty() => colons += 1,
            TokenTree::Punct(_) | TokenTree::Literal(_) => {
                end(&mut path, line, found);
                colons = 0;
            }
            TokenTree::Group(group) => {
                // `a::{b, c}` occurs only in `use` items, which are not followed inside macros.
                end(&mut path, line, found);
                colons = 0;
                paths(group.stream(), found);
            }
        }
    }
    end(&mut path, line, found);
}

fn end(path: &mut Vec<String>, line: usize, found: &mut Scope) {
    let path = std::mem::take(path);
    if let Some(first) = path.first() {
        found.mentioned.insert(first.clone());
    }
    if path.len() > 1 {
        found.paths.push(Mention { path, line });
    }
}

#[cfg(test)]
mod tests {
    use super::{Scope, paths};

    fn found(text: &str) -> Vec<(String, usize)> {
        let mut found = Scope::default();
        paths(text.parse().unwrap(), &mut found);
        found.paths.into_iter().map(|mention| (mention.path.join("::"), mention.line)).collect()
    }

    #[test]
    fn macro_paths_are_found_with_their_lines() {
        assert_eq!(
            found("a::b(1),\n[crate::c::D { e: f::g }] $crate::h::i"),
            [
                ("a::b".to_owned(), 1),
                ("crate::c::D".to_owned(), 2),
                ("f::g".to_owned(), 2),
                ("crate::h::i".to_owned(), 2)
            ]
        );
    }

    #[test]
    fn single_names_in_macros_are_not_paths() {
        assert!(found("let a: b = c.d(); x : : y").iter().all(|(path, _)| path == "x::y"));
    }
}
