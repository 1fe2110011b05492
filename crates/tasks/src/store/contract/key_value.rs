//! Checks of key-value entries.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::bench::{ContractBench, RETENTION, promises, raw};

promises![
    put_if_absent_returns_existing_value,
    concurrent_put_if_absent_has_one_winner,
    key_value_is_read_unchanged,
    put_replaces_value,
    delete_removes_value,
    key_value_is_absent_after_its_ttl,
    put_restarts_the_ttl,
    sweep_keeps_unexpired_key_values,
];

const HOUR: Duration = Duration::from_secs(3600);

impl ContractBench {
    async fn keep(&self, key: &str, note: &Value) -> Option<String> {
        let before = self
            .store
            .put_if_absent(key, raw(note), HOUR, None)
            .await
            .expect("put_if_absent succeeds");
        before.map(|note| note.get().to_owned())
    }

    async fn kept(&self, key: &str) -> Option<String> {
        let note = self.store.get_value(key).await.expect("read succeeds");
        note.map(|note| note.get().to_owned())
    }

    async fn sweep_all(&self) {
        self.store.sweep(100, RETENTION).await.expect("sweep succeeds");
    }
}

async fn put_if_absent_returns_existing_value(bench: ContractBench) {
    assert_eq!(bench.kept("k").await, None);
    assert_eq!(bench.keep("k", &json!("first")).await, None);
    assert_eq!(bench.keep("k", &json!("second")).await.as_deref(), Some("\"first\""));
    assert_eq!(bench.kept("k").await.as_deref(), Some("\"first\""));
    assert_eq!(bench.keep("K", &json!("other")).await, None, "keys are case-sensitive");
}

async fn concurrent_put_if_absent_has_one_winner(bench: ContractBench) {
    let mut keeping = JoinSet::new();
    for number in 0..16 {
        let store = Arc::clone(&bench.store);
        keeping.spawn(async move {
            (
                number,
                store
                    .put_if_absent("k", raw(&json!(number)), HOUR, None)
                    .await
                    .expect("put_if_absent succeeds"),
            )
        });
    }
    let kept = keeping.join_all().await;
    let is_first = |(number, before): &(i32, Option<_>)| before.is_none().then_some(*number);
    let first: Vec<i32> = kept.iter().filter_map(is_first).collect();
    assert_eq!(first.len(), 1, "exactly one caller stores its value");
    let expected = json!(first[0]).to_string();
    let mut others = kept.iter().filter_map(|(_, before)| before.as_ref());
    assert!(others.all(|before| before.get() == expected), "all others get that value");
    assert_eq!(bench.kept("k").await, Some(expected));
}

async fn key_value_is_read_unchanged(bench: ContractBench) {
    let odd = json!({"text": "ü\u{0}\n\"", "big": 18_446_744_073_709_551_615_u64, "f": 0.1});
    let long = json!("x".repeat(100_000));
    for (key, note) in [("ü/#\\ ", &odd), ("long", &long), ("null", &Value::Null)] {
        bench.keep(key, note).await;
        assert_eq!(bench.kept(key).await, Some(note.to_string()));
    }
}

async fn put_replaces_value(bench: ContractBench) {
    for note in [json!(1), json!(2)] {
        bench.store.put("k", raw(&note), HOUR, None).await.expect("put succeeds");
        assert_eq!(bench.kept("k").await, Some(note.to_string()));
    }
    assert_eq!(bench.keep("k", &json!(3)).await.as_deref(), Some("2"));
}

async fn delete_removes_value(bench: ContractBench) {
    bench.keep("k", &json!(1)).await;
    bench.keep("l", &json!(2)).await;
    for _ in 0..2 {
        bench.store.delete("k").await.expect("delete succeeds");
        assert_eq!(bench.kept("k").await, None);
    }
    assert_eq!(bench.kept("l").await.as_deref(), Some("2"));
    assert_eq!(bench.keep("k", &json!(3)).await, None);
}

async fn key_value_is_absent_after_its_ttl(bench: ContractBench) {
    bench.keep("k", &json!(1)).await;
    bench.keep("l", &json!(1)).await;
    bench.advance(HOUR + Duration::from_secs(1));
    // An expired entry is absent even before a sweep.
    assert_eq!(bench.kept("k").await, None);
    assert_eq!(bench.keep("k", &json!(2)).await, None);
    bench.sweep_all().await;
    assert_eq!(bench.kept("k").await.as_deref(), Some("2"), "the new value stays");
    assert_eq!(bench.kept("l").await, None);
}

async fn put_restarts_the_ttl(bench: ContractBench) {
    bench.keep("k", &json!(1)).await;
    bench.advance(HOUR / 2);
    bench.store.put("k", raw(&json!(2)), HOUR, None).await.expect("put succeeds");
    bench.advance(HOUR / 2 + Duration::from_secs(1));
    bench.sweep_all().await;
    assert_eq!(bench.kept("k").await.as_deref(), Some("2"));
    bench.advance(HOUR / 2);
    assert_eq!(bench.kept("k").await, None);
}

async fn sweep_keeps_unexpired_key_values(bench: ContractBench) {
    bench.keep("k", &json!(1)).await;
    bench.advance(HOUR - Duration::from_secs(30));
    bench.sweep_all().await;
    assert_eq!(bench.kept("k").await.as_deref(), Some("1"));
}
