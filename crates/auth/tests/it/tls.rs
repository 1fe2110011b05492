//! Tests of fetching over TLS, against a server whose certificate is signed by a test authority.
//!
//! `keys/localhost.pem` is valid for `localhost` only. `keys/ca.pem` is the certificate of the
//! authority.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use http::HeaderMap;
use outlive_auth::fetch::{FetchError, FetchErrorKind, Fetcher, NetworkPolicy};
use outlive_transport::client::TransportErrorKind;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    },
};

const AUTHORITY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/keys/ca.pem");
const LOCALHOST: &[u8] = include_bytes!("keys/localhost.pem");

/// Starts a TLS server that counts the requests.
async fn serving() -> (u16, Arc<AtomicUsize>) {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(LOCALHOST).flatten().collect();
    let key = PrivateKeyDer::from_pem_slice(LOCALHOST).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .unwrap();
    let (acceptor, asked) = (TlsAcceptor::from(Arc::new(config)), Arc::new(AtomicUsize::new(0)));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (port, count) = (listener.local_addr().unwrap().port(), Arc::clone(&asked));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            // The handshake may succeed on this side although the client rejects it.
            let mut bytes = vec![0; 4096];
            let Ok(1..) = stream.read(&mut bytes).await else { continue };
            count.fetch_add(1, Ordering::SeqCst);
            let body = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 7\r\n\r\n{\"a\":1}";
            let _ = stream.write_all(body.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    (port, asked)
}

fn is_of_tls(error: &FetchError) -> bool {
    matches!(error.kind(), FetchErrorKind::Transport(error) if *error.kind() == TransportErrorKind::Tls)
}

#[tokio::test]
async fn server_with_a_trusted_certificate_is_accepted() {
    let (port, asked) = serving().await;
    let fetch = Fetcher::new().network_policy(NetworkPolicy::Local).ca_file(AUTHORITY);
    let fetched = fetch.get(&format!("https://localhost:{port}/d"), HeaderMap::new()).await;
    assert_eq!(fetched.unwrap().json::<Value>().unwrap(), json!({"a": 1}));
    let form = [("secret", "hush")];
    let sent =
        fetch.post_form(&format!("https://localhost:{port}/f"), HeaderMap::new(), form).await;
    assert_eq!(sent.unwrap().status, 200);
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

// ACL-24, ACL-33
#[tokio::test]
async fn server_with_an_untrusted_certificate_receives_no_request() {
    let (port, asked) = serving().await;
    let trusting = || Fetcher::new().network_policy(NetworkPolicy::Local).ca_file(AUTHORITY);
    // A host name that is not in the certificate, and an authority that is not trusted.
    for (fetch, host) in [
        (trusting(), "127.0.0.1"),
        (Fetcher::new().network_policy(NetworkPolicy::Local), "localhost"),
    ] {
        let url = format!("https://{host}:{port}/f?q=hush");
        let refused = fetch.post_form(&url, HeaderMap::new(), [("secret", "hush")]).await;
        let refused = refused.unwrap_err();
        assert!(is_of_tls(&refused), "{refused}");
        assert!(refused.to_string().contains("certificate"), "{refused}");
        assert!(!refused.to_string().contains("hush"), "{refused}");
    }
    // A file without certificates is an error.
    let fetch = Fetcher::new().network_policy(NetworkPolicy::Local).ca_file(file!());
    assert!(fetch.get(&format!("https://localhost:{port}/"), HeaderMap::new()).await.is_err());
    // TLS does not lift the network policy.
    let fetch = Fetcher::new().ca_file(AUTHORITY);
    let refused = fetch.get(&format!("https://localhost:{port}/"), HeaderMap::new()).await;
    assert!(refused.unwrap_err().refused_address().is_some());
    // A TLS server is not sent a plain HTTP request that it accepts.
    let refused = Fetcher::new().get(&format!("http://127.0.0.1:{port}/"), HeaderMap::new()).await;
    assert!(refused.is_err());
    assert_eq!(asked.load(Ordering::SeqCst), 0, "no request is expected");
}
