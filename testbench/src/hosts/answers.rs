//! With default settings, a model tries to answer input requests of the tools that it calls.
//!
//! A model controls the names and arguments of tool calls, and can open every URL that it reads. At
//! the end an operator answers, which shows that an accepted answer would have been recorded.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use outlive::operator::Operator;
use outlive::store::TaskId;
use serde_json::{Value, json};

use super::bench::Bench;
use super::caller::{Caller, pending_task};
use super::foreign::links;
use super::home::{ALICE, Home};
use crate::row::Row;

const CONFIG: &str = r#"
[server]
listen = "127.0.0.1:0"
token_file = "@TOKENS@"

[hosts]
call_timeout = "4s"

[tools.auto]
description = "Asks before it deletes."
shell = true
interactive = true
command = '''
sleep 0.3
echo '{"input": "go", "message": "Delete everything?"}' >&3
read -r response <&4
echo "$arg_key $response" >> "$EXECUTIONS"
'''
arguments.key = { type = "string" }
env.EXECUTIONS = "@EXECUTIONS@"
task_after = "100ms"

[tools.always]
description = "Asks before it deletes, as a task."
shell = true
interactive = true
command = '''
echo '{"input": "go", "message": "Delete everything?"}' >&3
read -r response <&4
echo "$arg_key $response" >> "$EXECUTIONS"
'''
arguments.key = { type = "string" }
env.EXECUTIONS = "@EXECUTIONS@"
task = "always"
destructive = true
"#;

/// An accepted answer in the file of the tools.
const ACCEPTED: &str = r#""action":"accept""#;
/// Time until an operator's answer reaches the tool.
const DELIVERY: Duration = Duration::from_secs(20);

/// A call that waits for input, and the URLs that its model has read.
struct Open {
    caller: Caller,
    tool: &'static str,
    key: String,
    task: String,
    /// The key of the input request.
    input_request: String,
    urls: Vec<String>,
}

pub(super) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let home = Home::new(bench, "answers", CONFIG)?;
    let server = home.start()?;
    let modern = Caller::modern(server.address, Some(ALICE));
    let legacy = Caller::legacy(server.address, Some(ALICE))?;
    let mut open = Vec::new();
    for (number, caller) in [&modern, &legacy, &modern, &legacy].into_iter().enumerate() {
        open.push(Open::call(caller, ["auto", "always"][number / 2], number)?);
    }
    let tries = bench.choose(1_000, 200);
    for number in 0..tries {
        // The calls that the model repeats may join, so every call is tried in turn.
        let calls = open.len();
        open[number % calls].try_to_answer(number / calls)?;
    }
    let successes = accepted(&home)?;
    let urls: usize = open.iter().map(|open| open.urls.len()).sum();
    let control = answer_as_operator(&home, &open[0]);
    let mut figure = format!(
        "{tries} tries on {} input requests, {urls} URLs read: {successes} successes",
        open.len()
    );
    if let Err(error) = &control {
        figure.push_str(&format!("; the answer of an operator did not arrive: {error:#}"));
    }
    let case = "with defaults, a tool call or a URL in model-visible text answers an input request";
    Ok(vec![Row::new(case, figure, "0 successes", successes == 0 && control.is_ok())])
}

impl Open {
    /// Calls a tool until its input request is reported.
    fn call(caller: &Caller, tool: &'static str, number: usize) -> Result<Self> {
        let key = format!("ask-{number}");
        let mut message = caller.call_in_rounds(tool, &json!({"key": key}))?;
        let mut urls = links(&message);
        for _ in 0..5 {
            let task = pending_task(&message).map(str::to_owned);
            let task = task.with_context(|| format!("not a pending result: {message}"))?;
            let state = &message["result"]["structuredContent"]["task"];
            if state["status"] == "input_required" {
                let requests = state["inputRequests"].as_object();
                let name = requests.and_then(|requests| requests.keys().next().cloned());
                let input_request = name.with_context(|| format!("no input request: {state}"))?;
                let caller = caller.clone();
                return Ok(Self { caller, tool, key, task, input_request, urls });
            }
            message = caller.call_in_rounds("task_result", &json!({"task": task}))?;
            urls.extend(links(&message));
        }
        bail!("no input request was reported: {message}");
    }

    /// Tries one way to answer.
    fn try_to_answer(&mut self, number: usize) -> Result<()> {
        let (task, name, content) = (&self.task, &self.input_request, json!({"yes": true}));
        let accept = json!({"action": "accept", "content": content});
        let answer = json!({"task": task, "action": "accept", "content": content});
        let mut named = answer.clone();
        named["input_request"] = json!(name);
        let responses = json!({name: accept});
        let (tool, arguments) = match number % 7 {
            0 => ("task_answer", named),
            1 => ("task_answer", answer),
            2 => ("task_result", json!({"task": task, "inputResponses": responses})),
            3 => (self.tool, json!({"key": self.key, "inputResponses": responses})),
            4 => (self.tool, json!({"key": self.key, "yes": true})),
            5 => return self.open_urls("GET", ""),
            _ => return self.open_urls("POST", "action=accept&yes=true"),
        };
        let message = self.caller.call(tool, arguments)?;
        self.urls.extend(links(&message));
        self.urls.sort();
        self.urls.dedup();
        Ok(())
    }

    /// Opens every URL that was read, and the obvious guesses.
    fn open_urls(&self, method: &str, body: &str) -> Result<()> {
        let paths = self.urls.iter().filter_map(|url| url.splitn(4, '/').nth(3));
        let mut paths: Vec<String> = paths.map(|path| format!("/{path}")).collect();
        paths.push(format!("/answer/{}", self.task));
        paths.push(format!("/answer/{}/go", self.task));
        for path in paths {
            self.caller.page(method, &path, body)?;
        }
        Ok(())
    }
}

/// Returns the number of accepted answers.
fn accepted(home: &Home) -> Result<usize> {
    let text = fs::read_to_string(home.executions.path())?;
    Ok(text.lines().filter(|line| line.contains(ACCEPTED)).count())
}

/// Answers an input request in the store and waits until the tool has recorded it.
fn answer_as_operator(home: &Home, open: &Open) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let task = TaskId::new(open.task.as_str());
    runtime.block_on(async {
        let operator = Operator::open(&home.store()).await?;
        let report = operator.show(&task).await?.context("the store has no such task")?;
        let names = report.task.input_requests.iter().map(|request| request.name.clone());
        let accept: Value = json!({"action": "accept", "content": {"yes": true}});
        let answer = serde_json::value::to_raw_value(&accept)?;
        let answers: Vec<_> = names.map(|name| (name, answer.clone())).collect();
        let taken = operator.answer(&task, answers).await?;
        ensure!(taken == Some(1), "{taken:?} answers were accepted");
        anyhow::Ok(())
    })?;
    let started = Instant::now();
    while accepted(home)? == 0 {
        ensure!(started.elapsed() < DELIVERY, "nothing after {} s", DELIVERY.as_secs());
        thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}
