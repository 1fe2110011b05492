//! Cache hints: modern results of lists and reads carry them, all other results do not.

use outlive::{
    server::{Prompt, Resource, ResourceTemplate, Server, ServerBuilder, Tool},
    wire::{CacheHints, CacheScope},
};
use serde_json::{Value, json};

use crate::support::pipe::{LEGACY, Pipe};

const PUBLIC: CacheHints = CacheHints { ttl_ms: 60_000, cache_scope: CacheScope::Public };

fn builder() -> ServerBuilder {
    let short = CacheHints { ttl_ms: 5, cache_scope: CacheScope::Private };
    Server::builder("test", "1")
        .tool(Tool::new("t", async || "t"))
        .tool(Tool::new("u", async || "u"))
        .resource(Resource::new("mem://a", "a", async || "a"))
        .resource(Resource::new("mem://short", "short", async || "s").cache(short))
        .resource_template(ResourceTemplate::new("p://{x}", "x", async || "x").cache(short))
        .prompt(Prompt::new("p", async || "p"))
}

fn cacheable() -> [(&'static str, Value); 6] {
    [
        ("server/discover", json!({})),
        ("tools/list", json!({})),
        ("prompts/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({"uri": "mem://a"})),
    ]
}

fn hints(result: &Value) -> (Option<&Value>, Option<&Value>) {
    (result.get("ttlMs"), result.get("cacheScope"))
}

// CACHE-01, CACHE-02, RES-08
#[tokio::test(start_paused = true)]
async fn cacheable_results_carry_ttl_and_scope() {
    for (server, ttl, scope) in [
        (builder().build().unwrap(), 0, "private"),
        (builder().default_cache_hints(PUBLIC).build().unwrap(), 60_000, "public"),
    ] {
        let mut pipe = Pipe::open(&server);
        for (method, params) in cacheable() {
            let result = pipe.result(method, params).await;
            assert_eq!(hints(&result), (Some(&json!(ttl)), Some(&json!(scope))), "{method}");
        }
    }
}

// CACHE-01, PROMPT-04, COMPL-06
#[tokio::test(start_paused = true)]
async fn uncacheable_results_carry_no_cache_hints() {
    let mut pipe = Pipe::open(&builder().default_cache_hints(PUBLIC).build().unwrap());
    let reference = json!({"type": "ref/resource", "uri": "p://{x}"});
    for (method, params) in [
        ("tools/call", json!({"name": "t"})),
        ("prompts/get", json!({"name": "p"})),
        ("completion/complete", json!({"ref": reference, "argument": {"name": "x", "value": ""}})),
    ] {
        let result = pipe.result(method, params).await;
        assert_eq!(hints(&result), (None, None), "{method}");
    }
}

// VER-37
#[tokio::test(start_paused = true)]
async fn legacy_results_carry_no_cache_hints() {
    for version in LEGACY {
        let mut pipe =
            Pipe::speaking(&builder().default_cache_hints(PUBLIC).build().unwrap(), version).await;
        for (method, params) in cacheable().into_iter().skip(1) {
            let result = pipe.result(method, params).await;
            assert_eq!(hints(&result), (None, None), "{version}: {method}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn resource_or_template_overrides_default_cache_hints() {
    let mut pipe = Pipe::open(&builder().default_cache_hints(PUBLIC).build().unwrap());
    for uri in ["mem://short", "p://1"] {
        let result = pipe.result("resources/read", json!({"uri": uri})).await;
        assert_eq!(hints(&result), (Some(&json!(5)), Some(&json!("private"))), "{uri}");
    }
}

// CACHE-09
#[tokio::test(start_paused = true)]
async fn pages_of_one_list_share_cache_scope() {
    let server = builder()
        .default_cache_hints(PUBLIC)
        .limits(|limits| limits.page_size = 1)
        .build()
        .unwrap();
    let mut pipe = Pipe::open(&server);
    for method in ["tools/list", "resources/list"] {
        let first = pipe.result(method, json!({})).await;
        let second = pipe.result(method, json!({"cursor": first["nextCursor"]})).await;
        assert_eq!(hints(&first), hints(&second), "{method}");
        assert_eq!(first["cacheScope"], "public", "{method}");
    }
}
