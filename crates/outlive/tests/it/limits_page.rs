//! docs/limits.md matches the defaults in the code.

use std::{collections::BTreeMap, fmt::Debug, fs, path::Path};

use outlive::{
    client::ClientLimits,
    server::{
        Limits,
        approve::Approve,
        hosts::Hosts,
        http::HttpConfig,
        tasks::{EngineConfig, TaskConfig},
    },
    store::SqliteOptions,
};

/// Defaults by name, from the `Debug` output of a struct or from the page.
type Table = BTreeMap<String, String>;

#[test]
fn limits_page_matches_defaults() {
    let page = read("docs/limits.md");
    check(&page, "`Limits`", &Limits::default());
    check(&page, "`HttpConfig`", &HttpConfig::default());
    check(&page, "`ClientLimits`", &ClientLimits::default());
    check(&page, "`TaskConfig`", &TaskConfig::in_memory());
    check(&page, "`Hosts`", &Hosts::known());
    check(&page, "`Approve`", &Approve::caller());
    check(&page, "`EngineConfig`", &EngineConfig::default());
    check(&page, "`SqliteOptions`", &SqliteOptions::default());
}

#[cfg(feature = "postgres")]
#[test]
fn limits_page_matches_postgres_defaults() {
    let defaults = outlive::store::PostgresOptions::default();
    check(&read("docs/limits.md"), "`PostgresOptions`", &defaults);
}

#[cfg(feature = "auth")]
#[test]
fn limits_page_matches_resource_server_defaults() {
    let defaults = outlive::auth::server::ResourceServer::builder("https://mcp.example/mcp");
    check(&read("docs/limits.md"), "`ResourceServer`", &defaults);
}

#[cfg(feature = "auth-proxy")]
#[test]
fn limits_page_matches_auth_proxy_defaults() {
    use outlive::auth_proxy::{AuthProxy, Provider};

    let upstream = Provider::discover("https://id.example", "id");
    let defaults = AuthProxy::builder("https://mcp.example/mcp", upstream);
    check(&read("docs/limits.md"), "`AuthProxy`", &defaults);
}

#[test]
fn limits_page_matches_constants() {
    let page = read("docs/limits.md");
    for row in rows(&page, "Fixed") {
        let [name, value, file, ..] = &row[..] else { panic!("a short row: {row:?}") };
        let (name, file) = (name.trim_matches('`'), file.trim_matches('`'));
        let source = read(file);
        let head = format!("const {name}: ");
        let line = source.lines().find_map(|line| line.split_once(&head));
        let (_, line) = line.unwrap_or_else(|| panic!("{file} has no constant {name}"));
        let (_, code) = line.split_once(" = ").unwrap();
        let code = code.trim_end_matches(';');
        assert_eq!(amount(value), Some(computed(code)), "{name} in {file} is {code}");
    }
}

/// Compares a section of the page with the defaults of a struct.
#[track_caller]
fn check(page: &str, section: &str, defaults: &impl Debug) {
    let row = |row: Vec<String>| (row[0].trim_matches('`').to_owned(), row[1].clone());
    let said: Table = rows(page, section).into_iter().map(row).collect();
    let fields = fields(defaults);
    let names = |table: &Table| table.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&said), names(&fields), "the fields of {section} and the rows of the page");
    for (name, value) in fields {
        let default = &said[&name];
        match amount(&value) {
            Some(amount_in_code) => {
                assert_eq!(amount(default), Some(amount_in_code), "{section} {name}: {value}");
            }
            // A switch, a path, or a limit with several parts: the page must contain its digits.
            None => assert!(
                digits(&value).iter().all(|digits| default.replace(' ', "").contains(digits)),
                "{section} {name}: {value} is not what the page says: {default}"
            ),
        }
    }
}

/// Returns the cells of a section's table, row by row.
fn rows(page: &str, section: &str) -> Vec<Vec<String>> {
    let sections = page.split("\n## ");
    let body = sections.filter(|text| text.lines().next().unwrap().contains(section));
    let body = body.last().unwrap_or_else(|| panic!("the page has no section {section}"));
    let cells =
        |line: &str| line.trim_matches('|').split('|').map(|c| c.trim().to_owned()).collect();
    let table = body.lines().filter(|line| line.starts_with('|')).skip(2);
    table.map(cells).collect()
}

/// Returns the fields of a struct, without those of nested structs that have their own section.
fn fields(of: &impl Debug) -> Table {
    let text = format!("{of:#?}");
    let mut fields = Table::new();
    let mut last = String::new();
    for line in text.lines().skip(1) {
        let inner = line.trim_start();
        match (line.len() - inner.len(), inner.split_once(": ")) {
            (4, Some((name, value))) => {
                name.clone_into(&mut last);
                fields.insert(last.clone(), value.trim_end_matches(',').to_owned());
            }
            (5.., Some((_, value))) => {
                let whole = fields.entry(last.clone()).or_default();
                whole.push(' ');
                whole.push_str(value.trim_end_matches(','));
            }
            _ => {}
        }
    }
    fields.remove("engine");
    fields
}

/// Parses a count, a size or a duration, as the page or `Debug` writes it. Sizes are in bytes,
/// durations in milliseconds.
fn amount(text: &str) -> Option<f64> {
    let text = text.replace(' ', "");
    let split = text.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let times = match unit {
        "" | "ms" => 1,
        "s" => 1_000,
        "min" => 60_000,
        "h" => 3_600_000,
        "days" => 86_400_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * f64::from(times))
}

/// Evaluates the code of a constant: a number, a shift, or a duration.
fn computed(code: &str) -> f64 {
    let number = |text: &str| text.trim().replace('_', "").parse::<u32>().unwrap();
    let inner = |text: &str, head: &str| {
        text.strip_prefix(head).and_then(|rest| rest.strip_suffix(')')).map(&number)
    };
    if let Some(seconds) = inner(code, "Duration::from_secs(") {
        return f64::from(seconds) * 1_000.0;
    }
    if let Some(millis) = inner(code, "Duration::from_millis(") {
        return f64::from(millis);
    }
    match code.split_once("<<") {
        Some((base, shift)) => f64::from(number(base)) * f64::from(2_u32.pow(number(shift))),
        None => f64::from(number(code)),
    }
}

/// Returns the numbers in a text that have at least two digits.
fn digits(text: &str) -> Vec<&str> {
    let numbers = text.split(|c: char| !c.is_ascii_digit());
    numbers.filter(|number| number.len() > 1).collect()
}

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}
