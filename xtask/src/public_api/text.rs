//! Converts tokens to text with the spacing of rustfmt.

use quote::ToTokens;

/// Returns the code of a syntax node on one line.
pub(super) fn code(piece: &impl ToTokens) -> String {
    let mut text = String::new();
    let written = piece.to_token_stream().to_string();
    for word in written.split_whitespace() {
        if !text.is_empty() && !is_glued(&text, word) {
            text.push(' ');
        }
        text.push_str(word);
    }
    // `mut` on `self` does not concern callers.
    text.replace(",)", ")").replace(",>", ">").replace("(mut self", "(self")
}

/// Whether the next word follows without a space.
fn is_glued(text: &str, word: &str) -> bool {
    if word.starts_with(['(', '[']) {
        let name = text.trim_end_matches(|last: char| last.is_alphanumeric() || last == '_');
        let last = &text[name.len()..];
        let is_name = !last.is_empty() && !name.ends_with('\'');
        let is_keyword = matches!(last, "mut" | "dyn" | "impl" | "where" | "for" | "const");
        let is_generic = text.ends_with('>') && !text.ends_with("->");
        return is_generic || (is_name && !is_keyword) || text.ends_with(['(', '<', '[', '&']);
    }
    text.ends_with(['(', '<', '[', '&', '?', '!', '\''])
        || text.ends_with("::")
        || word.starts_with([')', ',', ';', ':', '<', '>', ']', '?', '!'])
}

#[cfg(test)]
mod tests {
    use super::code;

    fn signature(text: &str) -> String {
        code(&syn::parse_str::<syn::Signature>(text).unwrap())
    }

    #[test]
    fn signatures_keep_rustfmt_spacing() {
        for text in [
            "fn a<T: Into<String> + Send>(&mut self, b: &'a [u8], c: (u8, u16)) -> Result<T, Error>",
            "async fn d(e: impl Fn(&str) -> Option<u8>) -> crate::f::G",
            "fn h(i: Box<dyn Any + Send>) -> [u8; 4]",
        ] {
            assert_eq!(signature(text), text);
        }
        assert_eq!(signature("fn a(\n    mut self,\n    b: u8,\n)"), "fn a(self, b: u8)");
    }
}
