//! Writes TOML.

use serde_json::Value;

/// Returns a string of TOML.
pub(super) fn string(text: &str) -> String {
    // JSON escapes what TOML must escape, except DEL.
    Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// Returns an array of strings.
pub(super) fn array<'t>(items: impl IntoIterator<Item = &'t str>) -> String {
    let items: Vec<String> = items.into_iter().map(string).collect();
    format!("[{}]", items.join(", "))
}

/// Returns a key, in quotes if it needs them.
pub(super) fn key(name: &str) -> String {
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    match !name.is_empty() && name.bytes().all(is_bare) {
        true => name.to_owned(),
        false => string(name),
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::any, proptest};
    use toml::{Table, Value};

    use super::{array, key, string};

    proptest! {
        #[test]
        fn written_toml_has_the_same_values(name in any::<String>(), text in any::<String>(), items in vec(any::<String>(), 0..4)) {
            let items: Vec<&str> = items.iter().map(String::as_str).collect();
            let (key_text, array) = (key(&name), array(items.iter().copied()));
            let written = format!("a.{key_text} = {}\nb = {array}\n", string(&text));
            let table: Table = written.parse().unwrap_or_else(|error| panic!("{error}: {written}"));
            assert_eq!(table["a"][name.as_str()], Value::String(text));
            let read: Vec<&str> = table["b"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
            assert_eq!(read, items);
        }
    }
}
