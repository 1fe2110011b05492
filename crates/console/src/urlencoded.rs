//! Decodes the body of a submitted form: `application/x-www-form-urlencoded`.
//!
//! Spec: <https://url.spec.whatwg.org/#application/x-www-form-urlencoded>

/// The values of a submitted form, in their order.
pub(crate) struct Values(Vec<(String, String)>);

impl Values {
    /// Decodes a body. Replaces invalid UTF-8, and keeps invalid escapes unchanged.
    pub(crate) fn decode(body: &[u8]) -> Self {
        let pairs = body.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty());
        let pair = |pair: &[u8]| {
            let at = pair.iter().position(|byte| *byte == b'=').unwrap_or(pair.len());
            (text(&pair[..at]), text(pair.get(at + 1..).unwrap_or_default()))
        };
        Self(pairs.map(pair).collect())
    }

    /// Returns the first value under a name.
    pub(crate) fn get<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        self.all(name).next()
    }

    /// Returns all names and values, in their order.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns all values under a name.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Decodes a segment of a path. A plus sign does not stand for a space there.
pub(crate) fn decode_path(segment: &str) -> String {
    decode(segment.as_bytes(), b'+')
}

/// Encodes a text as one segment of a path, or as a value of a query.
pub(crate) fn encode(text: &str) -> String {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            byte => {
                out.push('%');
                out.push(char::from(HEX[usize::from(byte >> 4)]));
                out.push(char::from(HEX[usize::from(byte & 15)]));
            }
        }
    }
    out
}

fn text(part: &[u8]) -> String {
    decode(part, b' ')
}

/// Decodes a text in which a plus sign stands for `plus`.
fn decode(part: &[u8], plus: u8) -> String {
    let mut out = Vec::with_capacity(part.len());
    let mut rest = part;
    while let [first, after @ ..] = rest {
        rest = after;
        match (first, after) {
            (b'+', _) => out.push(plus),
            (b'%', [high, low, after @ ..]) => match (digit(*high), digit(*low)) {
                (Some(high), Some(low)) => {
                    out.push(high << 4 | low);
                    rest = after;
                }
                _ => out.push(b'%'),
            },
            _ => out.push(*first),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::{Values, decode_path, encode};

    #[test]
    fn values_are_decoded_by_name() {
        let values = Values::decode(b"a+b=c%26d%3D%C3%A9%25%2B&x=1&x=2&empty=&bare&=y");
        assert_eq!(values.get("a b"), Some("c&d=\u{e9}%+"));
        assert_eq!(values.all("x").collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!((values.get("empty"), values.get("bare")), (Some(""), Some("")));
        assert_eq!((values.get(""), values.get("none")), (Some("y"), None));
    }

    #[test]
    fn encoded_segment_decodes_to_the_same_text() {
        for text in ["#approval#2", "push/eu", "a b+c", "%41", "\u{e9}?&="] {
            assert_eq!(decode_path(&encode(text)), text);
        }
        assert_eq!(encode("#approval"), "%23approval");
        assert_eq!(decode_path("a+b"), "a+b");
    }

    #[test]
    fn malformed_body_is_decoded_leniently() {
        let values = Values::decode(b"&&a=%zz%4&b=%41%e9&%");
        assert_eq!(values.get("a"), Some("%zz%4"));
        assert_eq!(values.get("b"), Some("A\u{fffd}"));
        assert_eq!(values.get("%"), Some(""));
    }
}
