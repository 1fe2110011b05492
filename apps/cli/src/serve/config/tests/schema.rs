//! apps/cli/outlive.schema.json: generated from the keys that the reader requests and from
//! docs/outlive-toml.md.

use std::{env, fs};

use serde_json::{Map, Value as Json, json};

use super::{Asked, DEMO, PAGE, SCHEMA, cells, parse_noting};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/outlive.schema.json");

/// Generates the schema from the reader and the documentation page.
fn made() -> Json {
    let mut asked = Asked::default();
    parse_noting(DEMO, &mut asked).expect("is a file");
    let mut tables: Map<String, Json> = Map::new();
    for (section, keys) in &asked.0 {
        tables.insert((*section).to_owned(), table(section, keys.iter()));
    }
    let sections: Vec<&str> = asked.0.keys().copied().filter(|it| !it.is_empty()).collect();
    for section in sections {
        let reference = json!({"$ref": format!("#/$defs/{section}")});
        let place = section.strip_suffix(".NAME").or_else(|| section.strip_suffix(".TOOL"));
        let (place, value) = match place {
            Some(place) => (place, json!({"type": "object", "additionalProperties": reference})),
            None => (section, reference),
        };
        let (parent, key) = place.rsplit_once('.').unwrap_or(("", place));
        let known = &mut tables[parent]["properties"][key];
        // A key with several forms refers to its table itself.
        if known.to_string().contains(&format!("\"#/$defs/{section}\"")) {
            continue;
        }
        let description = known.get("description").cloned();
        *known = value;
        if let Some(description) = description {
            known["description"] = description;
        }
    }
    let mut root = tables.remove("").expect("the file is a table");
    root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    root["title"] = json!("outlive.toml");
    root["$defs"] = Json::Object(tables);
    root
}

fn table<'k>(section: &str, keys: impl Iterator<Item = (&'k &'static str, &'k Json)>) -> Json {
    let rows = if section.is_empty() { Vec::new() } else { cells(section) };
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for (key, schema) in keys {
        let mut schema = schema.clone();
        let row = rows.iter().find(|row| row[0].trim_matches('`') == *key);
        if let Some(row) = row.filter(|row| !row[3].is_empty()) {
            schema["description"] = json!(row[3]);
        }
        if row.is_some_and(|row| row[2] == "needed") {
            required.push(*key);
        }
        properties.insert((*key).to_owned(), schema);
    }
    let mut table =
        json!({"type": "object", "additionalProperties": false, "properties": properties});
    if !required.is_empty() {
        table["required"] = json!(required);
    }
    table
}

#[test]
fn schema_in_the_docs_matches_reader() {
    let made = serde_json::to_string_pretty(&made()).expect("is JSON") + "\n";
    if env::var_os("OUTLIVE_WRITE_SCHEMA").is_some() {
        fs::write(FILE, &made).expect("can be written");
    }
    let there = fs::read_to_string(FILE).expect("is there");
    assert!(
        made == there,
        "apps/cli/outlive.schema.json is out of date; run this test with OUTLIVE_WRITE_SCHEMA=1 to regenerate it"
    );
}

#[test]
fn schema_accepts_examples_and_rejects_mistakes() {
    let made = made();
    let schema = jsonschema::validator_for(&made).expect("is a schema");
    let json = |text: &str| toml::from_str::<Json>(text).expect("is TOML");
    let examples = PAGE.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
    for example in examples.chain([DEMO]) {
        let value = json(example);
        let errors: Vec<String> = schema
            .iter_errors(&value)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{errors:?}:\n{example}");
    }
    for mistake in [
        "[tools.t]\ndescription = \"d\"\ncomand = [\"c\"]\n",
        "[tools.t]\ndescription = \"d\"\ncommand = [\"c\"]\ntimeout = \"soon\"\n",
        "[tools.t]\ndescription = \"d\"\ncommand = [\"c\"]\ntask = \"maybe\"\n",
        "[tools.t]\ndescription = \"d\"\ncommand = [\"c\"]\n[tools.t.arguments.a]\ntype = \"text\"\n",
        "[server]\nport = 1\n",
        "[upstreams.a]\ncommand = \"c\"\n",
        "[upstreams.a]\ncommand = [\"c\"]\ntools.t.tmeout = \"1s\"\n",
        "[gateway]\ndiscovery = \"all\"\n",
        "[tasks]\nmax_running = 0\n",
    ] {
        assert!(!schema.is_valid(&json(mistake)), "{mistake}");
    }
    assert!(SCHEMA.starts_with('{'), "--print-schema must print a JSON object");
}
