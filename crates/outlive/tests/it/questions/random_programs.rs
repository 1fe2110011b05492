//! Random handlers, interrupted in random ways, come to what they come to without interruption.
//!
//! A program is a tree of steps, retried steps, permanent failures, questions, timers, blocks,
//! scopes and parallel branches. It is run once on a wire where it waits for its answers, which is
//! what it means; and then over rounds in which the client answers some questions, none, or all,
//! with extras that nobody asked for. The result must be the same, and so must be what was done,
//! counted outside.

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
    /// Fails so often before it succeeds.
    Retried(u32),
    /// Fails for good.
    Fails,
    Ask,
    Sleep,
    Emit,
    Scope(Vec<Op>),
    /// Branches that run side by side.
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

/// What was done, counted where no run can forget it.
#[derive(Clone, Default)]
struct World(Arc<Mutex<BTreeMap<String, u32>>>);

impl World {
    /// Does something; the how manieth time it is.
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

/// Runs a list of operations. `path` is unique to it; what it has learnt so far steers nothing, but
/// is in the result.
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

/// Polls all branches until all have ended. By hand, so that each wake polls all of them.
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

/// Where programs run.
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

    /// Runs on a wire where the handler waits, and answers at once whatever is asked.
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

    /// Runs over rounds. `choices` says how many of the open questions are answered in each.
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
            params["inputResponses"] = json!({"nobody asked": {"action": "decline"}});
            let OrderedMap(asked) = required.requests;
            // When the choices are used up everything is answered, so that it ends.
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

/// The answer depends on the question alone.
fn answer(request: &InputRequest) -> Value {
    let asked = serde_json::to_value(request).unwrap();
    let message = asked["params"]["message"].as_str().unwrap();
    json!({"action": "accept", "content": {"yes": message.len().is_multiple_of(2)}})
}

/// The text, and the blocks in any order: branches that run side by side emit as they come.
fn result(outcome: Outcome) -> Value {
    let Outcome::Complete(MethodResult::Tool(result)) = outcome else {
        panic!("a result was expected: {outcome:?}");
    };
    let mut content: Vec<String> =
        result.content.iter().map(|block| serde_json::to_string(block).unwrap()).collect();
    content.sort();
    json!({"content": content, "isError": result.is_error})
}

/// Programs of each test; those over rounds are ten thousand together.
const EACH: u32 = 5_000;

#[test]
fn rounds_that_answer_everything_change_neither_the_result_nor_the_work() {
    let stage = Stage::new(false);
    check(|program, _| {
        let stage = &stage;
        async move { (stage.rounds(&program, &[]).await, stage.waiting(&program).await) }
    });
}

#[test]
fn rounds_that_answer_this_or_that_change_neither_the_result_nor_the_work() {
    let stage = Stage::new(false);
    check(|program, choices| {
        let stage = &stage;
        async move { (stage.rounds(&program, &choices).await, stage.waiting(&program).await) }
    });
}

#[test]
fn replaying_at_every_question_changes_neither_the_result_nor_the_work() {
    let (stage, replaying) = (Stage::new(false), Stage::new(true));
    check(|program, _| {
        let (stage, replaying) = (&stage, &replaying);
        async move { (replaying.waiting(&program).await, stage.waiting(&program).await) }
    });
}

/// What came of a program, and what was done for it.
type Seen = (Value, BTreeMap<String, u32>);

/// Compares what a program comes to in some way with what it means.
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
