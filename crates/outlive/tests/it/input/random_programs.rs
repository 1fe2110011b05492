//! Random handlers with random interruptions return the same result as without interruptions.
//!
//! A program is a tree of steps, retried steps, permanent errors, input requests, timers, segments,
//! scopes and parallel branches. Each program runs once in the legacy era, where it waits for
//! input. Then it runs over modern rounds in which the client responds to none, some or all input
//! requests and adds unsolicited responses. Both runs must return the same result and execute the
//! same operations, which are counted outside the journal.

use std::{
    collections::BTreeMap,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use outlive::{
    server::{
        Durable, Error, Principal, RateLimit, Result, Server, State, Tool, durable::Retry,
        extract::RawParams, layer::Outcome,
    },
    wire::{BooleanSchema, ContentBlock, InputRequest, OrderedMap, RequestedSchema},
};
use outlive_protocol::{Accepted, Message, MessageContext, MethodResult, Notify, Run, Session};
use proptest::{prelude::*, test_runner::TestRunner};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::to_raw_value};

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Op {
    Step,
    /// Fails this many times before it succeeds.
    Retried(u32),
    /// Fails permanently.
    Fails,
    Ask,
    Sleep,
    Emit,
    Scope(Vec<Op>),
    /// Parallel branches.
    Join(Vec<Vec<Op>>),
}

fn program() -> impl Strategy<Value = Vec<Op>> {
    let leaf = prop_oneof![
        3 => Just(Op::Step),
        1 => (0..3u32).prop_map(Op::Retried),
        1 => Just(Op::Fails),
        3 => Just(Op::Ask),
        1 => Just(Op::Sleep),
        1 => Just(Op::Emit),
    ];
    let op = leaf.prop_recursive(3, 10, 3, |inner| {
        let ops = prop::collection::vec(inner, 0..3);
        prop_oneof![
            ops.clone().prop_map(Op::Scope),
            prop::collection::vec(ops, 1..4).prop_map(Op::Join),
        ]
    });
    prop::collection::vec(op, 0..4)
}

/// Counts of executed operations, kept outside the journal.
#[derive(Clone, Default)]
struct World(Arc<Mutex<BTreeMap<String, u32>>>);

impl World {
    /// Counts an execution and returns its number.
    fn done(&self, what: &str) -> u32 {
        let mut done = self.0.lock().unwrap();
        let times = done.entry(what.to_owned()).or_default();
        *times += 1;
        *times
    }

    fn take(&self) -> BTreeMap<String, u32> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

type Branch<'a> = Pin<Box<dyn Future<Output = Result<String>> + Send + 'a>>;

/// Runs a list of operations. `path` is its unique name. The collected values do not affect control
/// flow, but are part of the result.
fn interpret<'a>(cx: &'a Durable, world: &'a World, path: String, ops: &'a [Op]) -> Branch<'a> {
    Box::pin(async move {
        let mut seen = String::new();
        for (index, op) in ops.iter().enumerate() {
            let here = format!("{path}.{index}");
            let key = index.to_string();
            let value = match op {
                Op::Step => {
                    let step = async || Ok(format!("s{}", world.done(&here)));
                    cx.step(&key, step).await?
                }
                Op::Retried(fails) => {
                    let step = async |_| match world.done(&here) {
                        time if time <= *fails => Err(Error::new("not yet")),
                        time => Ok(format!("r{time}")),
                    };
                    cx.step_retry(&key, Retry::attempts(*fails + 1), step).await?
                }
                Op::Fails => {
                    let step = async || {
                        let time = world.done(&here);
                        Err::<String, _>(Error::new(format!("f{time}")).permanent())
                    };
                    cx.step(&key, step).await.unwrap_or_else(|error| error.to_string())
                }
                Op::Ask => {
                    let schema =
                        RequestedSchema::default().with_required("yes", BooleanSchema::default());
                    let answer: Value = cx.elicit_with(&key, here.as_str(), schema).await?;
                    format!("a{}", answer["yes"])
                }
                Op::Sleep => {
                    cx.sleep(&key, Duration::from_millis(1)).await?;
                    "t".to_owned()
                }
                Op::Emit => {
                    let scope = cx.scope(&key);
                    scope.emit(ContentBlock::text(here.as_str())).await?;
                    "e".to_owned()
                }
                Op::Scope(ops) => interpret(&cx.scope(&key), world, here, ops).await?,
                Op::Join(branches) => {
                    let scopes: Vec<Durable> =
                        (0..branches.len()).map(|branch| cx.scope((&*key, branch))).collect();
                    let branches = branches.iter().zip(&scopes).enumerate();
                    let running = branches.map(|(branch, (ops, scope))| {
                        interpret(scope, world, format!("{here}.{branch}"), ops)
                    });
                    join(running.collect()).await?.join("|")
                }
            };
            seen.push_str(&format!("{value};"));
        }
        Ok(format!("({seen})"))
    })
}

/// Joins branches. Every wake polls all of them.
async fn join(mut branches: Vec<Branch<'_>>) -> Result<Vec<String>> {
    let mut ended: Vec<Option<Result<String>>> = branches.iter().map(|_| None).collect();
    std::future::poll_fn(|task| {
        for (branch, ended) in branches.iter_mut().zip(&mut ended) {
            if ended.is_none()
                && let std::task::Poll::Ready(result) = branch.as_mut().poll(task)
            {
                *ended = Some(result);
            }
        }
        match ended.iter().all(Option::is_some) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    })
    .await;
    ended.into_iter().flatten().collect()
}

async fn run(cx: Durable, RawParams(params): RawParams, world: State<World>) -> Result<String> {
    #[derive(Deserialize)]
    struct Params {
        arguments: Arguments,
    }
    #[derive(Deserialize)]
    struct Arguments {
        program: Vec<Op>,
    }
    let Params { arguments } = serde_json::from_str(params.get())?;
    interpret(&cx, &world, String::new(), &arguments.program).await
}

/// A server for programs, and its counters.
struct Stage {
    server: Server,
    world: World,
}

impl Stage {
    fn new(replays: bool) -> Self {
        let world = World::default();
        let input = raw(&json!({"type": "object"}));
        let mut builder = Server::builder("programs", "1")
            .state(world.clone())
            .limits(|limits| {
                limits.max_rounds = 10_000;
                limits.max_open_inputs = 1_000;
                limits.max_request_state_bytes = 1 << 20;
            })
            .rate_limit_invalid_rounds(RateLimit::per_second(1e9))
            .tool(Tool::new("run", run).input_schema(input));
        if replays {
            builder = builder.replay_on_input();
        }
        Self { server: builder.build().unwrap(), world }
    }

    fn begin(&self, message: &Value, session: Option<&Arc<Session>>) -> Accepted {
        let arrival =
            MessageContext { session: session.cloned(), ..MessageContext::of(Principal::LOCAL) };
        self.server.endpoint().accept(&Bytes::from(message.to_string()), arrival)
    }

    /// Runs a program in the legacy era and responds to every input request immediately.
    async fn waiting(&self, program: &[Op]) -> Seen {
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "test", "version": "1"},
        }});
        let Accepted::Handshake(_, session) = self.begin(&hello, None) else {
            panic!("the handshake is accepted");
        };
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": "run", "arguments": {"program": program},
        }});
        self.world.take();
        let mut run = call_of(self.begin(&call, Some(&session)));
        let outcome = loop {
            match run.next().await.unwrap() {
                Message::Notify(Notify::Ask { id, request }) => {
                    let answer = answer(&request);
                    assert!(session.asked().answer(id, Ok(raw(&answer))));
                }
                Message::Last(outcome) => break outcome.unwrap(),
                _ => {}
            }
        };
        (result(outcome), self.world.take())
    }

    /// Runs a program over rounds. `choices` says how many open input requests get a response in
    /// each round.
    async fn rounds(&self, program: &[Op], choices: &[usize]) -> Seen {
        let mut params = json!({
            "name": "run",
            "arguments": {"program": program},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
            },
        });
        let mut choices = choices.iter().copied();
        self.world.take();
        loop {
            let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
            let mut run = call_of(self.begin(&call, None));
            let outcome = loop {
                if let Message::Last(outcome) = run.next().await.unwrap() {
                    break outcome.unwrap();
                }
            };
            let required = match outcome {
                Outcome::InputRequired(required) => required,
                other => return (result(other), self.world.take()),
            };
            params["requestState"] = required.state.into();
            params["inputResponses"] = json!({"unknown key": {"action": "decline"}});
            let OrderedMap(asked) = required.requests;
            // After the last choice every input request gets a response, so that the call ends.
            let choice = choices.next().unwrap_or(usize::MAX);
            let count = if choice == usize::MAX { asked.len() } else { choice % (asked.len() + 1) };
            for turn in 0..count {
                let (key, request) = &asked[turn.wrapping_add(choice) % asked.len()];
                params["inputResponses"][key] = answer(request);
            }
        }
    }
}

fn call_of(accepted: Accepted) -> Run {
    match accepted {
        Accepted::Call(run) => run,
        other => panic!("a call was expected: {other:?}"),
    }
}

fn raw(value: &Value) -> outlive::wire::RawJson {
    to_raw_value(value).unwrap()
}

/// The response depends only on the input request.
fn answer(request: &InputRequest) -> Value {
    let asked = serde_json::to_value(request).unwrap();
    let message = asked["params"]["message"].as_str().unwrap();
    json!({"action": "accept", "content": {"yes": message.len().is_multiple_of(2)}})
}

/// Returns the text and the sorted segments, because parallel branches emit in any order.
fn result(outcome: Outcome) -> Value {
    let Outcome::Complete(MethodResult::Tool(result)) = outcome else {
        panic!("a result was expected: {outcome:?}");
    };
    let mut content: Vec<String> =
        result.content.iter().map(|block| serde_json::to_string(block).unwrap()).collect();
    content.sort();
    json!({"content": content, "isError": result.is_error})
}

/// Programs per test. The two tests over rounds run ten thousand together.
const EACH: u32 = 5_000;

#[test]
fn random_programs_over_full_rounds_match_uninterrupted_run() {
    let stage = Stage::new(false);
    check(|program, _| {
        let stage = &stage;
        async move { (stage.rounds(&program, &[]).await, stage.waiting(&program).await) }
    });
}

#[test]
fn random_programs_over_partial_rounds_match_uninterrupted_run() {
    let stage = Stage::new(false);
    check(|program, choices| {
        let stage = &stage;
        async move { (stage.rounds(&program, &choices).await, stage.waiting(&program).await) }
    });
}

#[test]
fn random_programs_with_replay_on_input_match_uninterrupted_run() {
    let (stage, replaying) = (Stage::new(false), Stage::new(true));
    check(|program, _| {
        let (stage, replaying) = (&stage, &replaying);
        async move { (replaying.waiting(&program).await, stage.waiting(&program).await) }
    });
}

/// The result of a program, and the counts of its operations.
type Seen = (Value, BTreeMap<String, u32>);

/// Compares the outcomes of each program in two executions.
fn check<F: Future<Output = (Seen, Seen)>>(play: impl Fn(Vec<Op>, Vec<usize>) -> F) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let config = ProptestConfig { cases: EACH, failure_persistence: None, ..Default::default() };
    let choices = prop::collection::vec(0..8usize, 0..6);
    TestRunner::new(config)
        .run(&(program(), choices), |(program, choices)| {
            let (seen, meant) = runtime.block_on(play(program, choices));
            prop_assert_eq!(seen, meant);
            Ok(())
        })
        .unwrap();
}
