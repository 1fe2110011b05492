//! Display of URLs from a server: the real host is shown on a separate line.

use outlive::text;

/// Returns the host of a URL, and the URL below it.
///
/// User info before an `@` and look-alike letters cannot disguise the host.
pub(crate) fn shown(url: &str) -> String {
    let host = host(url).unwrap_or_else(|| "unknown; do not open this URL".to_owned());
    format!("  host: {}\n  {}", text::line(&host), text::line(url))
}

/// Returns the host and port of a URL in ASCII. Returns `None` if programs may disagree on the
/// host.
fn host(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let is_scheme = |char: char| char.is_ascii_alphanumeric() || "+-.".contains(char);
    if scheme.is_empty() || !scheme.chars().all(is_scheme) {
        return None;
    }
    // Some programs treat a backslash as a slash.
    let authority = rest.split(['/', '?', '#']).next().filter(|it| !it.contains('\\'))?;
    let (name, port) = match authority.rsplit_once('@') {
        Some((_, place)) => split_port(place),
        None => split_port(authority),
    };
    let name = match name.starts_with('[') {
        true => name.to_owned(),
        false => name.split('.').map(ascii).collect::<Option<Vec<_>>>()?.join("."),
    };
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "-._:[]".contains(char);
    (!name.is_empty() && name.chars().all(is_plain)).then(|| format!("{name}{port}"))
}

/// Splits a host into the name and the port, which includes its colon.
fn split_port(place: &str) -> (&str, &str) {
    let digits = place.trim_end_matches(|char: char| char.is_ascii_digit());
    match digits.ends_with(':') && digits.len() < place.len() {
        true => place.split_at(digits.len() - 1),
        false => (place, ""),
    }
}

/// Returns a label in ASCII: unchanged, or as Punycode (RFC 3492) with the prefix `xn--`.
fn ascii(label: &str) -> Option<String> {
    let label = label.to_lowercase();
    match label.is_ascii() {
        true => Some(label),
        false => punycode(&label).map(|code| format!("xn--{code}")),
    }
}

fn punycode(label: &str) -> Option<String> {
    const BASE: u32 = 36;
    const SKEW: u32 = 38;
    let chars: Vec<u32> = label.chars().map(u32::from).collect();
    let mut out: String = label.chars().filter(char::is_ascii).collect();
    let basic = u32::try_from(out.len()).ok()?;
    if basic > 0 {
        out.push('-');
    }
    let (mut next, mut delta, mut bias, mut done) = (128, 0_u32, 72, basic);
    while (done as usize) < chars.len() {
        let least = chars.iter().copied().filter(|char| *char >= next).min()?;
        delta = delta.checked_add((least - next).checked_mul(done + 1)?)?;
        next = least;
        for char in &chars {
            if *char < next {
                delta = delta.checked_add(1)?;
            }
            if *char != next {
                continue;
            }
            let (mut left, mut place) = (delta, BASE);
            loop {
                let threshold = place.saturating_sub(bias).clamp(1, 26);
                if left < threshold {
                    break;
                }
                out.push(digit(threshold + (left - threshold) % (BASE - threshold)));
                left = (left - threshold) / (BASE - threshold);
                place += BASE;
            }
            out.push(digit(left));
            // Bias adaptation of RFC 3492, section 6.1.
            delta = if done == basic { delta / 700 } else { delta / 2 };
            delta += delta / (done + 1);
            let mut turns = 0;
            while delta > 35 * 26 / 2 {
                delta /= 35;
                turns += BASE;
            }
            bias = turns + 36 * delta / (delta + SKEW);
            (delta, done) = (0, done + 1);
        }
        (delta, next) = (delta.checked_add(1)?, next + 1);
    }
    Some(out)
}

fn digit(number: u32) -> char {
    let byte = u8::try_from(number).unwrap_or_default();
    char::from(if byte < 26 { b'a' + byte } else { b'0' + byte - 26 })
}

#[cfg(test)]
mod tests {
    use super::{host, shown};

    #[test]
    fn host_of_deceptive_url_is_real_destination() {
        for (url, expected) in [
            ("https://shop.example/login?next=%2Fcart", Some("shop.example")),
            ("https://bank.example@evil.example/", Some("evil.example")),
            ("https://bank.example:pass@evil.example:8443/a@b", Some("evil.example:8443")),
            ("https://EVIL.example#@bank.example", Some("evil.example")),
            ("http://[::1]:8000/mcp", Some("[::1]:8000")),
            ("https://bücher.example", Some("xn--bcher-kva.example")),
            ("https://аррӏе.com", Some("xn--80ak6aa92e.com")),
            ("https://日本語.jp", Some("xn--wgv71a119e.jp")),
            ("https://bank.example\\@evil.example", None),
            ("https://bank%2eexample/", None),
            ("https:/evil.example", None),
            ("javascript:alert(1)", None),
        ] {
            assert_eq!(host(url).as_deref(), expected, "{url}");
        }
    }

    #[test]
    fn shown_url_with_invisible_characters_escapes_them() {
        // Punycode makes them visible in a host name, too.
        assert_ne!(host("https://bank\u{200b}.example"), host("https://bank.example"));
        let shown = shown("https://a.example/\u{202e}\u{200b}");
        assert_eq!(shown, "  host: a.example\n  https://a.example/\\u{202e}\\u{200b}");
    }
}
