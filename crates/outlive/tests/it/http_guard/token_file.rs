//! Principals and tokens from a file, and the errors for an invalid file.

use std::{
    path::PathBuf,
    sync::atomic::{AtomicUsize, Ordering},
};

use outlive::server::http::{HttpConfig, StaticTokens};
use serde_json::json;

use crate::support::http::{HttpFixture, Request};

/// A temporary file, deleted on drop.
struct TokenFile(PathBuf);

impl TokenFile {
    fn new(text: &str) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!(
            "outlive-tokens-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).unwrap();
        Self(path)
    }
}

impl Drop for TokenFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[tokio::test]
async fn token_file_line_authenticates_principal() {
    let file = TokenFile::new(
        "# who may come in\n\nanna annas-token-0123456789\n  bert\tberts-token-0123456789  \r\n# cleo cleos-token-0123456789\n",
    );
    let tokens = StaticTokens::from_file(&file.0).unwrap();
    let shown = format!("{tokens:?}");
    assert!(shown.contains('2') && !shown.contains("token-0123456789"), "{shown}");
    let server = HttpFixture::with(HttpConfig::new().authenticator(tokens)).await;
    let call = Request::call("whoami", json!({}));
    for name in ["anna", "bert"] {
        assert_eq!(
            server.send(call.clone().bearer(&format!("{name}s-token-0123456789"))).await.text(),
            name
        );
    }
    assert_eq!(server.send(call.bearer("cleos-token-0123456789")).await.status(), 401);
}

#[tokio::test]
async fn deciding_token_at_mcp_endpoint_is_rejected() {
    let file =
        TokenFile::new("anna annas-token-0123456789\nanna annas-decides-0123456789\tdecide\n");
    let tokens = StaticTokens::from_file(&file.0).unwrap();
    let server = HttpFixture::with(HttpConfig::new().authenticator(tokens)).await;
    let call = Request::call("whoami", json!({}));
    let plain = server.send(call.clone().bearer("annas-token-0123456789")).await;
    assert_eq!(plain.text(), "anna");
    let deciding = server.send(call.bearer("annas-decides-0123456789")).await;
    let (status, _, body) = deciding.without_date();
    assert_eq!(status, 401);
    assert!(body.contains("decides in the console"), "{body}");
}

#[test]
fn invalid_token_file_line_fails_with_line_and_remedy() {
    for (text, line, words) in [
        ("anna\n", 1, "has no token"),
        ("# fine\n\nanna annas-token-0123456789\nbert\n", 4, "has no token"),
        ("anna short\n", 1, "fewer than 16 characters"),
        ("anna annas-token-0123456789 with spaces\n", 1, "more words than a token"),
        ("anna annas-token-0123456789 decides\n", 1, "more words than a token"),
        ("anna annas-token-0123456789 decide now\n", 1, "more words than a token"),
        ("anna annas-token-0123456789\nanna annas-token-0123456789 decide\n", 2, "another purpose"),
        ("anna annas-token-0123456789\nbert annas-token-0123456789\n", 2, "another name"),
    ] {
        let file = TokenFile::new(text);
        let error = StaticTokens::from_file(&file.0).unwrap_err().to_string();
        let place = format!("{}:{line} ", file.0.display());
        assert!(error.starts_with(&place), "{error}");
        assert!(
            error.contains(words)
                && error.ends_with("write one `name token` or `name token decide` per line"),
            "{error}"
        );
        // Error messages contain no tokens, not even invalid ones.
        assert!(!error.contains("short") && !error.contains("annas"), "{error}");
    }
}

#[test]
fn unreadable_token_file_fails_with_path_and_cause() {
    let missing = std::env::temp_dir().join("outlive-tokens-that-nobody-wrote");
    let error = StaticTokens::from_file(&missing).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with(&format!("could not read the token file {}: ", missing.display()))
    );
    assert!(std::error::Error::source(&error).is_some());
}
