//! docs/metrics.md matches the metrics that a server prints.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use outlive::server::{Server, Tool, tasks::TaskConfig};

/// Type and labels of each metric, by name.
type Table = BTreeMap<String, (String, BTreeSet<String>)>;

#[tokio::test]
async fn metrics_page_matches_printed_metrics() {
    let tool = Tool::new("greet", async || "hello");
    let server = Server::builder("test", "1").tasks(TaskConfig::in_memory()).tool(tool);
    let text = server.build().unwrap().metrics().await.to_string();
    assert_eq!(on_page(), printed(&text));
}

/// Reads the table rows whose first cell is a metric of a server. The tests of `outlive-gateway` read
/// those of upstreams.
fn on_page() -> Table {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let page = fs::read_to_string(path).unwrap();
    let rows = page.lines().filter(|line| {
        line.starts_with("| `outlive_") && !line.starts_with("| `outlive_upstream_")
    });
    rows.filter_map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [name, kind, labels, _] = cells[..] else { return None };
        let labels = labels.split(", ").filter(|label| !label.is_empty()).map(unquoted);
        Some((unquoted(name), (kind.to_owned(), labels.collect())))
    })
    .collect()
}

fn unquoted(cell: &str) -> String {
    cell.trim_matches('`').to_owned()
}

/// Reads the Prometheus text format. The label `le` belongs to the type.
fn printed(text: &str) -> Table {
    let mut table = Table::new();
    let mut last = String::new();
    for line in text.lines() {
        if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|it| it.split_once(' ')) {
            name.clone_into(&mut last);
            table.insert(last.clone(), (kind.to_owned(), BTreeSet::new()));
        } else if !line.starts_with('#') {
            assert!(line.starts_with(&last), "{line} is not a sample of {last}");
            let labels = line.split_once('{').map_or("", |(_, rest)| rest);
            let names =
                labels.split("=\"").map(|part| part.rsplit([',', '{', '"']).next().unwrap());
            let names =
                names.filter(|name| !name.is_empty() && !name.contains('}') && *name != "le");
            table.get_mut(&last).unwrap().1.extend(names.map(str::to_owned));
        }
    }
    table
}
