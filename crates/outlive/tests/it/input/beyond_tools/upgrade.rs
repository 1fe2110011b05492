//! Calls that start on one handler revision and end on another.

use outlive::server::{Durable, Result, SealKeys, Server, State, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::to_raw_value};

use crate::{
    input::dialogue::{
        Approval, Notes, Talk, accept, builder, keys, logged, questions, refusal_of, text_of,
    },
    support::pipe::MODERN,
};

/// A replica with these tools. All replicas share their seal keys.
fn replica(tools: impl IntoIterator<Item = Tool>) -> Server {
    builder(tools).seal_keys(SealKeys::new([7; 32])).state(Notes::default()).build().unwrap()
}

#[derive(Deserialize, JsonSchema, outlive::Form)]
struct Login {
    name: String,
}

async fn logins(cx: &Durable, providers: [&str; 2]) -> Result<String> {
    let ask = |provider: &str| {
        cx.elicit::<Login>(format!("{provider}_login"), format!("Your name on {provider}?"))
    };
    let (first, second) = tokio::join!(ask(providers[0]), ask(providers[1]));
    Ok(format!("{} {}", first?.name, second?.name))
}

async fn github_and_google(cx: Durable) -> Result<String> {
    logins(&cx, ["github", "google"]).await
}

async fn github_and_microsoft(cx: Durable) -> Result<String> {
    logins(&cx, ["github", "microsoft"]).await
}

fn name(name: &str) -> Value {
    accept(json!({"name": name}))
}

// M-42, M-10
#[tokio::test(start_paused = true)]
async fn new_handler_keeps_needed_responses_and_requests_only_new_input() {
    let (log, _guard) = logged();
    let mut old = Talk::open(&replica([Tool::new("login", github_and_google)]), MODERN).await;
    let mut new = Talk::open(&replica([Tool::new("login", github_and_microsoft)]), MODERN).await;
    let first = old.begin("login").await;
    assert_eq!(keys(&first), ["github_login", "google_login"]);
    let both = json!({"github_login": name("octo"), "google_login": name("goo")});
    let second = new.back("login", &first, both.clone()).await;
    assert_eq!(keys(&second), ["microsoft_login"]);
    let last = new.back("login", &second, json!({"microsoft_login": name("ms")})).await;
    assert_eq!(text_of(&last), "octo ms");
    let log = log.take();
    assert!(log.iter().any(|line| line.contains("google_login")), "{log:?}");
    // A replica with the old handler accepts the same round and needs no more input.
    assert_eq!(text_of(&old.back("login", &first, both).await), "octo goo");
    // A call that returns to the old handler finds the recorded input responses.
    assert_eq!(text_of(&old.back("login", &second, json!({})).await), "octo goo");
}

async fn one(cx: Durable) -> Result<String> {
    let image: String = cx.step("build", async || Ok("shop".to_owned())).await?;
    let go: Login = cx.elicit("go", "Who are you?").await?;
    let last: Approval = cx.elicit("last", "Sure?").await?;
    Ok(format!("{image} {} {}", go.name, last.yes))
}

#[derive(Serialize, Deserialize)]
struct Image {
    name: String,
    tag: u32,
}

#[derive(Deserialize, JsonSchema, outlive::Form)]
struct Person {
    first: String,
}

async fn two(cx: Durable) -> Result<String> {
    let made = async || Ok(Image { name: "new".into(), tag: 2 });
    let image: Image = cx.step("build", made).await?;
    let go: Person = cx.elicit("go", "Who are you?").await?;
    let last: Approval = cx.elicit("last", "Sure?").await?;
    Ok(format!("{}:{} {} {}", image.name, image.tag, go.first, last.yes))
}

// M-43
#[tokio::test(start_paused = true)]
async fn journal_of_older_revision_is_migrated() {
    let seen = Notes::default();
    let noted = seen.clone();
    let new =
        Tool::new("deploy", two).handler_revision("2").migrate_journal(move |from, key, value| {
            noted.note(format!("{from} {key} {value}"));
            match (from, key) {
                ("1", "build") => {
                    let name: String = serde_json::from_str(value.get()).ok()?;
                    to_raw_value(&json!({"name": name, "tag": 1})).ok()
                }
                ("1", "go") => {
                    let answer: Value = serde_json::from_str(value.get()).ok()?;
                    let first = json!({"first": answer["content"]["name"]});
                    to_raw_value(&json!({"action": "accept", "content": first})).ok()
                }
                _ => None,
            }
        });
    let mut old =
        Talk::open(&replica([Tool::new("deploy", one).handler_revision("1")]), MODERN).await;
    let first = old.begin("deploy").await;
    let second = old.back("deploy", &first, json!({"go": name("anna")})).await;
    assert_eq!(keys(&second), ["last"]);
    let mut new = Talk::open(&replica([new]), MODERN).await;
    let yes = json!({"last": accept(json!({"yes": true}))});
    assert_eq!(text_of(&new.back("deploy", &second, yes).await), "shop:1 anna true");
    let build = r#"1 build "shop""#;
    let go = r#"1 go {"action":"accept","content":{"name":"anna"}}"#;
    assert_eq!(seen.take(), [build, go], "each recorded entry is migrated");
}

// M-43
#[tokio::test(start_paused = true)]
async fn journal_of_same_revision_is_not_migrated() {
    let version = |revision: Option<&'static str>| {
        let tool = Tool::new("deploy", one);
        let tool = match revision {
            Some(revision) => tool.handler_revision(revision),
            None => tool,
        };
        tool.migrate_journal(|from, key, _| {
            let changed = json!(format!("migrated from `{from}`"));
            (key == "build").then(|| to_raw_value(&changed).ok())?
        })
    };
    for (old, new, expected) in [
        (Some("1"), Some("1"), "shop anna true"),
        (None, None, "shop anna true"),
        (Some("1"), Some("2"), "migrated from `1` anna true"),
        (None, Some("2"), "migrated from `` anna true"),
        (Some("2"), None, "migrated from `2` anna true"),
    ] {
        let first = Talk::open(&replica([version(old)]), MODERN).await.begin("deploy").await;
        let mut talk = Talk::open(&replica([version(new)]), MODERN).await;
        let second = talk.back("deploy", &first, json!({"go": name("anna")})).await;
        let yes = json!({"last": accept(json!({"yes": true}))});
        let last = talk.back("deploy", &second, yes).await;
        assert_eq!(text_of(&last), expected, "from {old:?} to {new:?}");
    }
}

// M-14, M-42: a response to the old form is not valid for the new form
#[tokio::test(start_paused = true)]
async fn input_response_to_changed_form_is_requested_again() {
    async fn asks_name(cx: Durable) -> Result<String> {
        Ok(cx.elicit::<Login>("who", "Your name?").await?.name)
    }
    async fn asks_first(cx: Durable) -> Result<String> {
        Ok(cx.elicit::<Person>("who", "Your first name?").await?.first)
    }
    let first = Talk::open(&replica([Tool::new("t", asks_name)]), MODERN).await.begin("t").await;
    let mut talk = Talk::open(&replica([Tool::new("t", asks_first)]), MODERN).await;
    let again = talk.back("t", &first, json!({"who": name("anna")})).await;
    assert_eq!(keys(&again), ["who#2"]);
    let message = questions(&again)["who#2"]["params"]["message"].clone();
    assert_eq!(message, "Your first name?\n\nThe last response was invalid: `first` is missing.");
    let last = talk.back("t", &again, json!({"who#2": accept(json!({"first": "Anna"}))})).await;
    assert_eq!(text_of(&last), "Anna");
}

// M-42: the same key now has an input request of another kind
#[tokio::test(start_paused = true)]
async fn input_request_of_changed_kind_is_requested_again() {
    async fn asks_name(cx: Durable) -> Result<String> {
        let name = cx.elicit::<Login>("it", "Your name?").await?.name;
        cx.elicit::<Approval>("last", "Sure?").await?;
        Ok(name)
    }
    async fn asks_roots(cx: Durable) -> Result<String> {
        let roots = cx.roots("it").await?.len();
        cx.elicit::<Approval>("last", "Sure?").await?;
        Ok(roots.to_string())
    }
    let mut old = Talk::open(&replica([Tool::new("t", asks_name)]), MODERN).await;
    let mut new = Talk::open(&replica([Tool::new("t", asks_roots)]), MODERN).await;
    let first = old.begin("t").await;
    let answered = json!({"it": name("anna")});
    // One response is in this round, one in an earlier round.
    let now = new.back("t", &first, answered.clone()).await;
    let second = old.back("t", &first, answered).await;
    let before = new.back("t", &second, json!({"last": accept(json!({"yes": true}))})).await;
    for asked in [now, before] {
        let again = questions(&asked);
        assert_eq!(again["it#2"]["method"], "roots/list", "{asked}");
    }
}

// M-44
#[tokio::test(start_paused = true)]
async fn request_state_of_removed_tool_is_unknown_tool() {
    let first = Talk::open(&replica([Tool::new("login", github_and_google)]), MODERN)
        .await
        .begin("login")
        .await;
    let mut talk = Talk::open(&replica([Tool::new("logout", github_and_google)]), MODERN).await;
    let answer = talk.back("login", &first, json!({"github_login": name("octo")})).await;
    let (code, message) = refusal_of(&answer);
    assert_eq!(code, -32602);
    assert!(message.starts_with("unknown tool `login`"), "{message}");
}

// M-42: a step that was added before an input request runs on replay
#[tokio::test(start_paused = true)]
async fn step_added_before_recorded_input_runs_on_replay() {
    async fn old(cx: Durable) -> Result<String> {
        cx.elicit::<Approval>("go", "Go?").await?;
        Ok("old".into())
    }
    async fn new(cx: Durable, notes: State<Notes>) -> Result<String> {
        cx.step("check", async || {
            notes.note("check");
            Ok(())
        })
        .await?;
        cx.elicit::<Approval>("go", "Go?").await?;
        Ok(format!("new {}", notes.take().join(" ")))
    }
    let first = Talk::open(&replica([Tool::new("t", old)]), MODERN).await.begin("t").await;
    let mut talk = Talk::open(&replica([Tool::new("t", new)]), MODERN).await;
    let last = talk.back("t", &first, json!({"go": accept(json!({"yes": true}))})).await;
    assert_eq!(text_of(&last), "new check");
}
