//! The digest of a call that people approve, and its record in the journal of the task, together
//! with the hash of the tool's definition.

use std::{collections::HashSet, fmt};

use outlive_protocol::{Call, ProtocolError};
use outlive_tasks::{JournalEntry, JournalSnapshot};
use outlive_wire::RawJson;
use serde::{
    Deserialize, Serialize,
    de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::{RawValue, to_raw_value};

use crate::server::{
    env::environment::Env,
    run::bound_args::{self, hash},
};

/// Journal key of the record of the first approval request. Later ones have their number appended.
/// Keys of authors never have this prefix.
const RECORD: &str = "#gate";

/// Journal key of the mark that the handler has started.
const STARTED: &str = "#gate#started";

/// Record of an approval request in the journal of its task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GateRecord {
    /// Digest of the call that people see and approve.
    #[serde(rename = "d")]
    pub(crate) digest: String,
    /// Hash of the tool's definition at the request.
    #[serde(rename = "f")]
    pub(crate) definition: String,
    /// When the request times out, in milliseconds since 1970.
    #[serde(rename = "u")]
    pub(crate) due: u64,
    /// Time in which people decide, in milliseconds.
    #[serde(rename = "t")]
    pub(crate) decision_millis: u64,
    /// Time in which a caller that left returns after the approval, in milliseconds.
    #[serde(rename = "s")]
    pub(crate) start_millis: u64,
    /// Next step of a client whose call did not wait until the decision.
    #[serde(rename = "n")]
    pub(crate) next: NextStep,
    /// Key-value key of a denial of this call.
    #[serde(rename = "k")]
    pub(crate) denial: String,
    /// Time for which a denial stands, in milliseconds.
    #[serde(rename = "l")]
    pub(crate) denial_millis: u64,
    /// Key-value key of the place among the undecided calls of the caller.
    #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
    pub(crate) place: Option<String>,
}

/// Next step of a client whose call did not wait until the decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum NextStep {
    /// The client has the task: it follows and cancels it.
    #[serde(rename = "t")]
    Task,
    /// A pending result names the task, for the fallback tools.
    #[serde(rename = "p")]
    Pending,
    /// The client can only send the same call again.
    #[serde(rename = "c")]
    CallAgain,
}

/// The records of a gated task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GateJournal {
    /// Record of the last approval request.
    pub(crate) last: GateRecord,
    /// Number of approval requests.
    pub(crate) issued: u32,
    /// Whether the handler has started.
    pub(crate) has_started: bool,
}

impl GateRecord {
    /// Adds the record of the first approval request to the journal of a new task.
    pub(crate) fn sign(&self, journal: &mut JournalSnapshot) -> Result<(), ProtocolError> {
        let raw = to_raw_value(self).map_err(ProtocolError::internal)?;
        journal.entries.insert(RECORD.to_owned(), JournalEntry::State(raw));
        Ok(())
    }

    /// Returns whether an approval of this request covers a call under a definition.
    pub(crate) fn covers(&self, digest: &str, definition: &str) -> bool {
        self.digest == digest && self.definition == definition
    }
}

impl GateJournal {
    /// Takes the records out of the journal of a task; `None` if the task is not gated.
    pub(crate) fn take(journal: &mut JournalSnapshot) -> Option<Self> {
        if !journal.entries.contains_key(RECORD) {
            return None;
        }
        let has_started = journal.entries.remove(STARTED).is_some();
        let (mut last, mut issued) = (None, 0);
        while let Some(JournalEntry::State(raw)) = journal.entries.remove(&record_key(issued + 1)) {
            last = serde_json::from_str(raw.get()).ok().or(last);
            issued += 1;
        }
        Some(Self { last: last?, issued, has_started })
    }
}

/// Returns the journal key of the record of an approval request, by its number.
pub(crate) fn record_key(number: u32) -> String {
    match number {
        1 => RECORD.to_owned(),
        number => format!("{RECORD}#{number}"),
    }
}

/// Returns the journal entry that marks the start of the handler.
pub(crate) fn start_mark() -> (String, RawJson) {
    (STARTED.to_owned(), RawValue::NULL.to_owned())
}

/// Returns the digest of a call: server, tool and canonical arguments.
pub(crate) fn call_digest(env: &Env, call: &Call) -> Result<String, ProtocolError> {
    let arguments = bound_args::digest(call.arguments()?, &None)?;
    Ok(hash(&[env.profile.info.name.as_str(), &call.name()?, &arguments]))
}

/// Returns the key-value key of a denial: it stands for the person, else the principal.
pub(crate) fn denial_key(call: &Call, digest: &str) -> String {
    let principal = call.principal();
    let whose = match principal.person() {
        Some(person) => ["person", person],
        None => ["principal", principal.key()],
    };
    format!("denial/{}", hash(&[whose[0], whose[1], digest]))
}

/// Checks that no object in a JSON text has two members with one name. Parsers disagree about such
/// an object, so people could approve other arguments than the tool reads.
///
/// # Errors
///
/// Returns the name of the member and its position.
pub(crate) fn check_unique(json: &str) -> Result<(), String> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    Unique.deserialize(&mut deserializer).map_err(|error| error.to_string())
}

/// Reads any value and rejects duplicate members.
struct Unique;

impl<'de> DeserializeSeed<'de> for Unique {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Unique {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(Self)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let mut names = HashSet::new();
        while let Some(name) = members.next_key::<String>()? {
            members.next_value_seed(Self)?;
            if let Some(name) = names.replace(name) {
                return Err(A::Error::custom(format_args!("member `{name}` occurs twice")));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use outlive_tasks::{JournalEntry, JournalSnapshot};
    use serde_json::value::to_raw_value;

    use super::{GateJournal, GateRecord, NextStep, check_unique, record_key, start_mark};

    fn record(definition: &str) -> GateRecord {
        GateRecord {
            digest: "digest".to_owned(),
            definition: definition.to_owned(),
            due: 7,
            decision_millis: 5,
            start_millis: 600_000,
            next: NextStep::CallAgain,
            denial: "denial/x".to_owned(),
            denial_millis: 600_000,
            place: None,
        }
    }

    #[test]
    fn duplicate_member_is_found_at_any_depth() {
        for bad in [
            r#"{"a":1,"a":2}"#,
            r#"{"a":1,"\u0061":1}"#,
            r#"{"a":{"b":[{"c":1,"d":2,"c":null}]}}"#,
            r#"[[{"a":{},"b":{},"a":{}}]]"#,
        ] {
            let error = check_unique(bad).unwrap_err();
            assert!(error.contains("occurs twice"), "{bad}: {error}");
        }
        for good in [
            "{}",
            r#"{"a":1,"b":{"a":1},"c":[{"a":1},{"a":1}]}"#,
            r#"{"a":-1.5e3,"b":18446744073709551615,"c":"é","d":null,"e":true,"f":-7}"#,
        ] {
            check_unique(good).unwrap();
        }
    }

    #[test]
    fn last_record_and_start_mark_are_taken_out_of_journal() {
        let mut journal = JournalSnapshot::default();
        assert_eq!(GateJournal::take(&mut journal), None);
        record("one").sign(&mut journal).unwrap();
        let second = to_raw_value(&record("two")).unwrap();
        journal.entries.insert(record_key(2), JournalEntry::State(second));
        let before = journal.clone();
        let taken = GateJournal::take(&mut journal).unwrap();
        assert_eq!((taken.issued, taken.has_started), (2, false));
        assert_eq!(taken.last, record("two"));
        assert!(journal.entries.is_empty());
        let mut journal = before;
        let (key, mark) = start_mark();
        journal.entries.insert(key, JournalEntry::State(mark));
        assert!(GateJournal::take(&mut journal).unwrap().has_started);
    }

    #[test]
    fn approval_covers_only_its_call_and_definition() {
        let record = record("one");
        assert!(record.covers("digest", "one"));
        assert!(!record.covers("digest", "two") && !record.covers("other", "one"));
    }
}
