//! Names in a journal.

use std::fmt::{self, Display, Write};

/// The name of a step, a question or a timer: parts, joined by `/`.
///
/// What the parts themselves hold of `/`, `\` and `#` is escaped, so that no two different lists
/// of parts make the same key, and so that a counter can be appended.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(String);

/// What names a step, a question or a timer: a name, or a name with a part that can be shown.
///
/// `"build"` and `("push", region)` are keys. Only what is `Display` can be a part: there is
/// nothing unordered among it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a key",
    note = "a key is a name, `\"build\"`, or a name with a part that is `Display`: `(\"push\", region)`"
)]
pub trait IntoKey {
    /// Makes the key.
    fn into_key(self) -> Key;
}

impl Key {
    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// This key inside of a scope; an empty scope is none.
    #[must_use]
    pub fn within(self, scope: &str) -> Self {
        match scope {
            "" => self,
            scope => Self(format!("{scope}/{}", self.0)),
        }
    }

    /// The key as text, to keep.
    pub fn into_string(self) -> String {
        self.0
    }

    fn of(parts: &[&dyn Display]) -> Self {
        let mut key = String::new();
        for (index, part) in parts.iter().enumerate() {
            if index > 0 {
                key.push('/');
            }
            // Writing into a string fails only if the part itself does, and then what it has
            // written so far is its name.
            let _ = write!(Escaped(&mut key), "{part}");
        }
        Self(key)
    }
}

struct Escaped<'a>(&'a mut String);

impl Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for char in text.chars() {
            if matches!(char, '/' | '\\' | '#') {
                self.0.push('\\');
            }
            self.0.push(char);
        }
        Ok(())
    }
}

impl IntoKey for Key {
    fn into_key(self) -> Key {
        self
    }
}

impl IntoKey for &str {
    fn into_key(self) -> Key {
        Key::of(&[&self])
    }
}

impl IntoKey for &String {
    fn into_key(self) -> Key {
        Key::of(&[self])
    }
}

impl IntoKey for String {
    fn into_key(self) -> Key {
        Key::of(&[&self])
    }
}

impl<T: Display> IntoKey for (&str, T) {
    fn into_key(self) -> Key {
        Key::of(&[&self.0, &self.1])
    }
}

#[cfg(test)]
mod tests {
    use super::IntoKey;

    #[test]
    fn different_parts_make_different_keys() {
        let key = |key: crate::Key| key.into_string();
        assert_eq!(key("build".into_key()), "build");
        assert_eq!(key(("push", "eu/1").into_key()), r"push/eu\/1");
        assert_ne!(key(("push", "eu").into_key()), key("push/eu".into_key()));
        assert_ne!(key("a#2".into_key()), "a#2");
        assert_eq!(key(("page", 3).into_key().within(r"shop")), "shop/page/3");
        assert_eq!(key("a".into_key().within("")), "a");
    }
}
