//! What a token must withstand.

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
fn what_is_sealed_opens_again() {
    for content in [&b""[..], CONTENT, &[0xFF; 5_000]] {
        for context in [&[][..], &CONTEXT, &[""]] {
            let token = seal().seal(content, context).unwrap();
            assert_eq!(seal().open(&token, context).as_deref(), Some(content));
        }
    }
}

#[test]
fn a_token_says_its_version_and_key_and_nothing_else() {
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
fn another_context_does_not_open_it() {
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
fn a_token_with_any_bit_flipped_does_not_open() {
    let token = token();
    for index in 0..token.len() {
        for bit in 0..8 {
            let mut bytes = token.clone().into_bytes();
            bytes[index] ^= 1 << bit;
            // Text that is not UTF-8 cannot even be asked about.
            if let Ok(changed) = String::from_utf8(bytes) {
                does_not_open(&changed);
            }
        }
    }
}

#[test]
fn bytes_with_any_bit_flipped_do_not_open() {
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
fn one_token_has_one_spelling() {
    // Lengths that leave none, two and four bits of the last character unused.
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
fn a_part_of_a_token_does_not_open() {
    let token = token();
    for length in 0..token.len() {
        does_not_open(&token[..length]);
        does_not_open(&token[token.len() - length..]);
    }
}

#[test]
fn an_older_key_of_the_ring_opens_and_the_newest_seals() {
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
fn a_clone_that_gets_a_key_keeps_it_to_itself() {
    let plain = Seal::new([1; KEY]);
    let ring = plain.clone().with_previous([2; KEY]);
    let token = Seal::new([2; KEY]).seal(CONTENT, &CONTEXT).unwrap();
    assert!(ring.open(&token, &CONTEXT).is_some());
    assert_eq!(plain.open(&token, &CONTEXT), None);
}

#[test]
fn a_key_that_is_not_in_the_ring_opens_nothing_under_the_name_of_one_that_is() {
    let mut bytes =
        URL_SAFE_NO_PAD.decode(Seal::new([8; KEY]).seal(CONTENT, &CONTEXT).unwrap()).unwrap();
    bytes[1..HEAD].copy_from_slice(&key_id(&[7; KEY]));
    does_not_open(&URL_SAFE_NO_PAD.encode(bytes));
}

#[test]
fn debug_shows_nothing() {
    assert_eq!(format!("{:?}", seal().with_previous([1; KEY])), "Seal(…)");
    assert_ne!(Seal::random_key().unwrap(), Seal::random_key().unwrap());
}

#[test]
fn keys_with_the_same_id_are_both_tried() {
    // Found by trying: numbers whose keys happen to share their id.
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
