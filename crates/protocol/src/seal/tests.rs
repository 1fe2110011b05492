//! Tests of sealed tokens: round trips, tampering and key rotation.

use super::*;

const CONTEXT: [&str; 2] = ["cursor", "anna"];
const CONTENT: &[u8] = b"the content";

fn seal() -> Seal {
    Seal::new([7; KEY])
}

fn token() -> String {
    seal().seal(CONTENT, &CONTEXT).unwrap()
}

#[track_caller]
fn does_not_open(token: &str) {
    assert_eq!(seal().open(token, &CONTEXT), None, "{token}");
}

#[test]
fn sealed_content_opens_with_same_context() {
    for content in [&b""[..], CONTENT, &[0xFF; 5_000]] {
        for context in [&[][..], &CONTEXT, &[""]] {
            let token = seal().seal(content, context).unwrap();
            assert_eq!(seal().open(&token, context).as_deref(), Some(content));
        }
    }
}

#[test]
fn token_reveals_only_version_and_key_id() {
    let token = token();
    let bytes = URL_SAFE_NO_PAD.decode(&token).unwrap();
    assert_eq!(bytes[0], VERSION);
    assert_eq!(bytes[1..HEAD], key_id(&[7; KEY]));
    assert_eq!(bytes.len(), HEAD + NONCE + CONTENT.len() + TAG);
    assert!(!bytes.windows(CONTENT.len()).any(|part| part == CONTENT));
    assert!(token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)));
    assert_ne!(token, super::tests::token(), "the nonce differs");
}

#[test]
fn token_does_not_open_with_another_context() {
    let token = token();
    for context in [
        &[][..],
        &["cursor"],
        &["cursor", "bert"],
        &["anna", "cursor"],
        &["cursora", "nna"],
        &["cursoranna"],
        &["cursor", "anna", ""],
        &["", "cursor", "anna"],
    ] {
        assert_eq!(seal().open(&token, context), None, "{context:?}");
    }
}

#[test]
fn token_with_flipped_bit_does_not_open() {
    let token = token();
    for index in 0..token.len() {
        for bit in 0..8 {
            let mut bytes = token.clone().into_bytes();
            bytes[index] ^= 1 << bit;
            // `open` takes UTF-8 only.
            if let Ok(changed) = String::from_utf8(bytes) {
                does_not_open(&changed);
            }
        }
    }
}

#[test]
fn token_with_flipped_bit_in_decoded_bytes_does_not_open() {
    let bytes = URL_SAFE_NO_PAD.decode(token()).unwrap();
    for index in 0..bytes.len() {
        for bit in 0..8 {
            let mut changed = bytes.clone();
            changed[index] ^= 1 << bit;
            does_not_open(&URL_SAFE_NO_PAD.encode(changed));
        }
    }
}

#[test]
fn token_in_another_base64_spelling_does_not_open() {
    // Lengths that leave zero, two and four bits of the last character unused.
    for content in [&b"1"[..], b"12", b"123"] {
        let token = seal().seal(content, &CONTEXT).unwrap();
        let (start, last) = token.split_at(token.len() - 1);
        for other in
            (0x20..0x7F).map(char::from).filter(|other| *other != char::from(last.as_bytes()[0]))
        {
            does_not_open(&format!("{start}{other}"));
        }
        for padding in ["=", "==", "===", "A", "AA", "AAAA", "\n", " "] {
            does_not_open(&format!("{token}{padding}"));
            does_not_open(&format!("{padding}{token}"));
        }
    }
}

#[test]
fn truncated_token_does_not_open() {
    let token = token();
    for length in 0..token.len() {
        does_not_open(&token[..length]);
        does_not_open(&token[token.len() - length..]);
    }
}

#[test]
fn previous_key_opens_and_current_key_seals() {
    let (first, second) = (Seal::new([1; KEY]), Seal::new([2; KEY]).with_previous([1; KEY]));
    let third = Seal::new([3; KEY]).with_previous([2; KEY]).with_previous([1; KEY]);
    let opens = |ring: &Seal, by: &Seal| {
        ring.open(&by.seal(CONTENT, &CONTEXT).unwrap(), &CONTEXT).is_some()
    };
    assert!(opens(&second, &first) && opens(&third, &first) && opens(&third, &second));
    assert!(!opens(&first, &second) && !opens(&first, &third) && !opens(&second, &third));
    let dropped = Seal::new([3; KEY]).with_previous([2; KEY]);
    assert!(opens(&dropped, &second) && !opens(&dropped, &first));
}

#[test]
fn key_added_to_clone_does_not_affect_original() {
    let plain = Seal::new([1; KEY]);
    let ring = plain.clone().with_previous([2; KEY]);
    let token = Seal::new([2; KEY]).seal(CONTENT, &CONTEXT).unwrap();
    assert!(ring.open(&token, &CONTEXT).is_some());
    assert_eq!(plain.open(&token, &CONTEXT), None);
}

#[test]
fn token_of_unknown_key_with_known_key_id_does_not_open() {
    let mut bytes =
        URL_SAFE_NO_PAD.decode(Seal::new([8; KEY]).seal(CONTENT, &CONTEXT).unwrap()).unwrap();
    bytes[1..HEAD].copy_from_slice(&key_id(&[7; KEY]));
    does_not_open(&URL_SAFE_NO_PAD.encode(bytes));
}

#[test]
fn debug_output_hides_keys() {
    assert_eq!(format!("{:?}", seal().with_previous([1; KEY])), "Seal(…)");
    assert_ne!(Seal::random_key().unwrap(), Seal::random_key().unwrap());
}

#[test]
fn keys_with_equal_id_are_all_tried() {
    // Found by brute force: numbers whose keys share their ID.
    let [first, second] = [19_467_u32, 148_907].map(|number| {
        let mut key = [0; KEY];
        key[..4].copy_from_slice(&number.to_le_bytes());
        key
    });
    assert_eq!(key_id(&first), key_id(&second));
    let ring = Seal::new(first).with_previous(second);
    for (key, other) in [(first, second), (second, first)] {
        let token = Seal::new(key).seal(CONTENT, &CONTEXT).unwrap();
        assert_eq!(ring.open(&token, &CONTEXT).as_deref(), Some(CONTENT));
        assert_eq!(Seal::new(other).open(&token, &CONTEXT), None);
    }
}
