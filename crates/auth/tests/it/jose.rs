//! Tests of signed tokens and keys, with the examples of the RFCs.

use outlive_auth::jose::{
    Algorithm, Algorithms, Claims, Jwk, JwkError, JwkSet, Jws, JwsError, KeyError, SigningKey,
    decode_base64url, encode_base64url,
};
use serde_json::json;

const RFC7515_RSA: &str = r#"{"kty":"RSA","e":"AQAB","n":"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"}"#;
const RFC7515_RS256: &str = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw";
const RFC7515_EC: &str = r#"{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}"#;
const RFC7515_ES256: &str = "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
const RFC7515_HS256: &str = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const RFC7515_NONE: &str = "eyJhbGciOiJub25lIn0.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.";
const RFC7520_RSA: &str = r#"{"kty":"RSA","kid":"bilbo.baggins@hobbiton.example","use":"sig","e":"AQAB","n":"n4EPtAOCc9AlkeQHPzHStgAbgs7bTZLwUBZdR8_KuKPEHLd4rHVTeT-O-XV2jRojdNhxJWTDvNd7nqQ0VEiZQHz_AJmSCpMaJMRBSFKrKb2wqVwGU_NsYOYL-QtiWN2lbzcEe6XC0dApr5ydQLrHqkHHig3RBordaZ6Aj-oBHqFEHYpPe7Tpe-OfVfHd1E6cS6M1FZcD1NNLYD5lFHpPI9bTwJlsde3uhGqC0ZCuEHg8lhzwOHrtIQbS0FVbb9k3-tVTU4fg_3L_vniUFAKwuCLqKnS2BYwdq_mzSnbLY7h_qixoR7jig3__kRhuaxwUkRz5iaiQkqgc5gHdrNP5zw"}"#;
const RFC7520_PS384: &str = "eyJhbGciOiJQUzM4NCIsImtpZCI6ImJpbGJvLmJhZ2dpbnNAaG9iYml0b24uZXhhbXBsZSJ9.SXTigJlzIGEgZGFuZ2Vyb3VzIGJ1c2luZXNzLCBGcm9kbywgZ29pbmcgb3V0IHlvdXIgZG9vci4gWW91IHN0ZXAgb250byB0aGUgcm9hZCwgYW5kIGlmIHlvdSBkb24ndCBrZWVwIHlvdXIgZmVldCwgdGhlcmXigJlzIG5vIGtub3dpbmcgd2hlcmUgeW91IG1pZ2h0IGJlIHN3ZXB0IG9mZiB0by4.cu22eBqkYDKgIlTpzDXGvaFfz6WGoz7fUDcfT0kkOy42miAh2qyBzk1xEsnk2IpN6-tPid6VrklHkqsGqDqHCdP6O8TTB5dDDItllVo6_1OLPpcbUrhiUSMxbbXUvdvWXzg-UD8biiReQFlfz28zGWVsdiNAUf8ZnyPEgVFn442ZdNqiVJRmBqrYRXe8P_ijQ7p8Vdz0TTrxUeT3lm8d9shnr2lfJT8ImUjvAA2Xez2Mlp8cBE5awDzT0qI0n6uiP1aCN_2_jLAeQTlqRHtfa64QQSUmFAAjVKPbByi7xho0uTOcbH510a6GYmJUAfmWjwZ6oD4ifKo8DYM-X72Eaw";
const RFC8037_ED25519: &str =
    r#"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;
const RFC8037_EDDSA: &str = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
const RFC7638_RSA: &str = r#"{"kty":"RSA","n":"0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw","e":"AQAB","alg":"RS256","kid":"2011-04-29"}"#;

const RSA: &str = include_str!("keys/rsa.pem");
const P256: &str = include_str!("keys/p256.pem");
const ED25519: &str = include_str!("keys/ed25519.pem");

fn key(json: &str) -> Jwk {
    Jwk::from_json(json).unwrap()
}

#[track_caller]
fn verified(token: &str, key: &Jwk, accepted: Algorithms) -> Result<String, JwsError> {
    Jws::parse(token)?.verify([key], accepted).map(|said| String::from_utf8(said.to_vec()).unwrap())
}

#[test]
fn rfc_examples_verify() {
    let joe = "{\"iss\":\"joe\",\r\n \"exp\":1300819380,\r\n \"http://example.com/is_root\":true}";
    assert_eq!(verified(RFC7515_RS256, &key(RFC7515_RSA), Algorithms::ALL).unwrap(), joe);
    assert_eq!(verified(RFC7515_ES256, &key(RFC7515_EC), Algorithms::ALL).unwrap(), joe);
    let ed = verified(RFC8037_EDDSA, &key(RFC8037_ED25519), Algorithms::ALL).unwrap();
    assert_eq!(ed, "Example of Ed25519 signing");
    let ps = verified(RFC7520_PS384, &key(RFC7520_RSA), Algorithms::ALL).unwrap();
    assert!(ps.ends_with("where you might be swept off to."));
}

#[test]
fn unsigned_and_symmetric_tokens_are_rejected() {
    for (token, key) in [(RFC7515_NONE, RFC7515_RSA), (RFC7515_HS256, RFC7515_RSA)] {
        assert_eq!(
            verified(token, &self::key(key), Algorithms::ALL).unwrap_err(),
            JwsError::Algorithm
        );
    }
    let shared = r#"{"kty":"oct","k":"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow"}"#;
    assert_eq!(Jwk::from_json(shared).unwrap_err(), JwkError::Unsupported);
}

#[test]
fn algorithm_that_is_not_accepted_is_rejected() {
    let only = Algorithms::of([Algorithm::Es256, Algorithm::EdDsa]);
    assert_eq!(verified(RFC7515_RS256, &key(RFC7515_RSA), only).unwrap_err(), JwsError::Algorithm);
    assert!(verified(RFC7515_ES256, &key(RFC7515_EC), only).is_ok());
}

#[test]
fn key_is_used_only_for_its_declared_algorithm_and_use() {
    let ps = RFC7515_RSA.replacen('{', r#"{"alg":"PS256","#, 1);
    assert_eq!(
        verified(RFC7515_RS256, &key(&ps), Algorithms::ALL).unwrap_err(),
        JwsError::Signature
    );
    let odd = RFC7515_RSA.replacen('{', r#"{"alg":"ES256","#, 1);
    assert_eq!(Jwk::from_json(&odd).unwrap_err(), JwkError::Unsupported);
    let secret = RFC7515_RSA.replacen('{', r#"{"alg":"HS256","#, 1);
    assert_eq!(Jwk::from_json(&secret).unwrap_err(), JwkError::Unsupported);
    let encrypts = RFC7515_RSA.replacen('{', r#"{"use":"enc","#, 1);
    assert_eq!(Jwk::from_json(&encrypts).unwrap_err(), JwkError::NotForSignatures);
    let wraps = RFC7515_RSA.replacen('{', r#"{"key_ops":["wrapKey"],"#, 1);
    assert_eq!(Jwk::from_json(&wraps).unwrap_err(), JwkError::NotForSignatures);
}

#[test]
fn modified_token_is_rejected() {
    let key = key(RFC7515_EC);
    let [header, payload, signature] =
        RFC7515_ES256.split('.').collect::<Vec<_>>().try_into().unwrap();
    let other = encode_base64url(br#"{"iss":"eve"}"#);
    assert_eq!(
        verified(&format!("{header}.{other}.{signature}"), &key, Algorithms::ALL).unwrap_err(),
        JwsError::Signature
    );
    let mut bytes = decode_base64url(signature).unwrap();
    for at in 0..bytes.len() {
        bytes[at] ^= 1;
        let token = format!("{header}.{payload}.{}", encode_base64url(&bytes));
        assert_eq!(verified(&token, &key, Algorithms::ALL).unwrap_err(), JwsError::Signature);
        bytes[at] ^= 1;
    }
    for short in ["", &signature[..40]] {
        let token = format!("{header}.{payload}.{short}");
        assert_eq!(verified(&token, &key, Algorithms::ALL).unwrap_err(), JwsError::Signature);
    }
}

#[test]
fn malformed_token_is_rejected() {
    for text in [
        "",
        ".",
        "..",
        "a.b",
        "a.b.c.d",
        "e30.e30.e30",
        &format!("{RFC7515_ES256}="),
        &RFC7515_ES256.replace('.', ". "),
        // The last character has unused bits. If they were ignored, one token would have several
        // forms.
        &RFC7515_ES256.replace("6NU1Q", "6NU1R"),
    ] {
        assert_eq!(Jws::parse(text).err(), Some(JwsError::Malformed), "{text}");
    }
    for header in [
        r#"{"alg":"ES256","alg":"ES256"}"#,
        r#"{"alg":["ES256"]}"#,
        r#"["ES256"]"#,
        r#"{"alg":"ES256","jwk":{"kty":"oct","k":"AAAA"}}"#,
        r#"{"alg":"ES256","jwk":{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0","d":"jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI"}}"#,
    ] {
        let token = format!("{}.e30.AAAA", encode_base64url(header));
        assert_eq!(Jws::parse(&token).err(), Some(JwsError::Malformed), "{header}");
    }
    for header in [r#"{"alg":"ES256","crit":["exp"]}"#, r#"{"alg":"ES256","b64":false}"#] {
        let token = format!("{}.e30.AAAA", encode_base64url(header));
        assert_eq!(Jws::parse(&token).err(), Some(JwsError::Critical), "{header}");
    }
}

#[test]
fn thumbprints_match_the_rfc_examples() {
    assert_eq!(key(RFC7638_RSA).thumbprint(), "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs");
    assert_eq!(key(RFC8037_ED25519).thumbprint(), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
}

#[test]
fn signed_token_verifies_with_its_public_key() {
    for (algorithm, pem) in [
        (Algorithm::Es256, P256),
        (Algorithm::EdDsa, ED25519),
        (Algorithm::Rs256, RSA),
        (Algorithm::Ps256, RSA),
    ] {
        let signing = SigningKey::from_pem(algorithm, pem).unwrap().with_id("one");
        let token = signing.sign("at+jwt", &json!({ "sub": "ann", "exp": 5 })).unwrap();
        let read = Jws::parse(&token).unwrap();
        assert_eq!(read.header().algorithm, algorithm);
        assert_eq!(read.header().key_id.as_deref(), Some("one"));
        assert!(read.header().is_kind("at+jwt") && !read.header().is_kind("JWT"));
        let set = JwkSet::new([signing.public()]);
        let set = JwkSet::from_json(set.to_json().as_bytes()).unwrap();
        let said = read.verify_with(&set, Algorithms::of([algorithm])).unwrap();
        assert_eq!(Claims::read(said).unwrap().sub.as_deref(), Some("ann"));

        let proof = signing.sign_with_key("dpop+jwt", &json!({ "jti": "x" })).unwrap();
        let read = Jws::parse(&proof).unwrap();
        let shown = read.header().key.clone().unwrap();
        assert_eq!(shown.thumbprint(), signing.public().thumbprint());
        assert_eq!((shown.id(), read.header().key_id.as_deref()), (None, None));
        assert!(read.verify([&shown], Algorithms::ALL).is_ok());
    }
}

#[test]
fn generated_key_signs_tokens_that_verify() {
    for algorithm in [Algorithm::Es256, Algorithm::EdDsa] {
        let signing = SigningKey::generate(algorithm).unwrap();
        let token = signing.sign("JWT", &json!({})).unwrap();
        assert!(Jws::parse(&token).unwrap().verify([&signing.public()], Algorithms::ALL).is_ok());
        let other = SigningKey::generate(algorithm).unwrap().public();
        assert!(Jws::parse(&token).unwrap().verify([&other], Algorithms::ALL).is_err());
    }
    assert_eq!(SigningKey::generate(Algorithm::Rs256).err(), Some(KeyError::Unsupported));
    assert_eq!(SigningKey::from_pem(Algorithm::Es256, RSA).err(), Some(KeyError::Malformed));
    assert_eq!(SigningKey::from_pem(Algorithm::Es384, P256).err(), Some(KeyError::Unsupported));
}

#[test]
fn debug_output_hides_private_key_and_token() {
    let signing = SigningKey::from_pem(Algorithm::Es256, P256).unwrap().with_id("one");
    assert_eq!(format!("{signing:?}"), r#"SigningKey { algorithm: Es256, id: Some("one"), .. }"#);
    let token = signing.sign("JWT", &json!({ "sub": "ann" })).unwrap();
    let shown = format!("{:?}", Jws::parse(&token).unwrap());
    assert!(token.split('.').all(|part| !shown.contains(part)), "{shown}");
}

#[test]
fn key_set_skips_unsupported_keys() {
    let json = format!(
        r#"{{"keys":[{{"kty":"oct","k":"AAAA"}},{{"kty":"EC","crv":"P-521"}},{RFC7638_RSA},
            {{"kty":"RSA","n":"AQAB","e":"AQAB"}},{RFC7515_EC},7]}}"#
    );
    let set = JwkSet::from_json(json.as_bytes()).unwrap();
    assert_eq!(set.keys().len(), 2);
    assert_eq!(set.candidates(Some("2011-04-29"), Algorithm::Rs256).count(), 1);
    assert_eq!(set.candidates(Some("2011-04-29"), Algorithm::Ps256).count(), 0);
    assert_eq!(set.candidates(Some("other"), Algorithm::Rs256).count(), 0);
    assert_eq!(set.candidates(None, Algorithm::Es256).count(), 1);
    assert_eq!(JwkSet::from_json(b"[]").unwrap_err(), JwkError::Malformed);
}

#[test]
fn claims_are_read_as_strings_or_lists() {
    let json = br#"{"iss":"https://a","aud":["x","y"],"exp":12.9,"scope":"a b  c","cnf":{"jkt":"k"},"more":{}}"#;
    let claims = Claims::read(json).unwrap();
    assert_eq!(claims.exp, Some(12));
    assert!(claims.aud.contains("y") && !claims.aud.contains("z"));
    assert_eq!(claims.scopes().collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!(claims.cnf.unwrap().jkt.as_deref(), Some("k"));

    let claims = Claims::read(br#"{"aud":"x y","scp":["a","b"]}"#).unwrap();
    // An audience is one string, spaces included. A scope string is split into words.
    assert!(claims.aud.contains("x y") && !claims.aud.contains("x"));
    assert_eq!(claims.scopes().collect::<Vec<_>>(), ["a", "b"]);

    for odd in [
        &br#"{"exp":"tomorrow"}"#[..],
        br#"{"exp":1,"exp":9}"#,
        br#"{"aud":7}"#,
        br#"{"exp":1e300}"#,
        br#"{"exp":null}"#,
        b"[]",
        b"",
    ] {
        assert!(Claims::read(odd).is_none(), "{}", String::from_utf8_lossy(odd));
    }
}
