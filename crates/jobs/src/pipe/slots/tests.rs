//! Tests of the slots, without processes and sockets.

use bytes::Bytes;
use proptest::prelude::*;
use tokio::time::Duration;

use super::{AttachState, Bodies, PeerId, Peers, SlotState, Slots};
use crate::pipe::peers::{MAX_FRAMES, Outbox, Peer};

/// A time that no test reaches.
const LONG: Option<Duration> = Some(Duration::from_secs(3600));

fn slots(memory: usize) -> Slots {
    Slots::storing(Bodies::limited("/nonexistent/overflow".into(), memory, 0))
}

struct Gateways {
    peers: Peers,
    outboxes: Vec<Outbox>,
}

impl Gateways {
    /// Returns gateways with the numbers from 0.
    fn new(count: u64) -> Self {
        let (mut peers, mut outboxes) = (Peers::default(), Vec::new());
        for id in 0..count {
            let (peer, outbox, _) = Peer::new(false);
            peers.add(id, peer);
            outboxes.push(outbox);
        }
        Self { peers, outboxes }
    }

    /// Returns the messages that were sent to a gateway.
    fn sent(&mut self, to: PeerId) -> Vec<String> {
        let outbox = &mut self.outboxes[usize::try_from(to).unwrap()];
        let next = || outbox.try_recv().ok();
        std::iter::from_fn(next)
            .map(|queued| String::from_utf8(queued.frame.body.to_vec()).unwrap())
            .collect()
    }
}

fn response(id: u64) -> String {
    format!(r#"{{"id":{id},"result":{{}}}}"#)
}

fn progress(id: u64, done: u32) -> String {
    format!(r#"{{"method":"p","params":{{"progressToken":{id},"progress":{done}}}}}"#)
}

fn input(id: &str) -> String {
    format!(r#"{{"id":{id},"method":"ask","params":{{}}}}"#)
}

fn input_response(id: &str) -> String {
    format!(r#"{{"id":{id},"result":{{"action":"accept"}}}}"#)
}

fn take(slots: &mut Slots, message: String, gateways: &Gateways) {
    slots.take(Bytes::from(message), &gateways.peers).expect("there is room");
}

#[test]
fn message_goes_to_owner_of_its_request() {
    let (mut slots, mut gateways) = (slots(1000), Gateways::new(2));
    assert!(slots.open(7, 0, None) && slots.open(8, 1, None));
    assert!(!slots.open(7, 1, None), "the ID is in use");
    take(&mut slots, progress(8, 1), &gateways);
    take(&mut slots, response(7), &gateways);
    take(&mut slots, response(7), &gateways);
    take(&mut slots, response(9), &gateways);
    take(&mut slots, r#"{"method":"log"}"#.to_owned(), &gateways);
    let log = r#"{"method":"log"}"#.to_owned();
    assert_eq!(gateways.sent(0), [response(7), log.clone()]);
    let unexpected = [response(7), response(9)];
    assert_eq!(gateways.sent(1), [&[progress(8, 1)][..], &unexpected, &[log]].concat());
    assert_eq!(slots.states().len(), 1, "a response closes its slot");
}

#[test]
fn response_to_cancelled_request_of_a_gateway_that_has_gone_is_not_reported() {
    let (mut slots, mut gateways) = (slots(1000), Gateways::new(2));
    slots.open(7, 0, None);
    assert_eq!(slots.leave(0), [7]);
    take(&mut slots, response(7), &gateways);
    assert_eq!(gateways.sent(1), Vec::<String>::new());
    take(&mut slots, response(7), &gateways);
    assert_eq!(gateways.sent(1), [response(7)], "the second response");
}

#[test]
fn retained_request_survives_its_gateway_with_progress_inputs_and_response() {
    let (mut slots, mut gateways) = (slots(1000), Gateways::new(2));
    slots.open(7, 0, None);
    slots.open(8, 0, None);
    slots.retain(7, 0, LONG.unwrap());
    take(&mut slots, input("0"), &gateways);
    slots.carry(7, 0, "0", 1);
    assert_eq!(gateways.sent(0), [input("0")]);
    assert_eq!(slots.leave(0), [8], "only the request that is not retained is cancelled");
    take(&mut slots, progress(7, 1), &gateways);
    take(&mut slots, progress(7, 2), &gateways);
    take(&mut slots, input("1"), &gateways);
    assert_eq!(gateways.sent(1), [input("1")], "an input request without a call goes anywhere");

    let attached = slots.attach(7, 1);
    assert_eq!((attached.state, attached.carried), (AttachState::Open, 1));
    assert_eq!(attached.inputs.len(), 1);
    slots.flush(1, &gateways.peers);
    assert_eq!(gateways.sent(1), [progress(7, 2), input("0")]);
    take(&mut slots, response(7), &gateways);
    assert_eq!(gateways.sent(1), [response(7)]);
    // A third gateway gets the response again, until it is no longer needed.
    let attached = slots.attach(7, 0);
    assert_eq!(attached.state, AttachState::Responded);
    slots.flush(0, &gateways.peers);
    assert_eq!(gateways.sent(0), [response(7), input("0")]);
    assert!(!slots.close(7, 1), "the former owner cannot close it");
    slots.close(7, 0);
    assert_eq!(slots.attach(7, 0).state, AttachState::Gone);
    assert_eq!(slots.attach(9, 0).state, AttachState::Unknown);
}

#[test]
fn first_response_to_input_request_counts_and_former_owner_is_rejected() {
    let (mut slots, gateways) = (slots(1000), Gateways::new(2));
    slots.open(7, 0, LONG);
    take(&mut slots, input(r#""a""#), &gateways);
    slots.carry(7, 0, r#""a""#, 1);
    slots.attach(7, 1);
    let reply = input_response(r#""a""#);
    assert!(!slots.respond(0, reply.as_bytes()), "gateway 0 lost the call");
    assert!(slots.respond(1, reply.as_bytes()));
    assert!(!slots.respond(1, reply.as_bytes()), "the second response");
    assert!(!slots.respond(1, br#"{"id":"b","result":{}}"#), "no such request");
    assert!(!slots.respond(1, b"hello"));
}

#[test]
fn withdrawn_input_request_is_reported_to_its_gateway_only() {
    let (mut slots, mut gateways) = (slots(1000), Gateways::new(2));
    slots.open(7, 0, LONG);
    take(&mut slots, input("3"), &gateways);
    gateways.sent(0);
    let withdrawn = r#"{"method":"cancelled","params":{"requestId":3}}"#.to_owned();
    take(&mut slots, withdrawn.clone(), &gateways);
    assert_eq!(gateways.sent(0), [withdrawn]);
    assert!(gateways.sent(1).is_empty());
    assert!(!slots.respond(0, input_response("3").as_bytes()));
}

#[test]
fn gateway_without_room_gets_newest_progress_and_every_response() {
    let (mut slots, mut gateways) = (slots(100_000), Gateways::new(1));
    for id in 0..2 {
        slots.open(id, 0, None);
    }
    for done in 0..2000 {
        take(&mut slots, progress(0, done), &gateways);
    }
    take(&mut slots, response(1), &gateways);
    assert_eq!(gateways.sent(0).len(), MAX_FRAMES);
    slots.flush(0, &gateways.peers);
    assert_eq!(gateways.sent(0), [progress(0, 1999), response(1)]);
    take(&mut slots, response(0), &gateways);
    assert_eq!(gateways.sent(0), [response(0)]);
    assert!(slots.is_empty());
}

#[test]
fn message_without_room_is_returned_and_fits_later() {
    let (mut slots, gateways) = (slots(50), Gateways::new(1));
    slots.open(1, 0, LONG);
    slots.open(2, 0, LONG);
    let long = format!(r#"{{"id":1,"result":"{}"}}"#, "x".repeat(28));
    take(&mut slots, long, &gateways);
    let second = Bytes::from(response(2));
    assert_eq!(slots.take(second.clone(), &gateways.peers), Err(second.clone()));
    slots.close(1, 0);
    assert_eq!(slots.take(second, &gateways.peers), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn unowned_slot_expires_after_its_time_or_thirty_seconds_without_task() {
    let (mut slots, _) = (slots(1000), ());
    slots.open(1, 0, Some(Duration::from_secs(100)));
    slots.open(2, 0, Some(Duration::from_secs(100)));
    slots.label(2, 0, "task");
    assert_eq!(slots.deadline(), None, "a gateway owns them");
    assert!(slots.leave(0).is_empty());
    let label = slots.states().into_iter().find(|slot| slot.id == 2).and_then(|slot| slot.label);
    assert_eq!(label.as_deref(), Some("task"));
    tokio::time::advance(Duration::from_secs(29)).await;
    assert!(slots.expire().is_empty());
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!(slots.expire(), [1]);
    tokio::time::advance(Duration::from_secs(70)).await;
    assert_eq!(slots.expire(), [2]);
    assert_eq!(slots.deadline(), None);
}

#[test]
fn end_of_process_keeps_responses_only() {
    let (mut slots, gateways) = (slots(1000), Gateways::new(1));
    slots.open(1, 0, LONG);
    slots.open(2, 0, LONG);
    take(&mut slots, response(1), &gateways);
    slots.end();
    let states: Vec<SlotState> = slots.states();
    assert_eq!(states.len(), 1);
    assert!(states[0].has_response);
    assert_eq!(slots.attach(2, 0).state, AttachState::Gone);
}

proptest! {
    /// Whatever a process and its gateways send, stored bytes stay within the limit, and nothing
    /// is stored when no slot and no input request is left.
    #[test]
    fn any_sequence_stays_within_limits(steps in prop::collection::vec((0..10u8, 0..4u64, 0..3u64), 1..200)) {
        let (mut slots, mut gateways) = (slots(200), Gateways::new(3));
        for (step, id, peer) in steps {
            let message = match step {
                0 => response(id),
                1 => progress(id, 1),
                2 => input(&id.to_string()),
                3 => format!(r#"{{"method":"c","params":{{"requestId":{id}}}}}"#),
                _ => String::new(),
            };
            match step {
                0..=3 => drop(slots.take(message.into(), &gateways.peers)),
                4 => {
                    slots.open(id, peer, LONG.filter(|_| peer > 0));
                }
                5 => drop(slots.attach(id, peer)),
                6 => slots.carry(id, peer, &id.to_string(), 1),
                7 => {
                    slots.respond(peer, input_response(&id.to_string()).as_bytes());
                }
                8 => {
                    slots.close(id, peer);
                }
                _ => drop(slots.leave(peer)),
            }
            for gateway in 0..3 {
                slots.flush(gateway, &gateways.peers);
                gateways.sent(gateway);
            }
            prop_assert!(slots.bodies.used() <= 200);
        }
        slots.end();
        for gateway in 0..3 {
            for id in 0..4 {
                slots.close(id, gateway);
            }
        }
        prop_assert_eq!(slots.bodies.used(), 0);
        prop_assert!(slots.is_empty());
    }
}
