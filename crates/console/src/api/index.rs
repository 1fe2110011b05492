//! The index of the API: every endpoint once.
//!
//! `openapi.json` and `docs/console-api.md` describe the same endpoints; a test compares them.

use http::Method;

use crate::request::decoded;

/// An endpoint of the API.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) method: Method,
    /// Path below the API. `{key}` may contain slashes.
    pub(crate) path: &'static str,
    pub(crate) operation: Operation,
    /// Parameters of the query.
    pub(crate) query: &'static [&'static str],
    /// Members of the body.
    pub(crate) body: &'static [&'static str],
}

/// Operation of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Me,
    Inbox,
    InputRequest,
    Answer,
    Link,
    Tasks,
    Task,
    Journal,
    Output,
    TaskAudit,
    Cancel,
    Retry,
    Rerun,
    Purge,
    Bulk,
    BulkStatus,
    BulkContinue,
    Metrics,
    Audit,
    Workers,
    Deliveries,
    SendDelivery,
    Stream,
}

const PAGE: &[&str] = &["after", "limit"];
const TASKS: &[&str] = &["state", "tool", "caller", "tag", "since", "until", "after", "limit"];

/// All endpoints.
pub(crate) static ENDPOINTS: [Endpoint; 23] = [
    get("me", Operation::Me, &[]),
    get("inbox", Operation::Inbox, PAGE),
    get("inputs/{task}/{key}", Operation::InputRequest, &[]),
    post(
        "inputs/{task}/{key}/answer",
        Operation::Answer,
        &["digest", "action", "content", "reason"],
    ),
    post("inputs/{task}/{key}/link", Operation::Link, &["to", "expires"]),
    get("tasks", Operation::Tasks, TASKS),
    get("tasks/{task}", Operation::Task, &[]),
    get("tasks/{task}/journal", Operation::Journal, PAGE),
    get("tasks/{task}/output", Operation::Output, PAGE),
    get("tasks/{task}/audit", Operation::TaskAudit, &[]),
    post("tasks/{task}/cancel", Operation::Cancel, &[]),
    post("tasks/{task}/retry", Operation::Retry, &[]),
    post("tasks/{task}/rerun", Operation::Rerun, &["arguments"]),
    post("tasks/{task}/purge", Operation::Purge, &["force"]),
    post("bulk", Operation::Bulk, &["action", "filter", "before", "name", "expect"]),
    get("bulk/{bulk}", Operation::BulkStatus, &[]),
    post("bulk/{bulk}/continue", Operation::BulkContinue, &[]),
    get("metrics", Operation::Metrics, &["since"]),
    get("audit", Operation::Audit, &["actor", "action", "task", "name", "after", "limit"]),
    get("workers", Operation::Workers, &[]),
    get("deliveries", Operation::Deliveries, &[]),
    post("deliveries/{delivery}/send", Operation::SendDelivery, &[]),
    get("stream", Operation::Stream, &["tasks"]),
];

const fn get(path: &'static str, operation: Operation, query: &'static [&'static str]) -> Endpoint {
    Endpoint { method: Method::GET, path, operation, query, body: &[] }
}

const fn post(path: &'static str, operation: Operation, body: &'static [&'static str]) -> Endpoint {
    Endpoint { method: Method::POST, path, operation, query: &[], body }
}

/// Returns the endpoints at a path, with the values of its parameters.
pub(crate) fn at(path: &str) -> impl Iterator<Item = (&'static Endpoint, Vec<String>)> + '_ {
    ENDPOINTS.iter().filter_map(move |it| captures(it.path, path).map(|values| (it, values)))
}

/// Returns the values of the parameters of a pattern, if it matches a path.
fn captures(pattern: &str, path: &str) -> Option<Vec<String>> {
    let (pattern, path): (Vec<&str>, Vec<&str>) =
        (pattern.split('/').collect(), path.split('/').collect());
    // `{key}` is the only parameter that may contain slashes, because some proxies decode them.
    let wide = pattern.iter().position(|part| *part == "{key}");
    let extra =
        path.len().checked_sub(pattern.len()).filter(|more| wide.is_some() || *more == 0)?;
    let mut values = Vec::new();
    let mut rest = path.as_slice();
    for (index, part) in pattern.iter().enumerate() {
        let taken = if Some(index) == wide { 1 + extra } else { 1 };
        let (value, after) = rest.split_at(taken);
        rest = after;
        match part.starts_with('{') {
            true if value.concat().is_empty() => return None,
            true => values.push(decoded(&value.join("/"))),
            false if value != [*part] => return None,
            false => {}
        }
    }
    Some(values)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use http::Method;
    use serde_json::Value;

    use super::{ENDPOINTS, Endpoint, Operation, at, captures};

    fn names(values: &[&str]) -> BTreeSet<String> {
        values.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn description_has_the_endpoints_of_the_code() {
        let openapi: Value =
            serde_json::from_str(include_str!("../../openapi.json")).expect("is JSON");
        let paths = openapi["paths"].as_object().expect("paths");
        let described = paths.values().map(|methods| methods.as_object().map_or(0, |it| it.len()));
        assert_eq!(described.sum::<usize>(), ENDPOINTS.len());
        for endpoint in &ENDPOINTS {
            let Endpoint { method, path, operation, query, body } = endpoint;
            let method = method.as_str().to_lowercase();
            let described = &paths[&format!("/{path}")][&method];
            assert_eq!(described["operationId"], format!("{operation:?}"), "{method} {path}");
            let parameters = described["parameters"].as_array().into_iter().flatten();
            let in_query = parameters.filter(|it| it["in"] == "query");
            let in_query = in_query.filter_map(|it| it["name"].as_str().map(str::to_owned));
            assert_eq!(in_query.collect::<BTreeSet<_>>(), names(query), "{method} {path}");
            let schema = &described["requestBody"]["content"]["application/json"]["schema"];
            let members = schema["properties"].as_object().into_iter().flatten();
            let members: BTreeSet<_> = members.map(|(name, _)| name.clone()).collect();
            assert_eq!(members, names(body), "{method} {path}");
        }
    }

    #[test]
    fn description_in_the_docs_has_the_endpoints_of_the_code() {
        let page = include_str!("../../../../docs/console-api.md");
        let rows = page
            .lines()
            .filter(|line| line.starts_with("| `GET /") || line.starts_with("| `POST /"));
        let rows: Vec<Vec<&str>> = rows.map(|row| row.split(" | ").collect()).collect();
        assert_eq!(rows.len(), ENDPOINTS.len());
        for (row, Endpoint { method, path, query, body, .. }) in rows.iter().zip(&ENDPOINTS) {
            assert_eq!(row[0], format!("| `{method} /{path}`"));
            let named = row[1].split(',').map(|it| it.trim_matches([' ', '`', '?', '|']));
            let named: BTreeSet<_> = named.filter(|it| !it.is_empty()).map(str::to_owned).collect();
            let expected = if *method == Method::POST { names(body) } else { names(query) };
            assert_eq!(named, expected, "{path}");
        }
    }

    #[test]
    fn path_leads_to_its_endpoints() {
        let operations = |path: &str| -> Vec<Operation> {
            at(path).map(|(endpoint, _)| endpoint.operation).collect()
        };
        assert_eq!(operations("tasks"), [Operation::Tasks]);
        assert_eq!(operations("tasks/1"), [Operation::Task]);
        assert_eq!(operations("tasks/1/journal"), [Operation::Journal]);
        assert_eq!(
            operations("inputs/1/k/answer"),
            [Operation::InputRequest, Operation::Answer],
            "the method decides"
        );
        for path in ["", "task", "tasks/", "tasks/1/", "tasks/1/x", "inputs/1", "me/x"] {
            assert!(operations(path).is_empty(), "{path}");
        }
    }

    #[test]
    fn key_of_an_input_request_may_contain_slashes() {
        let pattern = "inputs/{task}/{key}/answer";
        let expected = Some(vec!["1".to_owned(), "push/eu#2".to_owned()]);
        assert_eq!(captures(pattern, "inputs/1/push%2Feu%232/answer"), expected);
        assert_eq!(captures(pattern, "inputs/1/push/eu%232/answer"), expected);
        assert_eq!(captures(pattern, "inputs/1/answer"), None);
        assert_eq!(captures("tasks/{task}", "tasks/a%2Fb"), Some(vec!["a/b".to_owned()]));
    }
}
