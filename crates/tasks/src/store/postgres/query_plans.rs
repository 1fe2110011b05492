//! Tests that no list scans a table: each statement reads its rows by a key or an index.
//!
//! The plans are those of the store, because they are made with the settings of its connections
//! (`connect.rs`). The statements inside functions are not covered. The same settings forbid a scan
//! for them, too, where an index exists.

use std::{env, process};

use super::{
    audit, bridge,
    connect::{Database, Session},
    delivery, inbox, metric,
    options::PostgresOptions,
    read, schema,
    search::{ALL, BY_OUTCOME, BY_PERSON, BY_TAG, BY_TOOL, ONE, OPEN, Statements},
    timeline,
};

/// Lists of tasks, and the index that each reads from its newest row.
const LISTS: &[(Statements, &str)] = &[
    (BY_TAG, "tag_list"),
    (BY_PERSON, "task_person"),
    (OPEN, "task_open"),
    (BY_OUTCOME, "task_outcome"),
    (BY_TOOL, "task_tool"),
    (ALL, "task_created_at"),
];

/// Other statements of lists, and the index that each reads.
const STATEMENTS: &[(&str, &str)] = &[
    (ONE, "task_pkey"),
    (audit::ALL, "audit_event_pkey"),
    (audit::OF_TASK, "audit_event_task"),
    (bridge::OPEN, "bridged_call_open"),
    (delivery::FAILING, "delivery_failing"),
    (delivery::NEXT, "delivery_due_at"),
    (inbox::DETAIL, "input_request_pkey"),
    (inbox::OPEN, "addressee_inbox"),
    (inbox::COUNT, "addressee_inbox"),
    (inbox::SETTLED, "input_request_denial"),
    (inbox::VOTED, "vote_person"),
    (metric::SINCE, "metric_pkey"),
    (read::LIST, "task_list"),
    (timeline::JOURNAL, "journal_entry_pkey"),
    (timeline::TIMELINE, "journal_entry_pkey"),
];

/// Returns the generic plan of a statement, in lines.
async fn plan(session: &Session, sql: &str) -> Vec<String> {
    let client = &session.client;
    let values = vec!["NULL"; client.prepare(sql).await.unwrap().params().len()].join(", ");
    client.batch_execute(&format!("PREPARE list AS {sql}")).await.unwrap();
    let explain = format!("EXPLAIN (COSTS OFF) EXECUTE list ({values})");
    let lines = client.query(explain.as_str(), &[]).await.unwrap();
    client.batch_execute("DEALLOCATE list").await.unwrap();
    lines.iter().map(|line| line.get(0)).collect()
}

#[tokio::test]
async fn lists_never_scan_a_table() {
    let url = env::var("OUTLIVE_TEST_POSTGRES").unwrap_or_else(|_| {
        panic!("this test needs a database: set OUTLIVE_TEST_POSTGRES, as `cargo xtask test` does")
    });
    let options = PostgresOptions::new().with_schema(format!("plans_{}", process::id()));
    let database = Database::new(&url, options).unwrap();
    let mut session = database.open(|_| {}).await.unwrap();
    schema::migrate(&database, &mut session).await.unwrap();
    for (sql, index) in STATEMENTS {
        let plan = plan(&session, sql).await;
        let reads = format!(" using {index} on ");
        assert!(plan.iter().any(|line| line.contains(&reads)), "{index}: {plan:#?}");
        assert!(!plan.iter().any(|line| line.contains("Seq Scan")), "{index}: {plan:#?}");
    }
    for (statements, index) in LISTS {
        for sql in [statements.page, statements.count] {
            let plan = plan(&session, sql).await;
            // Backward from the position of the cursor, and without a sort below the search.
            let reads = format!("Scan Backward using {index} on ");
            let scan = plan.iter().position(|line| line.contains(&reads));
            let scan = scan.unwrap_or_else(|| panic!("{index}: {plan:#?}"));
            assert!(plan[scan + 1].contains("ROW(created_at, id) < ROW("), "{index}: {plan:#?}");
            let window = plan.iter().position(|line| line.contains("WindowAgg")).unwrap();
            let below = &plan[window..scan];
            assert!(!below.iter().any(|line| line.contains("Sort")), "{index}: {plan:#?}");
            assert!(!plan.iter().any(|line| line.contains("Seq Scan")), "{index}: {plan:#?}");
        }
    }
    let drop = format!("DROP SCHEMA {} CASCADE", database.schema());
    session.client.batch_execute(&drop).await.unwrap();
}
