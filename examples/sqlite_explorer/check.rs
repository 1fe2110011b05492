//! The database can be looked at and not be changed.

use anyhow::Result;
use serde_json::json;

use crate::client::{Client, expect};

pub(crate) fn check(client: &mut Client) -> Result<()> {
    let schema = client.call("resources/read", json!({"uri": "schema://main"}))?;
    assert!(
        schema["contents"][0]["text"]
            .as_str()
            .is_some_and(|text| text.contains("CREATE TABLE planet")),
        "{schema}"
    );

    let query = |sql: &str| json!({"name": "query", "arguments": {"sql": sql}});
    let rows = client.call(
        "tools/call",
        query("SELECT name, moons FROM planet WHERE moons > 0 ORDER BY moons"),
    )?;
    expect(
        &rows["structuredContent"],
        &json!({"columns": ["name", "moons"], "rows": [["Earth", 1], ["Mars", 2]], "truncated": false}),
    )?;

    for sql in ["DELETE FROM planet", "SELEKT 1"] {
        let failed = client.call("tools/call", query(sql))?;
        expect(&failed["isError"], &json!(true))?;
    }
    let count = client.call("tools/call", query("SELECT count(*) FROM planet"))?;
    expect(&count["structuredContent"]["rows"], &json!([[3]]))
}
