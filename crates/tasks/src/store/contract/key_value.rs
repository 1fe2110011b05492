//! Notes that are no tasks.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::bench::{ContractBench, RETENTION, promises, raw};

promises![
    a_note_that_is_there_stays_and_is_given_back,
    of_many_who_keep_at_once_one_is_the_first,
    a_note_is_there_as_it_was_written,
    a_note_is_replaced,
    a_note_is_forgotten,
    a_note_is_gone_when_its_time_is_over,
    a_note_that_is_replaced_has_its_time_anew,
    a_sweep_takes_no_note_before_its_time,
];

const HOUR: Duration = Duration::from_secs(3600);

impl ContractBench {
    async fn keep(&self, key: &str, note: &Value) -> Option<String> {
        let before =
            self.store.put_if_absent(key, raw(note), HOUR, None).await.expect("a note is kept");
        before.map(|note| note.get().to_owned())
    }

    async fn kept(&self, key: &str) -> Option<String> {
        let note = self.store.get_value(key).await.expect("a look");
        note.map(|note| note.get().to_owned())
    }

    async fn sweep_all(&self) {
        self.store.sweep(100, RETENTION).await.expect("a sweep");
    }
}

async fn a_note_that_is_there_stays_and_is_given_back(bench: ContractBench) {
    assert_eq!(bench.kept("k").await, None);
    assert_eq!(bench.keep("k", &json!("first")).await, None);
    assert_eq!(bench.keep("k", &json!("second")).await.as_deref(), Some("\"first\""));
    assert_eq!(bench.kept("k").await.as_deref(), Some("\"first\""));
    assert_eq!(bench.keep("K", &json!("other")).await, None, "another key");
}

async fn of_many_who_keep_at_once_one_is_the_first(bench: ContractBench) {
    let mut keeping = JoinSet::new();
    for number in 0..16 {
        let store = Arc::clone(&bench.store);
        keeping.spawn(async move {
            (
                number,
                store
                    .put_if_absent("k", raw(&json!(number)), HOUR, None)
                    .await
                    .expect("a note is kept"),
            )
        });
    }
    let kept = keeping.join_all().await;
    let is_first = |(number, before): &(i32, Option<_>)| before.is_none().then_some(*number);
    let first: Vec<i32> = kept.iter().filter_map(is_first).collect();
    assert_eq!(first.len(), 1, "one of them is told that there was none");
    let expected = json!(first[0]).to_string();
    let mut others = kept.iter().filter_map(|(_, before)| before.as_ref());
    assert!(others.all(|before| before.get() == expected), "all others have its note");
    assert_eq!(bench.kept("k").await, Some(expected));
}

async fn a_note_is_there_as_it_was_written(bench: ContractBench) {
    let odd = json!({"text": "ü\u{0}\n\"", "big": 18_446_744_073_709_551_615_u64, "f": 0.1});
    let long = json!("x".repeat(100_000));
    for (key, note) in [("ü/#\\ ", &odd), ("long", &long), ("null", &Value::Null)] {
        bench.keep(key, note).await;
        assert_eq!(bench.kept(key).await, Some(note.to_string()));
    }
}

async fn a_note_is_replaced(bench: ContractBench) {
    for note in [json!(1), json!(2)] {
        bench.store.put("k", raw(&note), HOUR, None).await.expect("a note is replaced");
        assert_eq!(bench.kept("k").await, Some(note.to_string()));
    }
    assert_eq!(bench.keep("k", &json!(3)).await.as_deref(), Some("2"));
}

async fn a_note_is_forgotten(bench: ContractBench) {
    bench.keep("k", &json!(1)).await;
    bench.keep("l", &json!(2)).await;
    for _ in 0..2 {
        bench.store.delete("k").await.expect("a note is forgotten");
        assert_eq!(bench.kept("k").await, None);
    }
    assert_eq!(bench.kept("l").await.as_deref(), Some("2"));
    assert_eq!(bench.keep("k", &json!(3)).await, None);
}

async fn a_note_is_gone_when_its_time_is_over(bench: ContractBench) {
    bench.keep("k", &json!(1)).await;
    bench.keep("l", &json!(1)).await;
    bench.advance(HOUR + Duration::from_secs(1));
    // Whether or not somebody has swept.
    assert_eq!(bench.kept("k").await, None);
    assert_eq!(bench.keep("k", &json!(2)).await, None);
    bench.sweep_all().await;
    assert_eq!(bench.kept("k").await.as_deref(), Some("2"), "what came after it stays");
    assert_eq!(bench.kept("l").await, None);
}

async fn a_note_that_is_replaced_has_its_time_anew(bench: ContractBench) {
    bench.keep("k", &json!(1)).await;
    bench.advance(HOUR / 2);
    bench.store.put("k", raw(&json!(2)), HOUR, None).await.expect("a note is replaced");
    bench.advance(HOUR / 2 + Duration::from_secs(1));
    bench.sweep_all().await;
    assert_eq!(bench.kept("k").await.as_deref(), Some("2"));
    bench.advance(HOUR / 2);
    assert_eq!(bench.kept("k").await, None);
}

async fn a_sweep_takes_no_note_before_its_time(bench: ContractBench) {
    bench.keep("k", &json!(1)).await;
    bench.advance(HOUR - Duration::from_secs(30));
    bench.sweep_all().await;
    assert_eq!(bench.kept("k").await.as_deref(), Some("1"));
}
