//! Hostile callers against people who decide about their calls in a terminal.

use std::fs;

use outlive::client::{
    Client,
    input::{InputCallbacks, InputResponse},
};
use serde_json::{Value, json};

use super::{Driver, Kind, PEOPLE, harm, operator::toml};
use crate::serve::{Place, until};

const TOKENS: &str = "ann ann-mcp-token-0123456789\nann ann-decides-0123456789 decide\n\
                      ada ada-decides-0123456789 decide\n";

/// Returns a file in which every text is hostile.
fn file() -> String {
    let [tool, message, argument, asks] =
        ["tool", "message", "argument", "asks"].map(|word| toml(&harm(word)));
    let request = json!({"input": "k", "message": harm("question"),
        "fields": {"word": {"type": "string", "title": harm("title")}}});
    format!(
        r#"
[server]
token_file = "callers.txt"

[tools.say]
description = {tool}
command = ["printf", "%s\n", "{{text}}"]
task = "always"
approve = {{ by = ["ada"], message = {message}, links = true }}
[tools.say.arguments]
text = {{ type = "string", description = {argument} }}

[tools.ask]
description = {asks}
interactive = true
task = "always"
command = ["sh", "-c", "printf '%s\n' \"$0\" >&3; read -r response <&4", {request}]
"#,
        request = toml(&request.to_string()),
    )
}

#[tokio::test]
async fn hostile_requests_do_not_control_terminal_of_people() {
    let driver = Driver::new(PEOPLE);
    let mut place = Place::unserved(&file());
    fs::write(place.folder.join("callers.txt"), TOKENS).unwrap();
    place.start();
    // Leaves every input request open.
    let waiting = InputCallbacks::new().form(|_| std::future::pending::<InputResponse>());
    let client = Client::builder(harm("client"), "1.0.0")
        .token("ann-mcp-token-0123456789".to_owned())
        .input_handler(waiting)
        .connect(place.url())
        .await
        .unwrap();
    let _said = client.start_tool("say", json!({"text": harm("value")})).await.unwrap();
    let _asked = client.start_tool("ask", json!({})).await.unwrap();
    let [ada, ann] = ["ada", "ann"].map(|name| {
        let file = driver.outlive.folder.file(&format!("{name}-token"));
        fs::write(&file, format!("{name}-decides-0123456789")).unwrap();
        file
    });
    let as_person = |file: &str| ["--server", place.url(), "--token-file", file].map(str::to_owned);
    let [as_ada, as_ann] = [as_person(&ada), as_person(&ann)];
    let run = |words: &[&str], person: &[String; 4]| {
        let person = person.iter().map(String::as_str);
        driver.run(&words.iter().copied().chain(person).collect::<Vec<_>>())
    };
    let request = |person: &[String; 4], kind: &str| {
        let words = ["inbox", "list", "--json"].into_iter();
        let words: Vec<&str> = words.chain(person.iter().map(String::as_str)).collect();
        let listed = driver.outlive.run(&words).out;
        let mut all = listed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let found = all.find(|request| request["kind"] == kind)?;
        found["task"].as_str().map(str::to_owned)
    };
    let approval = until("the approval is open", || request(&as_ada, "approval")).await;
    let form = until("the form is open", || request(&as_ann, "form")).await;

    run(&["inbox", "list"], &as_ada).check(Kind::Talk, &["value"]);
    run(&["inbox", "list", "--json"], &as_ada).check(Kind::Talk, &["value", "message"]);
    run(&["inbox", "list"], &as_ann).check(Kind::Talk, &["question"]);
    let whole = ["tool", "message", "value", "client"];
    run(&["inbox", "show", &approval], &as_ada).check(Kind::Talk, &whole);
    run(&["inbox", "show", &approval, "--json"], &as_ada).check(Kind::Talk, &whole);
    run(&["inbox", "show", &harm("unknown")], &as_ada).check(Kind::Talk, &["unknown"]);
    run(&["inbox", "link", &approval], &as_ada).check(Kind::Talk, &[]);
    run(&["inbox", "link", &approval, "--to", &harm("to")], &as_ada).check(Kind::Talk, &[]);
    let asked = run(&["inbox", "approve", &approval], &as_ada);
    asked.until("Approve this call?");
    asked.terminal.press(&["n"]);
    asked.check(Kind::Talk, &whole);
    let reason = harm("reason");
    run(&["inbox", "deny", &approval, "--yes", "--reason", &reason], &as_ada)
        .check(Kind::Talk, &[]);
    let answer = run(&["inbox", "answer", &form], &as_ann);
    answer.until("<title>");
    answer.terminal.enter("x");
    answer.check(Kind::Talk, &["question", "title"]);
    driver.run(&["console", "--no-browser", "--server", &harm("url")]).check(Kind::Talk, &["url"]);
}
