//! Addresses that a webhook must not reach (SSRF).

use outlive::deliveries::{
    DeliveryTransport, Message, NetworkPolicy, SendError, TaskEvent, Webhook,
};

use super::receiver::{Receiver, SECRET};

fn message() -> Message {
    Message::new("m1", TaskEvent::TaskEnded, 1, "{}".to_owned())
}

/// Checks that a webhook is rejected when the server is built, or before it connects.
async fn check_rejected(url: &str, network: NetworkPolicy) {
    let webhook = Webhook::new(url).secret(SECRET).network(network);
    if webhook.check().is_err() {
        return;
    }
    match webhook.send(&message()).await {
        Err(SendError::Failed(reason)) => {
            let reasons = ["network policy", "invalid dns name"];
            assert!(reasons.iter().any(|known| reason.contains(known)), "{url}: {reason}");
        }
        other => panic!("{url}: {other:?}"),
    }
}

#[tokio::test]
async fn public_webhook_reaches_no_other_address() {
    for url in [
        // Without TLS.
        "http://example.com/hook",
        "http://8.8.8.8/hook",
        // Other schemes, credentials, no host.
        "ftp://example.com/hook",
        "file:///etc/passwd",
        "https://user:password@example.com/hook",
        "https:///hook",
        "example.com/hook",
        // Loopback, in all spellings.
        "https://127.0.0.1/hook",
        "https://127.1/hook",
        "https://2130706433/hook",
        "https://0x7f000001/hook",
        "https://0177.0.0.1/hook",
        "https://localhost/hook",
        "https://[::1]/hook",
        "https://[::ffff:127.0.0.1]/hook",
        "https://[::ffff:7f00:1]/hook",
        "https://0.0.0.0/hook",
        "https://[::]/hook",
        // Private networks and carrier-grade NAT.
        "https://10.0.0.1/hook",
        "https://172.16.0.1/hook",
        "https://192.168.1.1/hook",
        "https://100.64.0.1/hook",
        "https://[fd12::1]/hook",
        // Link-local: credentials of clouds.
        "https://169.254.169.254/latest/meta-data",
        "https://[fe80::1]/hook",
        "https://[fd00:ec2::254]/hook",
        "https://[::ffff:169.254.169.254]/hook",
        // IPv4 addresses inside IPv6 ones.
        "https://[64:ff9b::a9fe:a9fe]/hook",
        "https://[64:ff9b::7f00:1]/hook",
        "https://[2002:7f00:1::]/hook",
        "https://[2002:a00:1::]/hook",
        // Reserved, multicast, broadcast, documentation.
        "https://192.0.2.1/hook",
        "https://198.18.0.1/hook",
        "https://224.0.0.1/hook",
        "https://240.0.0.1/hook",
        "https://255.255.255.255/hook",
        "https://[ff02::1]/hook",
        "https://[2001:db8::1]/hook",
    ] {
        check_rejected(url, NetworkPolicy::Public).await;
    }
}

#[tokio::test]
async fn local_webhook_reaches_local_addresses_and_no_link_local_one() {
    for url in [
        "http://169.254.169.254/latest/meta-data",
        "http://[fe80::1]/hook",
        "http://[fd00:ec2::254]/hook",
        "http://[::ffff:169.254.169.254]/hook",
        "http://[64:ff9b::a9fe:a9fe]/hook",
        "http://0.0.0.0/hook",
        "http://224.0.0.1/hook",
        "http://255.255.255.255/hook",
        "ftp://127.0.0.1/hook",
    ] {
        check_rejected(url, NetworkPolicy::Local).await;
    }
    let receiver = Receiver::start([]).await;
    receiver.webhook().send(&message()).await.unwrap();
    assert_eq!(receiver.received().len(), 1);
}
