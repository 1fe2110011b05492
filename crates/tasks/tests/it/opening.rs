//! Opening and probing stores by URL.

use outlive_tasks::store::{StoreError, StoreKind, open, probe};

#[tokio::test]
async fn url_of_each_kind_opens_its_store() {
    let folder = std::env::temp_dir().join(format!("outlive-open-{}", std::process::id()));
    let file = folder.join("tasks.db");
    for url in ["memory:".to_owned(), format!("sqlite:{}", file.display())] {
        let store = open(&url).await.unwrap_or_else(|error| panic!("{url}: {error}"));
        assert_eq!(store.stats().await.unwrap().queued, 0);
    }
    assert!(file.exists());
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn invalid_url_is_rejected_with_remedy() {
    for (url, says) in [
        ("", "`sqlite:path/to/file`"),
        ("tasks.db", "`sqlite:path/to/file`"),
        ("memory:x", "`memory:`"),
        ("sqlite:", "path/to/tasks.db"),
        ("redis://localhost", "`postgres://user@host/database`"),
    ] {
        match open(url).await.map(drop) {
            Err(StoreError::Unavailable(why)) => assert!(why.contains(says), "{url}: {why}"),
            other => panic!("{url}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn probe_creates_and_changes_nothing() {
    let folder = std::env::temp_dir().join(format!("outlive-probe-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("tasks.db");
    let url = format!("sqlite:{}", file.display());
    let absent = probe(&url).await.unwrap();
    assert_eq!((absent.product, absent.tables), (StoreKind::Sqlite, None));
    assert!(!file.exists());
    drop(open(&url).await.unwrap());
    let there = probe(&url).await.unwrap();
    assert_eq!(there.tables, Some(there.known));
    let by_hand = rusqlite::Connection::open(&file).unwrap();
    by_hand.execute_batch("PRAGMA user_version = 99").unwrap();
    for _ in 0..2 {
        assert_eq!(
            probe(&url).await.unwrap().tables,
            Some(99),
            "the file has a newer schema version"
        );
    }
    by_hand.execute_batch("PRAGMA user_version = 0").unwrap();
    let older = probe(&url).await;
    assert!(matches!(&older, Err(StoreError::Incompatible(what)) if what.contains("pre-release")));
    std::fs::write(folder.join("diary"), "dear diary, ".repeat(1_000)).unwrap();
    let diary = probe(&format!("sqlite:{}", folder.join("diary").display())).await;
    assert!(matches!(diary, Err(StoreError::Incompatible(_))), "{diary:?}");
    std::fs::remove_dir_all(folder).unwrap();
}
