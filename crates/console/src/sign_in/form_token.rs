//! Form tokens: a form works only in the session and at the path for which its page was rendered.

use std::time::Duration;

use outlive::people::{Purpose, Vault};

/// Time for which a form can be submitted. Text that a person types for hours is not lost.
const LIFETIME: Duration = Duration::from_secs(43_200);

/// Name of the field with the token.
pub(crate) const FIELD: &str = "form_token";

/// Returns a token for forms that a page of a session submits to `path`.
pub(crate) fn create(vault: &Vault, session: &str, path: &str) -> String {
    let lifetime = u64::try_from(LIFETIME.as_millis()).unwrap_or(u64::MAX);
    let expires_at = vault.now().saturating_add(lifetime).to_le_bytes();
    // Without random bytes the token is empty, and the server rejects the form.
    vault.seal(Purpose::FormToken, &[session, path], &expires_at).unwrap_or_default()
}

/// Returns whether a token is valid for a session and a path.
pub(crate) fn is_valid(vault: &Vault, session: &str, path: &str, token: &str) -> bool {
    let opened = vault.unseal(Purpose::FormToken, &[session, path], token);
    let expires_at = opened.and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes);
    expires_at.is_some_and(|expires_at| vault.now() < expires_at)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use outlive::{people::Vault, server::SealKeys, store::MemoryStore};

    use super::{create, is_valid};

    #[test]
    fn token_is_valid_only_for_its_session_path_and_keys() {
        let vault = |key| Vault::open(Arc::new(MemoryStore::new()), SealKeys::new([key; 32]));
        let (one, other) = (vault(1), vault(2));
        let token = create(&one, "s", "tasks/1");
        assert!(is_valid(&one, "s", "tasks/1", &token));
        assert!(!is_valid(&one, "t", "tasks/1", &token));
        assert!(!is_valid(&one, "s", "tasks/2", &token));
        assert!(!is_valid(&other, "s", "tasks/1", &token));
        assert!(!is_valid(&one, "s", "tasks/1", ""));
        for at in 0..token.len() {
            let mut changed = token.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).expect("is ASCII");
            assert!(!is_valid(&one, "s", "tasks/1", &changed), "byte {at}");
        }
    }
}
