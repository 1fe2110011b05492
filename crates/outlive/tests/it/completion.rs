//! Completion of prompt arguments and template variables.

use outlive::server::{
    Args, Error, Prompt, ResourceTemplate, Server, State, Tool, response::CompletionInput,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::pipe::{MODERN, Pipe, REVISIONS};

#[derive(Deserialize, JsonSchema)]
struct Trip {
    country: String,
    city: String,
}

struct Cities {
    all: Vec<(&'static str, &'static str)>,
}

async fn cities(partial: CompletionInput, cities: State<Cities>) -> Vec<String> {
    let country = partial.others.get("country");
    let fits = |(of, name): &&(&str, &str)| {
        country.is_none_or(|country| country == of) && name.starts_with(&partial.value)
    };
    cities.all.iter().filter(fits).map(|(_, name)| (*name).to_owned()).collect()
}

async fn many(partial: CompletionInput) -> Vec<String> {
    (0..partial.value.parse().unwrap()).map(|n| format!("v{n}")).collect()
}

fn server() -> Server {
    Server::builder("test", "1")
        .prompt(
            Prompt::new("trip", async |Args(trip): Args<Trip>| trip.country + &trip.city)
                .complete("city", cities),
        )
        .resource_template(
            ResourceTemplate::new("n://{n}/{m}", "n", async || "n").complete("n", many),
        )
        .state(Cities {
            all: vec![("DE", "Bonn"), ("DE", "Berlin"), ("CH", "Bern"), ("CH", "Chur")],
        })
        .build()
        .unwrap()
}

fn ask(reference: &Value, argument: &str, value: &str) -> Value {
    json!({"ref": reference, "argument": {"name": argument, "value": value}})
}

fn trip() -> Value {
    json!({"type": "ref/prompt", "name": "trip"})
}

fn template() -> Value {
    json!({"type": "ref/resource", "uri": "n://{n}/{m}"})
}

// COMPL-02, COMPL-03, COMPL-06
#[tokio::test(start_paused = true)]
async fn completion_returns_values_in_completer_order() {
    for version in REVISIONS {
        let mut pipe = Pipe::speaking(&server(), version).await;
        let mut result = pipe.result("completion/complete", ask(&trip(), "city", "B")).await;
        assert_eq!(
            result["completion"],
            json!({"values": ["Bonn", "Berlin", "Bern"], "total": 3, "hasMore": false})
        );
        result.as_object_mut().unwrap().retain(|member, _| member != "completion");
        let others: Vec<_> = result.as_object().unwrap().keys().collect();
        let expected: &[&str] = if version == MODERN { &["resultType", "_meta"] } else { &[] };
        assert_eq!(others, expected, "{version}: no cache hints");
    }
}

// COMPL-02
#[tokio::test(start_paused = true)]
async fn completer_receives_context_arguments() {
    for version in REVISIONS {
        let mut pipe = Pipe::speaking(&server(), version).await;
        let mut params = ask(&trip(), "city", "B");
        params["context"] = json!({"arguments": {"country": "CH"}});
        let result = pipe.result("completion/complete", params.clone()).await;
        assert_eq!(result["completion"]["values"], json!(["Bern"]), "{version}");
        params["context"] = json!({});
        let result = pipe.result("completion/complete", params).await;
        assert_eq!(result["completion"]["total"], 3, "{version}");
    }
}

// COMPL-03
#[tokio::test(start_paused = true)]
async fn completion_sends_at_most_100_values_and_total() {
    let mut pipe = Pipe::open(&server());
    for (found, sent) in [(0, 0), (99, 99), (100, 100), (101, 100), (250, 100)] {
        let result =
            pipe.result("completion/complete", ask(&template(), "n", &found.to_string())).await;
        let completion = &result["completion"];
        assert_eq!(completion["values"].as_array().unwrap().len(), sent);
        assert_eq!(completion["total"], found);
        assert_eq!(completion["hasMore"], found > sent);
        assert!(
            sent == 0 || completion["values"][sent - 1] == format!("v{}", sent - 1),
            "the first values are sent"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn argument_without_completer_has_no_values() {
    let mut pipe = Pipe::open(&server());
    for params in [ask(&trip(), "country", "C"), ask(&template(), "m", "")] {
        let result = pipe.result("completion/complete", params).await;
        assert_eq!(result["completion"], json!({"values": [], "total": 0, "hasMore": false}));
    }
}

// COMPL-04, COMPL-05
#[tokio::test(start_paused = true)]
async fn completion_of_unknown_reference_is_invalid_params() {
    let cases = [
        (
            ask(&json!({"type": "ref/prompt", "name": "tripp"}), "city", ""),
            "unknown prompt `tripp`; did you mean `trip`?",
        ),
        (ask(&trip(), "street", ""), "prompt `trip` has no argument `street`"),
        (
            ask(&json!({"type": "ref/resource", "uri": "x://{x}"}), "x", ""),
            "unknown resource template `x://{x}`",
        ),
        (
            ask(&template(), "street", ""),
            "resource template `n://{n}/{m}` has no argument `street`",
        ),
    ];
    for version in REVISIONS {
        let mut pipe = Pipe::speaking(&server(), version).await;
        for (params, expected) in &cases {
            let refusal = pipe.error("completion/complete", params.clone()).await;
            assert_eq!(refusal, json!({"code": -32602, "message": expected}), "{version}");
        }
        for malformed in [
            json!({}),
            json!({"ref": trip()}),
            json!({"ref": trip(), "argument": {"name": "city"}}),
            json!({"ref": trip(), "argument": {"name": "city", "value": 7}}),
            json!({"ref": {"type": "ref/tool", "name": "x"}, "argument": {"name": "a", "value": ""}}),
            json!({"ref": {"type": "ref/prompt"}, "argument": {"name": "a", "value": ""}}),
        ] {
            let refusal = pipe.error("completion/complete", malformed.clone()).await;
            assert_eq!(refusal["code"], -32602, "{version}: {malformed}");
        }
    }
}

// COMPL-01, COMPL-04, RPC-16
#[tokio::test(start_paused = true)]
async fn server_without_completers_does_not_declare_completions() {
    let bare = Server::builder("test", "1").tool(Tool::new("t", async || "t")).build().unwrap();
    for version in REVISIONS {
        let mut pipe = Pipe::open(&bare);
        let hello = match version {
            MODERN => pipe.result("server/discover", json!({})).await,
            _ => pipe.legacy(version).await,
        };
        assert_eq!(hello["capabilities"].get("completions"), None, "{version}");
        assert_eq!(
            pipe.error("completion/complete", ask(&trip(), "city", "")).await["code"],
            -32601,
            "{version}"
        );
    }
}

#[test]
fn completer_for_unknown_argument_fails_build() {
    let none = async || Vec::<String>::new();
    let prompt = Prompt::new("p", async |_: Args<Trip>| "x").complete("street", none);
    let why = Server::builder("test", "1").prompt(prompt).build().unwrap_err().to_string();
    assert_eq!(why, "prompt `p`: the completer of `street` matches none of its arguments");
    let template = ResourceTemplate::new("n://{n}", "n", async || "n").complete("street", none);
    let why =
        Server::builder("test", "1").resource_template(template).build().unwrap_err().to_string();
    assert_eq!(why, "resource `n://{n}`: the completer of `street` matches none of its variables");
}

#[tokio::test(start_paused = true)]
async fn completer_error_is_returned() {
    let refuse = async || Err::<Vec<String>, _>(Error::invalid_params("too short"));
    let prompt = Prompt::new("p", async |_: Args<Trip>| "x").complete("city", refuse);
    let mut pipe = Pipe::open(&Server::builder("test", "1").prompt(prompt).build().unwrap());
    let reference = json!({"type": "ref/prompt", "name": "p"});
    let refusal = pipe.error("completion/complete", ask(&reference, "city", "")).await;
    assert_eq!(refusal, json!({"code": -32602, "message": "too short"}));
}
