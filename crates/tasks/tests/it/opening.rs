//! Stores by URL.

use outlive_tasks::store::{StoreError, open};

#[tokio::test]
async fn a_url_names_a_store() {
    let folder = std::env::temp_dir().join(format!("outlive-open-{}", std::process::id()));
    let file = folder.join("tasks.db");
    for url in ["memory:".to_owned(), format!("sqlite:{}", file.display())] {
        let store = open(&url).await.unwrap_or_else(|error| panic!("{url}: {error}"));
        assert_eq!(store.census().await.unwrap().queued, 0);
    }
    assert!(file.exists());
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn what_names_none_is_refused_with_what_to_write() {
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
