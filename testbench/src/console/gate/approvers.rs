//! People who read their inbox and vote, at a random replica.

use std::collections::HashSet;
use std::thread;
use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use super::killer::Point;
use super::kinds::Fate;
use super::ledger::Acknowledged;
use super::shared::Shared;
use crate::console::people::Person;
use crate::console::visitor::{Visitor, argument, encode, text};
use crate::crash::random::Random;

/// Time between two reads of the inbox.
const PAUSE: Duration = Duration::from_millis(60);

/// A person and the requests that the person has settled for itself.
pub(super) struct Approver<'s> {
    shared: &'s Shared<'s>,
    person: Person,
    /// Whether the person withdraws calls as an operator.
    cancels: bool,
    random: Random,
    /// Requests that the person has voted on.
    done: HashSet<(String, String)>,
}

impl<'s> Approver<'s> {
    pub(super) fn new(
        shared: &'s Shared<'s>,
        person: Person,
        cancels: bool,
        random: Random,
    ) -> Self {
        Self { shared, person, cancels, random, done: HashSet::new() }
    }

    /// Votes until the campaign is over.
    pub(super) fn work(&mut self) {
        while !self.shared.is_over() {
            // A server that is killed during a request loses its response.
            let _ = self.turn();
            thread::sleep(PAUSE);
        }
    }

    fn turn(&mut self) -> Result<()> {
        let replica = self.random.below(self.shared.site.replicas());
        let visitor = self.shared.site.visitor(replica, self.person.deciding)?;
        let inbox = visitor.read("inbox?limit=200")?;
        let mut items = inbox["requests"].as_array().cloned().unwrap_or_default();
        // People start at different requests. Otherwise half of their votes come too late.
        let first = self.random.below(items.len());
        items.rotate_left(first);
        for item in items {
            let at = (text(&item["task"]).to_owned(), text(&item["key"]).to_owned());
            let key = argument(&item, "key");
            if !self.done.contains(&at) && self.decide(&visitor, replica, key, &at)? {
                self.done.insert(at);
            }
        }
        Ok(())
    }

    /// Votes or cancels as the fate of the call says. Returns whether the person is done with the
    /// request.
    fn decide(
        &mut self,
        visitor: &Visitor,
        replica: usize,
        key: &str,
        (task, name): &(String, String),
    ) -> Result<bool> {
        let accepts = match Fate::of_key(key) {
            Some(Fate::Approve) => true,
            Some(Fate::Deny) => false,
            Some(Fate::Withdraw) if self.cancels => {
                self.announce(&[Point::Withdraw], key, vec![replica]);
                let reply = visitor.post(&format!("tasks/{task}/cancel"), &json!({}))?;
                return Ok(matches!(reply.status, 200 | 404 | 409));
            }
            _ => return Ok(true),
        };
        let request = visitor.read(&format!("inputs/{task}/{}", encode(name)))?;
        if request["can_answer"] != true {
            return Ok(request["state"] != "open");
        }
        if accepts {
            self.shared.ledger.approves(words(&request), self.person.name);
        }
        self.announce(&[Point::Vote], key, vec![replica]);
        let reply = visitor.vote(&request, accepts).inspect_err(|_| self.shared.killer.lose())?;
        if reply.status == 200 {
            self.shared.ledger.acknowledge(Acknowledged {
                task: task.clone(),
                request: name.clone(),
                person: self.person.name,
                accepts,
            });
            if accepts && reply.json()["state"] == "settled" {
                self.announce(&[Point::Start, Point::End], key, self.shared.replicas());
            }
        }
        Ok(matches!(reply.status, 200 | 409 | 410))
    }

    fn announce(&mut self, points: &[Point], key: &str, victims: Vec<usize>) {
        self.shared.killer.announce(points, key, victims, self.random.next());
    }
}

/// The words that the operating system receives, as the page shows them.
fn words(request: &Value) -> Vec<String> {
    let words = request["runs"].as_array().map(Vec::as_slice).unwrap_or_default();
    words.iter().map(|word| text(word).to_owned()).collect()
}
