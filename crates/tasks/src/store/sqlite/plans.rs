//! No statement looks through a table: each finds its rows by a key or an index, however many tasks
//! there are.

use rusqlite::Connection;

use super::{
    answering, auditing, change_log, claiming, creating, ending, journal, notes, open_tasks,
    operating, questions, schema, tally, viewing, writing,
};

const STATEMENTS: &[&str] = &[
    answering::OWNED,
    answering::ANSWERED,
    auditing::RECORD,
    auditing::DROP,
    auditing::OF_ALL,
    auditing::OF_ONE,
    auditing::SWEEP,
    change_log::APPEND,
    change_log::DROP,
    change_log::SINCE,
    claiming::DUE,
    claiming::WANTED,
    claiming::NEXT_DUE_EXCEPT,
    claiming::TAKE,
    claiming::POSTPONE,
    claiming::RENEW,
    claiming::RELEASE,
    claiming::NEXT_OWNER,
    claiming::END_LEASES,
    claiming::NEXT_DUE,
    claiming::HELD,
    creating::MADE_UNDER,
    creating::OWNER_OF,
    creating::INSERT,
    creating::INSERT_REQUEST,
    ending::END,
    ending::END_UNFINISHED,
    ending::CLEAN_UP,
    ending::ASK_TO_STOP,
    ending::OLD,
    ending::MEASURE,
    ending::PURGE,
    ending::EXPIRED,
    journal::RECORD,
    journal::BYTES,
    journal::HAS_SEGMENT,
    journal::FORGET,
    journal::EMIT,
    journal::LAST,
    journal::ENTRIES,
    journal::SEGMENTS,
    journal::ANSWERS,
    journal::COUNT_ANSWERS,
    notes::KEPT,
    notes::THERE,
    notes::REPLACE,
    notes::FORGET,
    notes::SWEEP,
    operating::ONE,
    operating::REQUEST,
    operating::QUESTIONS,
    operating::RETRY,
    operating::PHASE,
    open_tasks::COUNTED,
    open_tasks::COUNT,
    open_tasks::FORGET,
    questions::ASK,
    questions::WITHDRAW,
    questions::WITHDRAW_ALL,
    questions::ANSWER,
    questions::OPEN_KEY,
    questions::BYTES,
    questions::LIFETIME,
    questions::SETTLE,
    questions::OPEN_KEYS,
    questions::AGAIN,
    tally::COUNT,
    tally::COUNTED,
    tally::READY,
    viewing::VIEW,
    viewing::LAST_EMITTED,
    viewing::EMITTED,
    viewing::LIST,
    writing::HELD,
    writing::TOUCH,
    writing::FORGET_CRASHES,
    writing::IS_TO_STOP,
    writing::PARK,
    writing::KEEP,
];

fn tables() -> Connection {
    let mut connection = Connection::open_in_memory().unwrap();
    schema::migrate(&mut connection).unwrap();
    connection
}

fn plan(connection: &Connection, sql: &str) -> Vec<String> {
    let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    // Its parameters stay unset: nothing is run.
    let mut lines = statement.raw_query();
    let mut plan = Vec::new();
    while let Some(line) = lines.next().unwrap() {
        plan.push(line.get(3).unwrap());
    }
    plan
}

#[test]
fn no_statement_looks_through_a_table() {
    let connection = tables();
    for sql in STATEMENTS {
        for line in plan(&connection, sql) {
            // A list in JSON is looked through, and so it should be.
            let scans = line.starts_with("SCAN") && !line.contains("VIRTUAL TABLE");
            assert!(!scans, "{sql}: {line}");
        }
    }
}

#[test]
fn every_index_is_there_for_a_statement() {
    let connection = tables();
    let plans: Vec<String> =
        STATEMENTS.iter().flat_map(|sql| plan(&connection, sql)).collect::<Vec<_>>();
    let indexes = "SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL";
    let mut statement = connection.prepare(indexes).unwrap();
    for index in statement.query_map([], |row| row.get::<_, String>(0)).unwrap() {
        let index = format!("INDEX {} ", index.unwrap());
        assert!(plans.iter().any(|line| format!("{line} ").contains(&index)), "{index}");
    }
}
