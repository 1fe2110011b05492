//! Signatures of webhooks, as in Standard Webhooks 1.0.
//!
//! Spec: <https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use outlive_transport::client::SecretString;
use ring::hmac;

use super::transport::Message;

/// Start of a secret. The rest is the key in base64.
const PREFIX: &str = "whsec_";

/// Bytes of the shortest and the longest key that the specification allows.
const MIN_KEY: usize = 24;
const MAX_KEY: usize = 64;

/// Keys that sign messages. During a rotation there are two.
pub(super) struct Signer(Vec<hmac::Key>);

impl Signer {
    /// Reads secrets, each of which may be a list with spaces in between.
    pub(super) fn new(secrets: &[SecretString]) -> Result<Self, String> {
        let secrets = secrets.iter().flat_map(|text| text.expose().split_whitespace());
        secrets.map(key).collect::<Result<_, _>>().map(Self)
    }

    /// Returns whether messages stay unsigned.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the header `webhook-signature`: one signature per key.
    pub(super) fn sign(&self, message: &Message) -> String {
        let Message { id, timestamp, body, .. } = message;
        let signed = format!("{id}.{timestamp}.{body}");
        let signature = |key| BASE64.encode(hmac::sign(key, signed.as_bytes()));
        let signatures = self.0.iter().map(|key| format!("v1,{}", signature(key)));
        signatures.collect::<Vec<_>>().join(" ")
    }
}

fn key(secret: &str) -> Result<hmac::Key, String> {
    // The error must not repeat the secret.
    let encoded = secret.strip_prefix(PREFIX).ok_or_else(|| {
        format!("the secret does not start with `{PREFIX}`; write `{PREFIX}` and the key in base64")
    })?;
    let key = BASE64
        .decode(encoded)
        .map_err(|_| format!("the secret is not base64 after `{PREFIX}`; copy the whole secret"))?;
    let bytes = key.len();
    if !(MIN_KEY..=MAX_KEY).contains(&bytes) {
        let allowed = format!("{MIN_KEY} to {MAX_KEY} random bytes");
        return Err(format!("the secret has {bytes} bytes; use {allowed}"));
    }
    Ok(hmac::Key::new(hmac::HMAC_SHA256, &key))
}

#[cfg(test)]
mod tests {
    use outlive_tasks::store::TaskEvent;

    use super::{Message, SecretString, Signer};

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

    fn message() -> Message {
        let (id, body) = ("msg_p5jXN8AQM9LWM0D4loKWxJek", r#"{"test": 2432232314}"#.to_owned());
        Message::new(id, TaskEvent::TaskEnded, 1_614_265_330, body)
    }

    fn signer(secrets: &[&str]) -> Result<Signer, String> {
        let secrets: Vec<SecretString> =
            secrets.iter().map(|text| SecretString::new(*text)).collect();
        Signer::new(&secrets)
    }

    // The vector of the reference implementations.
    #[test]
    fn signature_of_published_message_is_the_published_one() {
        assert_eq!(signer(&[SECRET]).unwrap().sign(&message()), SIGNATURE);
    }

    #[test]
    fn two_secrets_produce_two_signatures() {
        let second = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
        let alone = signer(&[second]).unwrap().sign(&message());
        let both = format!("{SIGNATURE} {alone}");
        assert_eq!(signer(&[SECRET, second]).unwrap().sign(&message()), both);
        let listed = format!("{SECRET}  {second}\n");
        assert_eq!(signer(&[&listed]).unwrap().sign(&message()), both);
        assert_ne!(SIGNATURE, alone);
    }

    #[test]
    fn changed_part_changes_the_signature() {
        let signer = signer(&[SECRET]).unwrap();
        let mut changed = [message(), message(), message()];
        changed[0].id.push('x');
        changed[1].timestamp += 1;
        changed[2].body.push(' ');
        for message in changed {
            assert_ne!(signer.sign(&message), SIGNATURE, "{message:?}");
        }
    }

    #[test]
    fn unusable_secret_is_rejected_without_showing_it() {
        for (secret, says) in [
            ("hunter2hunter2hunter2hunter2", "does not start with `whsec_`"),
            ("whsec_hunter2!", "is not base64"),
            ("whsec_aHVudGVyMg==", "has 7 bytes"),
        ] {
            let Err(error) = signer(&[secret]) else { panic!("{secret} was accepted") };
            assert!(error.contains(says), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
        assert!(signer(&[]).unwrap().is_empty());
        assert!(signer(&["  "]).unwrap().is_empty());
    }
}
