//! Random orders of requests, votes, timeouts, cancellations, reloads and restarts, against a model
//! of the states of an approval.

use std::{collections::BTreeSet, time::Duration};

use outlive::{
    server::{Server, tasks::TaskPolicy},
    store::InboxItem,
};
use proptest::{prelude::*, test_runner::TestRunner};
use serde_json::Value;

use super::world::{
    HOUR, World, approval_of, call, get, id_of, modern, settle, tool, two_of_three, with_tasks,
};
use crate::support::pipe::{Pipe, text};

/// Default time after which the engine parks an idle run, and a second more.
const PARK_AFTER: Duration = Duration::from_secs(11);

const PEOPLE: [&str; 3] = ["ada", "ben", "cid"];

#[derive(Clone, Debug)]
enum Op {
    /// A call with one of two arguments.
    Request(u8),
    /// The vote of a person on a call.
    Vote(prop::sample::Index, usize, bool),
    /// The decision timeout of all requests ends, and so do the denials.
    Expire,
    Cancel(prop::sample::Index),
    /// The definition of the tool changes.
    Reload,
    /// Another process continues.
    Restart,
}

fn op() -> impl Strategy<Value = Op> {
    let call = || any::<prop::sample::Index>();
    prop_oneof![
        4 => (0..2u8).prop_map(Op::Request),
        10 => (call(), 0..3usize, prop::bool::weighted(0.8)).prop_map(|(c, p, a)| Op::Vote(c, p, a)),
        1 => Just(Op::Expire),
        1 => call().prop_map(Op::Cancel),
        2 => Just(Op::Reload),
        1 => Just(Op::Restart),
    ]
}

/// State of a call in the model.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Open { definition: u32, votes: BTreeSet<usize> },
    Ran,
    Denied,
    Expired,
    Withdrawn,
}

#[derive(Default)]
struct Model {
    definition: u32,
    calls: Vec<(u8, State)>,
    denied: BTreeSet<u8>,
}

impl Model {
    /// Returns whether a request creates a task.
    fn request(&mut self, argument: u8) -> bool {
        if self.denied.contains(&argument) {
            return false;
        }
        self.calls.push((argument, self.open()));
        true
    }

    fn open(&self) -> State {
        State::Open { definition: self.definition, votes: BTreeSet::new() }
    }

    fn vote(&mut self, call: usize, person: usize, accepts: bool) {
        let again = self.open();
        let now = self.definition;
        let (argument, state) = &mut self.calls[call];
        let State::Open { definition, votes } = state else { return };
        if !accepts && !votes.contains(&person) {
            self.denied.insert(*argument);
            *state = State::Denied;
            return;
        }
        votes.insert(person);
        if votes.len() == 2 {
            *state = if *definition == now { State::Ran } else { again };
        }
    }

    fn expire(&mut self) {
        self.denied.clear();
        for (_, state) in &mut self.calls {
            if matches!(state, State::Open { .. }) {
                *state = State::Expired;
            }
        }
    }

    fn cancel(&mut self, call: usize) {
        let (_, state) = &mut self.calls[call];
        if matches!(state, State::Open { .. }) {
            *state = State::Withdrawn;
        }
    }
}

/// A server with its client, and the requests of its calls.
struct Run {
    world: World,
    server: Server,
    pipe: Pipe,
    model: Model,
    tasks: Vec<(Value, InboxItem)>,
}

impl Run {
    fn new() -> Self {
        let world = World::default();
        let server = server(&world, 0);
        let pipe = modern(&server);
        Self { world, server, pipe, model: Model::default(), tasks: Vec::new() }
    }

    async fn apply(&mut self, op: &Op) {
        let calls = self.tasks.len();
        match op {
            Op::Request(argument) => {
                let reply = with_tasks(&mut self.pipe, "tools/call", call(&argument.to_string()));
                let reply = reply.await;
                match self.model.request(*argument) {
                    true => {
                        let open = self.world.open().await;
                        let item = open.into_iter().find(|item| item.task == id_of(&reply));
                        self.tasks.push((reply, item.expect("the request is in the inbox")));
                    }
                    false => assert_eq!(approval_of(&reply), "denied"),
                }
            }
            Op::Vote(call, person, accepts) if calls > 0 => {
                let call = call.index(calls);
                self.world.vote(&self.tasks[call].1, PEOPLE[*person], *accepts).await;
                self.model.vote(call, *person, *accepts);
            }
            Op::Cancel(call) if calls > 0 => {
                let call = call.index(calls);
                let id = serde_json::json!({"taskId": self.tasks[call].0["taskId"]});
                with_tasks(&mut self.pipe, "tasks/cancel", id).await;
                self.model.cancel(call);
            }
            Op::Vote(..) | Op::Cancel(_) => {}
            Op::Expire => {
                self.world.advance(HOUR + Duration::from_secs(1)).await;
                // A run that waits in memory reads the time when it is parked.
                tokio::time::sleep(PARK_AFTER).await;
                self.model.expire();
            }
            Op::Reload => {
                self.model.definition += 1;
                self.server.add_tool(definition(self.model.definition)).unwrap();
            }
            Op::Restart => {
                self.server.drain(Duration::from_secs(1)).await;
                self.server = server(&self.world, self.model.definition);
                self.pipe = modern(&self.server);
            }
        }
        settle().await;
    }

    async fn check(&mut self) {
        let open = self.world.open().await;
        let mut expected = Vec::new();
        for ((task, item), (argument, state)) in self.tasks.iter_mut().zip(&self.model.calls) {
            let shown = get(&mut self.pipe, task).await;
            let requests: Vec<_> = open.iter().filter(|open| open.task == item.task).collect();
            let is_open = matches!(state, State::Open { .. });
            assert_eq!(requests.len(), usize::from(is_open), "{state:?} {shown}");
            match state {
                State::Open { votes, .. } => {
                    assert_eq!(shown["status"], "working", "{shown}");
                    assert_eq!(requests[0].approvals as usize, votes.len());
                    *item = requests[0].clone();
                }
                State::Ran => {
                    expected.push(format!("{argument} prod"));
                    let says = format!("deployed {argument} to prod");
                    assert_eq!(text(&shown["result"]), says, "{shown}");
                }
                State::Denied => assert_eq!(approval_of(&shown["result"]), "denied"),
                State::Expired => assert_eq!(approval_of(&shown["result"]), "expired"),
                State::Withdrawn => assert_eq!(shown["status"], "cancelled", "{shown}"),
            }
        }
        let mut runs = self.world.runs.all();
        runs.sort();
        expected.sort();
        assert_eq!(runs, expected, "each approved call ran once, and no other one");
    }
}

fn definition(number: u32) -> outlive::server::Tool {
    let rule = two_of_three().decision_timeout(HOUR).max_open(100);
    tool(rule).task(TaskPolicy::auto()).definition(number.to_string())
}

fn server(world: &World, number: u32) -> Server {
    let keep = |config: outlive::server::tasks::TaskConfig| {
        config.ttl(100 * HOUR).engine(|engine| engine.retention = 1_000 * HOUR)
    };
    world.builder(keep).tool(definition(number)).build().unwrap()
}

#[test]
fn random_orders_of_events_match_the_model() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    let mut config = ProptestConfig::with_cases(48);
    config.max_shrink_iters = 200;
    let ops = prop::collection::vec(op(), 1..20);
    let result = TestRunner::new(config).run(&ops, |ops| {
        runtime.block_on(async {
            let mut run = Run::new();
            for op in &ops {
                run.apply(op).await;
                run.check().await;
            }
        });
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}
