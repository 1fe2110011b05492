//! A fast JSON string writer.
//!
//! Most bytes of a large message are one string, and most strings need no escapes. serde_json
//! writes strings byte by byte, which dominated the cost of large results. This writer checks whole
//! blocks and copies unescaped runs. The output is identical.

/// Bytes that are checked at once in long strings.
const BLOCK: usize = 32;

/// Bytes that are checked at once in short strings: one register.
const WORD: usize = size_of::<u64>();

/// Additional capacity for the end of the message, so that the buffer does not double for a few
/// bytes.
const REST: usize = 64;

/// Writes a string with its quotes.
pub(super) fn write(text: &str, out: &mut Vec<u8>) {
    out.reserve(text.len() + REST);
    out.push(b'"');
    let mut rest = text.as_bytes();
    loop {
        let (plain, other) = rest.split_at(plain_prefix(rest));
        out.extend_from_slice(plain);
        let Some((byte, after)) = other.split_first() else { break };
        escape(*byte, out);
        rest = after;
    }
    out.push(b'"');
}

/// Returns the number of leading bytes that need no escape.
pub(super) fn plain_prefix(bytes: &[u8]) -> usize {
    // Most strings are shorter than a block, so start with words.
    let (words, _) = bytes.as_chunks::<WORD>();
    for (index, word) in words.iter().take(BLOCK / WORD).enumerate() {
        let odd = odd_bits(u64::from_le_bytes(*word));
        if odd != 0 {
            return index * WORD + first(odd);
        }
    }
    long_plain_prefix(bytes)
}

/// Continues [`plain_prefix`] for long strings and short tails. A separate function, so that the
/// short case needs no stack.
#[inline(never)]
fn long_plain_prefix(bytes: &[u8]) -> usize {
    // Branch-free, so that the compiler vectorizes the check of a block.
    let is_plain = |block: &&[u8]| block.iter().fold(0, |odd, byte| odd | is_odd(*byte)) == 0;
    let blocks = bytes.chunks_exact(BLOCK).take_while(is_plain).count();
    let mut plain = BLOCK * blocks;
    let (words, rest) = bytes[plain..].as_chunks::<WORD>();
    for word in words {
        match odd_bits(u64::from_le_bytes(*word)) {
            0 => plain += WORD,
            odd => return plain + first(odd),
        }
    }
    plain + rest.iter().take_while(|byte| is_odd(**byte) == 0).count()
}

/// Returns 1 if a byte must be escaped. Non-ASCII bytes need no escape.
fn is_odd(byte: u8) -> u8 {
    u8::from(byte < b' ') | u8::from(byte == b'"') | u8::from(byte == b'\\')
}

/// Sets the top bit of each byte that must be escaped. May also set the top bits of later bytes.
fn odd_bits(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 0xff;
    const TOPS: u64 = ONES << 7;
    // Sets the top bit of each ASCII byte below `limit`. A borrow may also set the top bit of the
    // next byte.
    let below = |word: u64, limit: u8| word.wrapping_sub(ONES * u64::from(limit));
    let is = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    (below(word, b' ') | is(b'"') | is(b'\\')) & !word & TOPS
}

/// Returns the index of the first byte whose top bit is set.
fn first(odd: u64) -> usize {
    odd.trailing_zeros() as usize / 8
}

fn escape(byte: u8, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let short = match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        b'\t' => b't',
        b'\n' => b'n',
        0x0c => b'f',
        b'\r' => b'r',
        _ => {
            let digits = [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]];
            out.extend_from_slice(b"\\u00");
            return out.extend_from_slice(&digits);
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, write};

    #[track_caller]
    fn check(text: &str) {
        let mut out = Vec::new();
        write(text, &mut out);
        assert_eq!(str::from_utf8(&out).unwrap(), serde_json::to_string(text).unwrap());
    }

    #[test]
    fn every_ascii_byte_is_written_as_by_serde_json() {
        for byte in 0..=0x7f_u8 {
            check(&char::from(byte).to_string());
        }
        check("");
        check("gr\u{fc}n, \u{6f22}\u{5b57}, \u{1f980}, \u{2028}");
    }

    #[test]
    fn escape_is_found_at_every_offset_of_a_block() {
        for length in 0..3 * BLOCK {
            check(&"x".repeat(length));
            for at in 0..length {
                for odd in ["\"", "\\", "\n", "\u{1}", "\u{1f980}"] {
                    check(&("x".repeat(at) + odd + &"\u{fc}".repeat(length - at)));
                }
            }
        }
    }
}
