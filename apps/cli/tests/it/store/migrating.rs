//! Other schema versions: only `migrate` changes them.

use serde_json::json;
use tokio_postgres::NoTls;

use super::{Folder, Place, err, fine, lines, out, outlive};

/// Overwrites the schema version of a store.
async fn set_version(place: &Place, version: u32) {
    if place.url.starts_with("sqlite:") {
        let file = place.folder.0.join("tasks.db");
        let mut bytes = std::fs::read(&file).unwrap();
        // Offset of `user_version` in the file format of SQLite.
        bytes[60..64].copy_from_slice(&version.to_be_bytes());
        std::fs::write(&file, bytes).unwrap();
        return;
    }
    let (client, connection) = tokio_postgres::connect(&place.url, NoTls).await.unwrap();
    tokio::spawn(connection);
    let set = format!("UPDATE outlive.schema_version SET number = {version}");
    client.batch_execute(&set).await.unwrap();
}

#[tokio::test]
async fn migrate_creates_store_and_then_reports_up_to_date() {
    for place in Place::both().await {
        let check = place.run("migrate", &["--check"]);
        assert_eq!(check.status.code(), Some(1), "a migration is necessary");
        assert!(out(&check).contains("no tables"));
        let made = &lines(&place.run("migrate", &["--json"]))[0];
        assert_eq!((&made["from"], &made["migrated"]), (&json!(null), &json!(true)));
        let known = made["to"].as_u64().unwrap();
        let again = fine(&place.run("migrate", &[]));
        assert_eq!(again, format!("version {known}: up to date\n"));
        assert_eq!(fine(&place.run("migrate", &["--check"])), again);
    }
}

#[tokio::test]
async fn stores_of_other_schema_versions_are_rejected() {
    for place in Place::both().await {
        fine(&place.run("migrate", &[]));
        set_version(&place, 99).await;
        for (command, args) in [("migrate", vec![]), ("list", vec![]), ("purge", vec!["t"])] {
            let refused = place.run(command, &args);
            assert_eq!(refused.status.code(), Some(1), "{command}");
            assert!(err(&refused).contains("version 99"), "{}", err(&refused));
            assert!(err(&refused).contains("upgrade this program"), "{}", err(&refused));
        }
        set_version(&place, 0).await;
        for (command, args) in [("migrate", vec![]), ("list", vec![]), ("retry", vec!["t"])] {
            let refused = place.run(command, &args);
            assert_eq!(refused.status.code(), Some(3), "{command}");
            assert!(err(&refused).contains("created by a pre-release"), "{}", err(&refused));
        }
    }
}

#[tokio::test]
async fn only_store_in_data_folder_needs_no_url() {
    let folder = Folder::new();
    let run = |args: &[&str]| outlive(&folder.0, args);
    fine(&run(&["store", "migrate"]));
    assert!(folder.0.join("tasks.db").exists());
    fine(&run(&["store", "list"]));
    // Each server has a separate folder.
    let server = folder.0.join("servers/demo");
    std::fs::create_dir_all(&server).unwrap();
    let url = format!("sqlite:{}", server.join("tasks.db").display());
    fine(&run(&["store", "migrate", &url]));
    let several = run(&["store", "list"]);
    assert_eq!(several.status.code(), Some(2));
    assert!(err(&several).contains(&url), "{}", err(&several));
    std::fs::remove_file(folder.0.join("tasks.db")).unwrap();
    fine(&run(&["store", "list"]));
}

#[test]
fn invalid_store_url_is_reported_without_password() {
    let folder = Folder::new();
    std::fs::write(folder.0.join("diary"), "dear diary, ".repeat(1_000)).unwrap();
    let diary = format!("sqlite:{}", folder.0.join("diary").display());
    for (url, code, says) in [
        (diary.as_str(), 3, "use another file"),
        ("redis://localhost", 3, "`sqlite:path/to/file`"),
        ("memory:", 2, "inside its server's process"),
        ("postgres://ada:hunter2@127.0.0.1:1/d", 3, "check"),
    ] {
        let refused = outlive(&folder.0, &["store", "list", url]);
        assert_eq!(refused.status.code(), Some(code), "{url}: {}", err(&refused));
        assert!(err(&refused).contains(says), "{url}: {}", err(&refused));
        assert!(!err(&refused).contains("hunter2"));
    }
}
