//! Pagination. A cursor is opaque and valid only for its list and its principal.

use outlive::server::{
    Principal, Prompt, Resource, ResourceTemplate, SealKeys, Server, ServerBuilder, Tool,
};
use serde_json::{Value, json};

use crate::support::pipe::{MODERN, Pipe, REVISIONS};

/// Every list: its method, its result member, and the member that names an entry.
const LISTS: [(&str, &str, &str); 4] = [
    ("tools/list", "tools", "name"),
    ("resources/list", "resources", "name"),
    ("resources/templates/list", "resourceTemplates", "name"),
    ("prompts/list", "prompts", "name"),
];

/// A server with `entries` entries in every list, in an order that is not alphabetical.
fn builder(entries: usize, page_size: usize) -> ServerBuilder {
    let builder = Server::builder("test", "1")
        .advertise_tools()
        .advertise_resources()
        .advertise_prompts()
        .limits(|limits| limits.page_size = page_size);
    names(entries).into_iter().fold(builder, |builder, name| {
        builder
            .tool(Tool::new(&name, async || "t"))
            .resource(Resource::new(format!("mem://{name}"), &name, async || "r"))
            .resource_template(ResourceTemplate::new(
                format!("mem://{name}/{{x}}"),
                &name,
                async || "r",
            ))
            .prompt(Prompt::new(&name, async || "p"))
    })
}

fn names(entries: usize) -> Vec<String> {
    (0..entries).map(|n| format!("n{}", (n * 7) % 100)).collect()
}

/// Returns the names on each page of a list.
async fn pages(pipe: &mut Pipe, (method, member, name): (&str, &str, &str)) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    let mut params = json!({});
    loop {
        let result = pipe.result(method, params).await;
        let page = result[member].as_array().unwrap();
        pages.push(page.iter().map(|entry| entry[name].as_str().unwrap().to_owned()).collect());
        match result.get("nextCursor") {
            None => return pages,
            Some(cursor) => params = json!({"cursor": cursor}),
        }
        assert!(pages.len() < 100, "the list does not end");
    }
}

async fn cursor(pipe: &mut Pipe, method: &str) -> String {
    pipe.result(method, json!({})).await["nextCursor"].as_str().unwrap().to_owned()
}

// PAGE-01, TOOL-02, TOOL-04
#[tokio::test(start_paused = true)]
async fn list_pages_have_limit_size_and_registration_order() {
    for (entries, size, expected) in [
        (0, 3, vec![0]),
        (2, 3, vec![2]),
        (3, 3, vec![3]),
        (4, 3, vec![3, 1]),
        (6, 3, vec![3, 3]),
        (7, 3, vec![3, 3, 1]),
        (3, 0, vec![1, 1, 1]),
    ] {
        let server = builder(entries, size).build().unwrap();
        for version in REVISIONS {
            let mut pipe = Pipe::speaking(&server, version).await;
            for list in LISTS {
                for _ in 0..2 {
                    let pages = pages(&mut pipe, list).await;
                    let sizes: Vec<_> = pages.iter().map(Vec::len).collect();
                    assert_eq!(sizes, expected, "{version}: {list:?}");
                    assert_eq!(pages.concat(), names(entries), "{version}: {list:?}");
                }
            }
        }
    }
}

// PAGE-04
#[tokio::test(start_paused = true)]
async fn forged_cursor_is_invalid_params() {
    let server = builder(3, 1).build().unwrap();
    for version in REVISIONS {
        let mut pipe = Pipe::speaking(&server, version).await;
        for (method, ..) in LISTS {
            let good = cursor(&mut pipe, method).await;
            let mut wrong = vec![
                json!(""),
                json!("0"),
                json!("n7"),
                json!("🦀"),
                json!(7),
                json!([]),
                json!({}),
            ];
            for at in [0, good.len() / 2, good.len() - 2] {
                let mut bytes = good.clone().into_bytes();
                bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
                wrong.push(json!(String::from_utf8(bytes).unwrap()));
            }
            wrong.push(json!(good[..good.len() - 4]));
            wrong.push(json!(format!("{good}AAAA")));
            for wrong in wrong {
                let refusal = pipe.error(method, json!({"cursor": wrong})).await;
                assert_eq!(refusal["code"], -32602, "{version}: {method}: {wrong}");
            }
            assert!(
                pipe.result(method, json!({"cursor": good})).await.is_object(),
                "{version}: {method}"
            );
        }
    }
}

// PAGE-04
#[tokio::test(start_paused = true)]
async fn cursor_is_valid_only_for_its_list() {
    let mut pipe = Pipe::open(&builder(3, 1).build().unwrap());
    for (of, ..) in LISTS {
        let cursor = cursor(&mut pipe, of).await;
        for (to, ..) in LISTS {
            let answer = pipe.ask(to, json!({"cursor": cursor})).await;
            assert_eq!(answer.get("result").is_some(), of == to, "{of} to {to}");
        }
    }
}

// SEC-03
#[tokio::test(start_paused = true)]
async fn cursor_is_valid_only_for_its_principal() {
    let server = builder(3, 1).build().unwrap();
    let callers = [
        Principal::LOCAL,
        Principal::ANONYMOUS,
        Principal::named("ann"),
        Principal::named("bob"),
        Principal::named("local"),
    ];
    for of in &callers {
        let cursor = cursor(&mut Pipe::open_as(&server, of.clone()), "tools/list").await;
        for to in &callers {
            let mut pipe = Pipe::open_as(&server, to.clone());
            let answer = pipe.ask("tools/list", json!({"cursor": cursor})).await;
            match of == to {
                true => assert_eq!(answer["result"]["tools"][0]["name"], "n7", "{of:?}"),
                false => assert_eq!(answer["error"]["code"], -32602, "{of:?} to {to:?}"),
            }
        }
    }
}

// PAGE-06, TOOL-03
#[tokio::test(start_paused = true)]
async fn cursor_is_valid_on_any_connection_version_and_replica() {
    let keys = SealKeys::new([7; 32]);
    let replicas = [
        builder(3, 1).seal_keys(keys.clone()).build().unwrap(),
        builder(3, 1).seal_keys(keys).build().unwrap(),
    ];
    let stranger = builder(3, 1).build().unwrap();
    for version in REVISIONS {
        let cursor = cursor(&mut Pipe::speaking(&replicas[0], version).await, "tools/list").await;
        for other in REVISIONS {
            let mut pipe = Pipe::speaking(&replicas[1], other).await;
            let result = pipe.result("tools/list", json!({"cursor": cursor})).await;
            assert_eq!(result["tools"][0]["name"], "n7", "{version} to {other}");
        }
        let mut pipe = Pipe::speaking(&stranger, version).await;
        assert_eq!(pipe.error("tools/list", json!({"cursor": cursor})).await["code"], -32602);
    }
}

#[tokio::test(start_paused = true)]
async fn cursor_is_valid_while_its_key_is_a_previous_key() {
    let with = |keys: SealKeys| builder(3, 1).seal_keys(keys).build().unwrap();
    let before = with(SealKeys::new([1; 32]));
    let cursor = cursor(&mut Pipe::open(&before), "tools/list").await;
    let after = with(SealKeys::new([2; 32]).with_previous([1; 32]));
    let result = Pipe::open(&after).result("tools/list", json!({"cursor": cursor})).await;
    assert_eq!(result["tools"][0]["name"], "n7");
    // New cursors are sealed with the new key.
    let mut before = Pipe::open(&before);
    let newer = json!({"cursor": result["nextCursor"]});
    assert_eq!(before.error("tools/list", newer).await["code"], -32602);
    let mut later = Pipe::open(&with(SealKeys::new([3; 32]).with_previous([2; 32])));
    assert_eq!(later.error("tools/list", json!({"cursor": cursor})).await["code"], -32602);
}

// PAGE-04
#[tokio::test(start_paused = true)]
async fn list_changed_between_pages_neither_repeats_nor_skips_entries() {
    let server = builder(5, 2).build().unwrap();
    let mut pipe = Pipe::open(&server);
    let first = pipe.result("tools/list", json!({})).await;
    // The page ends with n7. The test removes n7, replaces an entry that was listed, and adds one.
    assert!(server.remove_tool("n7"));
    assert!(server.remove_tool("n21"));
    server.add_tool(Tool::new("n0", async || "again")).unwrap();
    server.add_tool(Tool::new("late", async || "t")).unwrap();
    let second = pipe.result("tools/list", json!({"cursor": first["nextCursor"]})).await;
    let names = |page: &Value| {
        page["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&second), ["n14", "n28"]);
    let third = pipe.result("tools/list", json!({"cursor": second["nextCursor"]})).await;
    assert_eq!(names(&third), ["late"]);
    assert_eq!(third.get("nextCursor"), None);
}

#[tokio::test(start_paused = true)]
async fn missing_or_null_cursor_returns_first_page() {
    let mut pipe = Pipe::speaking(&builder(3, 2).build().unwrap(), MODERN).await;
    for params in [json!({}), json!({"cursor": null})] {
        assert_eq!(pipe.result("tools/list", params).await["tools"][0]["name"], "n0");
    }
}
