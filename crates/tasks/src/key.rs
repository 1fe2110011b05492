//! Keys of journal entries.

use std::fmt::{self, Display, Write};

/// Key of a step, an input request or a timer: parts, joined by `/`.
///
/// The characters `/`, `\` and `#` inside a part are escaped, so different lists of parts make
/// different keys. The escape also lets the journal append suffixes that start with `#`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(String);

/// A type that names a step, an input request or a timer.
///
/// Keys are `"build"` or, with a second part that is `Display`, `("push", region)`. Collections
/// without a fixed order do not implement `Display`, so they cannot make a key unstable.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a key",
    note = "a key is a name, such as `\"build\"`, or a name with a part that is `Display`, such as `(\"push\", region)`"
)]
pub trait IntoKey {
    /// Converts the value to a key.
    fn into_key(self) -> Key;
}

impl Key {
    /// Returns the key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns this key with `scope` as its prefix. An empty scope adds nothing.
    #[must_use]
    pub fn within(self, scope: &str) -> Self {
        match scope {
            "" => self,
            scope => Self(format!("{scope}/{}", self.0)),
        }
    }

    /// Returns the key as owned text.
    pub fn into_string(self) -> String {
        self.0
    }

    /// Returns the key of several parts, for keys that are read at run time. The parts need a fixed
    /// order. Without parts, the key is empty.
    pub fn parts<P: Display>(parts: impl IntoIterator<Item = P>) -> Self {
        let mut key = String::new();
        for (index, part) in parts.into_iter().enumerate() {
            if index > 0 {
                key.push('/');
            }
            // A write fails only if the `Display` of a part fails. The text before the failure is
            // then the key.
            let _ = write!(Escaped(&mut key), "{part}");
        }
        Self(key)
    }

    /// Returns the key of an existing entry, whose parts are joined and escaped.
    pub(crate) fn from_joined(key: &str) -> Self {
        Self(key.to_owned())
    }

    fn of(parts: &[&dyn Display]) -> Self {
        Self::parts(parts)
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

    #[test]
    fn key_of_parts_equals_key_of_tuple() {
        assert_eq!(crate::Key::parts(["push", "eu/1"]), ("push", "eu/1").into_key());
        assert_eq!(crate::Key::parts([1, 2, 3]).as_str(), "1/2/3");
        assert_eq!(crate::Key::parts([r"\", "#", ""]).as_str(), r"\\/\#/");
        assert_eq!(crate::Key::parts::<&str>([]).as_str(), "");
    }
}
