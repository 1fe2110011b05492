//! `application/x-www-form-urlencoded`, the encoding of forms, queries and Basic credentials in
//! OAuth.

/// Encodes name-value pairs.
pub fn encode<'a>(fields: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut out = String::new();
    for (name, value) in fields {
        if !out.is_empty() {
            out.push('&');
        }
        escape(name, &mut out);
        out.push('=');
        escape(value, &mut out);
    }
    out
}

/// Encodes one value.
pub fn escaped(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    escape(value, &mut out);
    out
}

fn escape(value: &str, out: &mut String) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            // A space is encoded as `%20`, because some parsers do not accept a plus sign.
            _ => {
                out.push('%');
                out.push(char::from(HEX[usize::from(byte >> 4)]));
                out.push(char::from(HEX[usize::from(byte & 15)]));
            }
        }
    }
}

/// Decodes name-value pairs. Replaces invalid UTF-8, and keeps invalid escapes unchanged.
pub fn decode(text: &str) -> Vec<(String, String)> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (unescaped(name), unescaped(value))
        })
        .collect()
}

fn unescaped(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.as_bytes().iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b'+' => out.push(b' '),
            b'%' => {
                let rest = bytes.clone().take(2).collect::<Vec<u8>>();
                let digits = str::from_utf8(&rest).ok().filter(|it| it.len() == 2);
                let whole = digits.filter(|it| it.bytes().all(|digit| digit.is_ascii_hexdigit()));
                match whole.and_then(|it| u8::from_str_radix(it, 16).ok()) {
                    Some(decoded) => {
                        out.push(decoded);
                        bytes.nth(1);
                    }
                    None => out.push(b'%'),
                }
            }
            other => out.push(other),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};

    #[test]
    fn encoded_fields_decode_to_the_same_values() {
        let fields = [("a b", "c&d=é%+/"), ("empty", ""), ("u", "https://a.b/c?d")];
        let text = encode(fields);
        assert_eq!(text, "a%20b=c%26d%3D%C3%A9%25%2B%2F&empty=&u=https%3A%2F%2Fa.b%2Fc%3Fd");
        let read = decode(&text);
        let read: Vec<_> =
            read.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(read, fields);
    }

    #[test]
    fn malformed_fields_are_decoded_leniently() {
        let read = decode("a+b=c%2&&d&e=%zz%41%e9");
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(read, [pair("a b", "c%2"), pair("d", ""), pair("e", "%zzA\u{fffd}")]);
    }
}
