//! Tests that no statement scans a table: each finds its rows by a key or an index.

use rusqlite::Connection;

use super::{
    abandon, addressee, audit, bridge, change_log, claim, commit, create, decide, delivery, end,
    inbox, input_request, input_store, journal, key_value, metric, operator_store, phase_counts,
    principal_quota, read, respond, result_part, schema, search, sweep, tag, timeline, vote,
};

const STATEMENTS: &[&str] = &[
    respond::OWNED,
    respond::ANSWERED,
    abandon::NEXT_ATTENDANT,
    abandon::LOSE,
    abandon::DUE,
    abandon::RESTART,
    abandon::STOP,
    audit::RECORD,
    audit::DROP,
    audit::OF_ALL,
    audit::OF_ONE,
    audit::SWEEP,
    bridge::INSERT,
    bridge::EQUAL,
    bridge::FIND,
    bridge::SAVE,
    bridge::ACKNOWLEDGE,
    bridge::DELIVER,
    bridge::LIMIT_RETENTION,
    bridge::OPEN,
    bridge::DELIVERED,
    change_log::APPEND,
    change_log::DROP,
    change_log::SINCE,
    claim::DUE,
    claim::WANTED,
    claim::NEXT_DUE_EXCEPT,
    claim::TAKE,
    claim::POSTPONE,
    claim::RENEW,
    claim::RELEASE,
    claim::NEXT_OWNER,
    claim::END_LEASES,
    claim::NEXT_DUE,
    claim::HELD,
    create::MADE_UNDER,
    create::OWNER_OF,
    create::INSERT,
    create::INSERT_REQUEST,
    end::END,
    end::END_UNFINISHED,
    end::CLEAN_UP,
    end::ASK_TO_STOP,
    end::MEASURE,
    end::PURGE,
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
    key_value::KEPT,
    key_value::THERE,
    key_value::REPLACE,
    key_value::FORGET,
    key_value::SWEEP,
    key_value::STARTING_WITH,
    operator_store::ONE,
    operator_store::REQUEST,
    operator_store::QUESTIONS,
    operator_store::RETRY,
    operator_store::PHASE,
    principal_quota::COUNTED,
    principal_quota::COUNT,
    principal_quota::FORGET,
    input_request::OPEN,
    input_store::OPEN_INPUT,
    input_request::WITHDRAW,
    input_request::WITHDRAW_ALL,
    input_request::RESOLVE,
    input_request::OPEN_KEY,
    input_request::BYTES,
    input_request::LIFETIME,
    input_request::UPDATE_TASK,
    input_request::OPEN_KEYS,
    input_request::REISSUE_COUNTS,
    phase_counts::COUNT,
    phase_counts::COUNTED,
    phase_counts::READY,
    read::VIEW,
    result_part::INSERT,
    result_part::READ,
    result_part::MEASURE,
    result_part::DELETE,
    read::LAST_EMITTED,
    read::EMITTED,
    read::LIST,
    commit::HELD,
    commit::TOUCH,
    commit::FORGET_CRASHES,
    commit::IS_TO_STOP,
    commit::PARK,
    commit::KEEP,
    sweep::OLD,
    sweep::EXPIRED,
    addressee::INSERT,
    addressee::DELETE,
    decide::BALLOT,
    decide::SETTLE,
    delivery::INSERT,
    delivery::DUE,
    delivery::LEASE,
    delivery::SENT,
    delivery::FAILED,
    delivery::NEXT,
    delivery::FAILING,
    delivery::AGAIN,
    delivery::SWEEP,
    delivery::ENDS,
    delivery::DROP,
    inbox::ADDRESSED,
    inbox::COUNT,
    inbox::SETTLED,
    inbox::VOTED,
    inbox::DETAIL,
    metric::COUNTS,
    metric::SAVE,
    metric::SINCE,
    metric::OLD,
    metric::MERGED,
    metric::SWEEP,
    search::BY_TAG,
    search::BY_PERSON,
    search::BY_PHASE,
    search::BY_INPUT,
    search::BY_OUTCOME,
    search::BY_TOOL,
    search::BY_NUMBER,
    search::FETCH,
    search::ONE,
    search::NUMBER,
    search::CURSOR,
    search::ENDS,
    search::NEXT,
    tag::INSERT,
    tag::DELETE,
    tag::TAGS,
    tag::SAVE,
    timeline::CREATED,
    timeline::ENTRIES,
    timeline::TIMES,
    vote::INSERT,
    vote::DELETE,
];

fn tables() -> Connection {
    let mut connection = Connection::open_in_memory().unwrap();
    schema::migrate(&mut connection).unwrap();
    connection
}

fn plan(connection: &Connection, sql: &str) -> Vec<String> {
    let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    // The parameters stay unset, because `EXPLAIN` does not execute the statement.
    let mut lines = statement.raw_query();
    let mut plan = Vec::new();
    while let Some(line) = lines.next().unwrap() {
        plan.push(line.get(3).unwrap());
    }
    plan
}

#[test]
fn statements_never_scan_a_table() {
    let connection = tables();
    for sql in STATEMENTS {
        for line in plan(&connection, sql) {
            // A scan of a JSON list is intended. A constant row and a subquery are not tables.
            let is_table = !["VIRTUAL TABLE", "CONSTANT ROW", "(subquery"]
                .iter()
                .any(|other| line.contains(other));
            let scans = line.starts_with("SCAN") && is_table;
            assert!(!scans, "{sql}: {line}");
        }
    }
}

#[test]
fn every_index_is_used_by_a_statement() {
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
