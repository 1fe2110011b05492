//! Lookups of another principal's tasks, results and answer links.
//!
//! Every lookup of a foreign ID must get the response of a made-up ID.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::bench::Bench;
use super::caller::{Caller, pending_task};
use super::home::{ALICE, BOB, Home};
use crate::crash::random::Random;
use crate::row::Row;

const CONFIG: &str = r#"
[server]
listen = "127.0.0.1:0"
token_file = "@TOKENS@"

[hosts]
call_timeout = "4s"
answers = ["link", "tool"]

[tools.render]
description = "Renders for a long time."
shell = true
command = '''
echo "secret-of-alice" >&2
echo "secret-of-alice"
sleep 3600
'''
task_after = "100ms"

[tools.print]
description = "Prints a large log."
shell = true
command = '''
for line in $(seq 1 5000); do echo "line $line: secret-of-alice and more text for a long line"; done
'''

[tools.ask]
description = "Asks before it deletes."
shell = true
interactive = true
command = '''
echo '{"input": "go", "message": "Delete secret-of-alice?"}' >&3
read -r response <&4
echo "$response" >> "$EXECUTIONS"
sleep 3600
'''
env.EXECUTIONS = "@EXECUTIONS@"
task_after = "100ms"
"#;

/// A text that only its principal may see.
const SECRET: &str = "secret-of-alice";

/// The tasks of the principal.
struct Targets {
    running: String,
    asking: String,
    /// A task with a cut result.
    ended: String,
    /// The path of an answer link.
    link: String,
}

/// The other principal, in three ways.
struct Stranger {
    modern: Caller,
    legacy: Caller,
    with_tasks: Caller,
}

type Lookup = fn(&Stranger, &str) -> io::Result<String>;

/// Every way to look up a task or a result by its ID.
const LOOKUPS: &[(&str, Lookup)] = &[
    ("task_result", |it, id| tool(&it.modern, "task_result", json!({"task": id}))),
    ("task_result, legacy", |it, id| tool(&it.legacy, "task_result", json!({"task": id}))),
    ("task_result, status", |it, id| {
        tool(&it.modern, "task_result", json!({"task": id, "wait_seconds": 0}))
    }),
    ("task_result, range", |it, id| {
        tool(&it.modern, "task_result", json!({"task": id, "from": 100}))
    }),
    ("task_result, find", |it, id| {
        tool(&it.legacy, "task_result", json!({"task": id, "find": "secret"}))
    }),
    ("task_cancel", |it, id| tool(&it.modern, "task_cancel", json!({"task": id}))),
    ("task_answer", |it, id| {
        let content = json!({"yes": true});
        let arguments =
            json!({"task": id, "input_request": "go", "action": "accept", "content": content});
        tool(&it.legacy, "task_answer", arguments)
    }),
    ("tasks/get", |it, id| ask(&it.with_tasks, "tasks/get", json!({"taskId": id}))),
    ("tasks/cancel", |it, id| ask(&it.with_tasks, "tasks/cancel", json!({"taskId": id}))),
    ("tasks/update", |it, id| {
        let accept = json!({"go": {"action": "accept", "content": {"yes": true}}});
        ask(&it.with_tasks, "tasks/update", json!({"taskId": id, "inputResponses": accept}))
    }),
    ("resources/read", |it, id| read(&it.modern, &format!("outlive://results/{id}/0"))),
    ("resources/read, range", |it, id| {
        read(&it.legacy, &format!("outlive://results/{id}/0?from=100&bytes=1000"))
    }),
];

pub(super) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let home = Home::new(bench, "foreign", CONFIG)?;
    let server = home.start()?;
    let alice = Caller::legacy(server.address, Some(ALICE))?;
    let targets = Targets::create(&alice)?;
    let stranger = Stranger {
        modern: Caller::modern(server.address, Some(BOB)),
        legacy: Caller::legacy(server.address, Some(BOB))?,
        with_tasks: Caller::with_tasks(server.address, Some(BOB)),
    };
    let count = bench.choose(10_000, 500);
    let mut random = Random::new(bench.seed);
    // The distinct responses of each lookup.
    let mut texts: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for number in 0..count {
        if number % 10 == 9 {
            let (name, text) = follow_changed_link(&stranger.modern, &targets.link, &mut random)?;
            texts.entry(name).or_default().insert(text);
            continue;
        }
        let (name, lookup) = LOOKUPS[random.below(LOOKUPS.len())];
        let is_made_up = number % 10 == 8;
        let made_up = targets.made_up(&mut random);
        let ids = [&targets.running, &targets.asking, &targets.ended];
        let id = if is_made_up { &made_up } else { ids[random.below(ids.len())] };
        let response = lookup(&stranger, id).with_context(|| format!("{name} got no response"))?;
        texts.entry(name).or_default().insert(response.replace(id.as_str(), "ID"));
    }
    let unchanged = targets.are_unchanged(&alice, &home);
    let leaks = texts.values().flatten().filter(|text| text.contains(SECRET)).count();
    let several: Vec<_> = texts.iter().filter(|(_, texts)| texts.len() > 1).collect();
    let mut figure = format!(
        "{count} lookups in {} ways: {leaks} leaks, {} ways with more than one response",
        texts.len(),
        several.len()
    );
    if let Some((name, texts)) = several.first() {
        let shown: Vec<String> =
            texts.iter().take(2).map(|text| text.chars().take(300).collect()).collect();
        figure.push_str(&format!("; {name}: {}", shown.join(" | ")));
    }
    if let Err(error) = &unchanged {
        figure.push_str(&format!("; a lookup changed a task: {error:#}"));
    }
    let is_met = leaks == 0 && several.is_empty() && unchanged.is_ok();
    let case = "lookups of foreign task IDs, links and results";
    let bar = "0 leaks, one response for foreign and made-up IDs, nothing changed";
    Ok(vec![Row::new(case, figure, bar, is_met)])
}

impl Targets {
    fn create(alice: &Caller) -> Result<Self> {
        let running = alice.call("render", json!({}))?;
        let asking = alice.call("ask", json!({}))?;
        let ended = alice.call("print", json!({}))?;
        let pending = |message: &Value| {
            let task = pending_task(message).map(str::to_owned);
            task.with_context(|| format!("not a pending result: {}", shown(message)))
        };
        let link = links(&asking).into_iter().find_map(|url| {
            let (_, path) = url.split_once("/answer/")?;
            Some(format!("/answer/{path}"))
        });
        let blocks = ended["result"]["content"].as_array();
        let uri = blocks.and_then(|blocks| blocks.iter().find_map(|block| block["uri"].as_str()));
        let ended_task = uri.and_then(|uri| uri.split('/').nth(3).map(str::to_owned));
        Ok(Self {
            running: pending(&running)?,
            asking: pending(&asking)?,
            ended: ended_task.with_context(|| format!("not a cut result: {}", shown(&ended)))?,
            link: link.with_context(|| format!("no answer link: {}", shown(&asking)))?,
        })
    }

    /// An ID of the same form.
    fn made_up(&self, random: &mut Random) -> String {
        let digit = |_| char::from_digit(random.below(16) as u32, 16).unwrap_or('0');
        (0..self.running.len()).map(digit).collect()
    }

    /// Checks that the tasks still run, and that no answer was given.
    fn are_unchanged(&self, alice: &Caller, home: &Home) -> Result<()> {
        for (task, status) in [(&self.running, "working"), (&self.asking, "input_required")] {
            let state = alice.call("task_result", json!({"task": task, "wait_seconds": 0}))?;
            let found = &state["result"]["structuredContent"]["task"]["status"];
            ensure!(found == status, "a task is {found} instead of {status}");
        }
        ensure!(home.executions.count()?.is_empty(), "an input request was answered");
        Ok(())
    }
}

/// Opens or submits an answer link with one changed character.
fn follow_changed_link(
    caller: &Caller,
    link: &str,
    random: &mut Random,
) -> Result<(&'static str, String)> {
    let token = link.strip_prefix("/answer/").unwrap_or(link);
    let at = random.below(token.len());
    let other = if token.as_bytes()[at] == b'A' { "B" } else { "A" };
    let changed = format!("{}{other}{}", &token[..at], &token[at + 1..]);
    let path = format!("/answer/{changed}");
    let (name, method, body) = match random.percent(50) {
        true => ("changed link, GET", "GET", ""),
        false => ("changed link, POST", "POST", "action=accept&yes=true"),
    };
    let (status, text) = caller.page(method, &path, body)?;
    Ok((name, format!("{status} {}", text.replace(&changed, "TOKEN"))))
}

/// Every URL in a message.
pub(super) fn links(message: &Value) -> Vec<String> {
    let text = message.to_string();
    let starts = text.match_indices("http").map(|(at, _)| &text[at..]);
    let is_end = |character: char| character.is_whitespace() || "\"\\<>)'`".contains(character);
    let urls = starts.map(|rest| rest.split(is_end).next().unwrap_or_default().to_owned());
    let urls = urls.map(|url| url.trim_end_matches(['.', ',', ';', ':']).to_owned());
    urls.filter(|url| url.contains("://")).collect()
}

#[expect(clippy::needless_pass_by_value, reason = "callers pass a `json!` value in place")]
fn tool(caller: &Caller, name: &str, arguments: Value) -> io::Result<String> {
    ask(caller, "tools/call", json!({"name": name, "arguments": arguments}))
}

fn read(caller: &Caller, uri: &str) -> io::Result<String> {
    ask(caller, "resources/read", json!({"uri": uri}))
}

/// Sends a request and returns its response without the ID of the message. A lookup that the server
/// rejects because of its rate says nothing about the ID, so it is sent again.
#[expect(clippy::needless_pass_by_value, reason = "callers pass a `json!` value in place")]
fn ask(caller: &Caller, method: &str, params: Value) -> io::Result<String> {
    let (mut message, started) = loop {
        let started = Instant::now();
        let message = caller.request(method, params.clone())?;
        let limit = &message["error"]["data"];
        match limit["retryAfterMs"].as_u64().filter(|_| limit["limit"] == "poll_rate") {
            Some(wait) => thread::sleep(Duration::from_millis(wait)),
            None => break (message, started),
        }
    };
    if let Some(message) = message.as_object_mut() {
        message.remove("id");
    }
    // A foreign task that runs must not make the caller wait.
    let waited = if started.elapsed() > Duration::from_secs(2) { "waited: " } else { "" };
    Ok(format!("{waited}{message}"))
}

fn shown(message: &Value) -> String {
    message.to_string().chars().take(500).collect()
}

#[cfg(test)]
mod tests {
    use super::{json, links};

    #[test]
    fn links_of_message_are_found() {
        let message =
            json!({"text": "open http://127.0.0.1:8000/answer/9c4e, or `https://a.example`"});
        assert_eq!(links(&message), ["http://127.0.0.1:8000/answer/9c4e", "https://a.example"]);
    }
}
