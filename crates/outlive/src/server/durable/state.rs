//! What a call remembers over its rounds, and how the client keeps it: sealed, and bound to this
//! caller, this method, this target and these arguments.
//! Spec: <https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr>

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use outlive_protocol::{Call, ProtocolError};
use outlive_tasks::{Journal, JournalEntry, JournalSnapshot, OpenInputRequest};
use outlive_wire::{CreateMessageResult, ElicitResult, InputRequest, RawJson};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::{
    super::{
        Cx,
        core::{Core, caller_key},
        tasks::CleanupReason,
    },
    bounds::{bounds, carried, task_bounds},
    millis, now, request, salient,
    spill::Spill,
    upgrade::{Upgrade, migrated},
};
use crate::hex::hex;

/// How far the clocks of replicas may differ.
pub(super) const SKEW: Duration = Duration::from_secs(30);

/// Where the id of the call stands in the journal of a task. No key of an author's begins so.
const CALL: &str = "#call";

/// The form of what is sealed. One that this version does not know is refused like any other.
const VERSION: u8 = 1;

/// What a call has done and asked, over all its rounds.
pub(in crate::server) struct Durability {
    pub(in crate::server) journal: Arc<Journal>,
    /// Whether the call has become a task: its questions wait in the store then.
    in_task: AtomicBool,
    /// Which task.
    task_id: Mutex<Option<String>>,
    /// Whether the call may become a task, and whether it has to before it can go on.
    pub(super) may_become_task: AtomicBool,
    pub(super) wants_task: AtomicBool,
    /// Whether it becomes one before its first step.
    pub(super) promotes_at_step: AtomicBool,
    /// Whether the engine has asked the task to stop. A client that leaves asks nothing of a task.
    task_cancelled: AtomicBool,
    /// Why the task ended before its work did, for what is done after it.
    unfinished: Option<CleanupReason>,
    /// Why the run of a task cannot go on: what it has recorded does not decode.
    unreadable: OnceLock<String>,
    /// The name of the round that the client has presented.
    jti: Option<String>,
    /// Whether something was done in the rounds before, or this one may be presented once only.
    has_effects: bool,
    /// Minted when it is first needed, and kept over all rounds.
    call_id: OnceLock<String>,
    /// How many rounds came before this one.
    pub(super) round: AtomicU32,
    sheds: u32,
    /// Where the store has the journal of earlier rounds, until it is read back.
    spilled: Mutex<Option<Spilled>>,
    /// Whether the journal has been with the store, and so goes there again.
    has_spilled: AtomicBool,
}

/// A journal that the store has.
struct Spilled {
    place: String,
    revision: Option<Arc<str>>,
    upgrade: Upgrade,
}

/// What is sealed. The names are short because it travels.
#[derive(Serialize, Deserialize)]
struct Sealed {
    #[serde(rename = "v")]
    version: u8,
    #[serde(rename = "c")]
    call_id: String,
    #[serde(rename = "n")]
    round: u32,
    #[serde(rename = "j")]
    jti: String,
    #[serde(rename = "i")]
    issued: u64,
    #[serde(rename = "x")]
    expires: u64,
    #[serde(rename = "h", default, skip_serializing_if = "Option::is_none")]
    revision: Option<Arc<str>>,
    #[serde(rename = "s", default, skip_serializing_if = "is_zero")]
    sheds: u32,
    /// What each open question is, in their order.
    #[serde(rename = "k", default, skip_serializing_if = "Vec::is_empty")]
    kinds: Vec<Kind>,
    #[serde(rename = "l")]
    journal: JournalSnapshot,
    /// Where the store has the rest of the journal.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    spilled: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// What an answer has to be.
#[derive(Clone, Copy, Serialize, Deserialize)]
enum Kind {
    #[serde(rename = "e")]
    Elicit,
    #[serde(rename = "s")]
    Sample,
    #[serde(rename = "r")]
    Roots,
}

impl Kind {
    fn of(request: &InputRequest) -> Self {
        match request {
            InputRequest::CreateMessage(_) => Self::Sample,
            InputRequest::ListRoots => Self::Roots,
            _ => Self::Elicit,
        }
    }

    fn check(self, raw: &RawValue) -> Result<(), String> {
        match self {
            Self::Elicit => request::read::<ElicitResult>(raw).map(drop),
            Self::Sample => request::read::<CreateMessageResult>(raw).map(drop),
            Self::Roots => request::read_roots(raw).map(drop),
        }
    }
}

impl Durability {
    /// That of a call; a new one for a call that has none yet.
    pub(in crate::server) fn of(cx: &Cx) -> &Durability {
        cx.call().attachment(|| {
            let journal = Journal::new(bounds(cx.core(), cx.call()));
            rehearse(cx.core(), &journal);
            Self::new(journal)
        })
    }

    fn new(journal: Journal) -> Self {
        Self {
            journal: Arc::new(journal),
            in_task: AtomicBool::new(false),
            task_id: Mutex::default(),
            may_become_task: AtomicBool::new(false),
            wants_task: AtomicBool::new(false),
            promotes_at_step: AtomicBool::new(false),
            task_cancelled: AtomicBool::new(false),
            unfinished: None,
            unreadable: OnceLock::new(),
            jti: None,
            has_effects: false,
            call_id: OnceLock::new(),
            round: AtomicU32::new(0),
            sheds: 0,
            spilled: Mutex::default(),
            has_spilled: AtomicBool::new(false),
        }
    }

    /// That of a task that is begun, or begun again.
    pub(in crate::server) fn of_task(
        core: &Core,
        id: &str,
        mut journal: JournalSnapshot,
        upgrade: &Upgrade,
    ) -> Self {
        let call_id = match journal.entries.remove(CALL) {
            Some(JournalEntry::State(raw)) => serde_json::from_str(raw.get()).ok(),
            _ => None,
        };
        let mark = upgrade.resume(&mut journal);
        let durability = Self::new(Journal::from_snapshot(task_bounds(core), journal));
        if let Some((key, note)) = mark {
            durability.journal.put_marker(key, note);
        }
        durability.in_task.store(true, Ordering::Release);
        *durability.lock_task_id() = Some(id.to_owned());
        if let Some(id) = call_id {
            // Nobody else can have set it yet.
            let _: Result<(), String> = durability.call_id.set(id);
        }
        durability
    }

    /// That of a task that has ended, for what is done after it.
    pub(in crate::server) fn after_task(
        core: &Core,
        id: &str,
        journal: JournalSnapshot,
        upgrade: &Upgrade,
        why: CleanupReason,
    ) -> Self {
        Self { unfinished: Some(why), ..Self::of_task(core, id, journal, upgrade) }
    }

    /// What the task has recorded cannot be read any more: its run ends here, and not as the
    /// handler wants.
    pub(super) fn cannot_go_on(&self, why: String) {
        self.journal.quarantine();
        // The first is what it fails with.
        let _: Result<(), String> = self.unreadable.set(why);
    }

    /// Why the run cannot go on, if it cannot.
    pub(in crate::server) fn unreadable(&self) -> Option<&str> {
        self.unreadable.get().map(String::as_str)
    }

    /// Why the task ended before its work did, if it has.
    pub(in crate::server) fn unfinished(&self) -> Option<CleanupReason> {
        self.unfinished
    }

    /// Everything so far, for a task to begin with; the call's id travels with it, so that keys
    /// for foreign systems stay what they are.
    pub(in crate::server) fn keep(&self) -> JournalSnapshot {
        let mut journal = self.journal.snapshot();
        if let Ok(id) = to_raw_value(self.call_id()) {
            journal.entries.insert(CALL.to_owned(), JournalEntry::State(id));
        }
        journal
    }

    /// The call becomes a task, or does not after all.
    pub(in crate::server) fn set_task(&self, core: &Core, call: &Call, task: Option<&str>) {
        let bounds = if task.is_some() { task_bounds(core) } else { bounds(core, call) };
        self.journal.set_bounds(bounds);
        self.in_task.store(task.is_some(), Ordering::Release);
        *self.lock_task_id() = task.map(str::to_owned);
    }

    /// The task that the call has become, if it has.
    pub(in crate::server) fn task_id(&self) -> Option<String> {
        self.lock_task_id().clone()
    }

    fn lock_task_id(&self) -> MutexGuard<'_, Option<String>> {
        self.task_id.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name of the round that this is; `None` for the first, which no client has a state for.
    pub(in crate::server) fn round_name(&self) -> Option<&str> {
        self.jti.as_deref()
    }

    /// The same, if presenting it again would do again what has effects.
    pub(in crate::server) fn round_with_effects(&self) -> Option<&str> {
        self.jti.as_deref().filter(|_| self.has_effects)
    }

    /// Whether the call has become a task.
    pub(in crate::server) fn is_task(&self) -> bool {
        self.in_task.load(Ordering::Acquire)
    }

    /// Notes that the engine has asked the task to stop.
    pub(in crate::server) fn cancel_task(&self) {
        self.task_cancelled.store(true, Ordering::Release);
    }

    /// Whether the engine has asked the task to stop.
    pub(in crate::server) fn is_task_cancelled(&self) -> bool {
        self.task_cancelled.load(Ordering::Acquire)
    }

    pub(super) fn call_id(&self) -> &str {
        self.call_id.get_or_init(|| random_id().unwrap_or_default())
    }

    /// How many rounds came before this one.
    pub(super) fn rounds(&self) -> u32 {
        self.round.load(Ordering::Relaxed)
    }

    /// Whether the call may be sent away once more.
    pub(super) fn may_shed(&self, cx: &Cx) -> bool {
        self.sheds < cx.core().profile.limits.max_yields
    }

    /// Where the store has what is missing of the journal.
    pub(super) fn spilled(&self) -> Option<String> {
        self.lock_spilled().as_ref().map(|spilled| spilled.place.clone())
    }

    /// Takes back what the store had of the journal.
    pub(super) fn refill(&self, journal: JournalSnapshot) {
        let Some(Spilled { revision, upgrade, .. }) = self.lock_spilled().take() else { return };
        self.has_spilled.store(true, Ordering::Release);
        self.journal.merge(migrated(journal, revision.as_deref(), &upgrade));
    }

    fn lock_spilled(&self) -> MutexGuard<'_, Option<Spilled>> {
        self.spilled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Seals everything for the client to keep, but for what the store has to keep.
    pub(super) fn seal(
        &self,
        cx: &Cx,
        upgrade: &Upgrade,
        questions: &[OpenInputRequest],
    ) -> Result<(String, Option<Spill>), ProtocolError> {
        let (core, call) = (cx.core(), cx.call());
        let issued = now(cx);
        let random =
            || random_id().ok_or_else(|| ProtocolError::internal("no random bytes for a state"));
        let call_id = match self.call_id.get() {
            Some(id) => id.clone(),
            None => random()?,
        };
        let mut journal = self.journal.snapshot();
        let spills = core.tasks.is_some()
            && (self.has_spilled.load(Ordering::Acquire)
                || self.journal.holds_secrets()
                || self.journal.size() > carried(core));
        let spill = match spills {
            true => Some(
                Spill::of(&mut journal)
                    .ok_or_else(|| ProtocolError::internal("no random bytes for a journal"))?,
            ),
            false => None,
        };
        let sealed = Sealed {
            version: VERSION,
            call_id,
            round: self.rounds() + 1,
            jti: random()?,
            issued,
            expires: issued.saturating_add(millis(core.profile.limits.request_state_ttl)),
            revision: upgrade.revision.clone(),
            sheds: self.sheds + u32::from(questions.is_empty()),
            kinds: questions.iter().map(|question| Kind::of(&question.request)).collect(),
            journal,
            spilled: spill.as_ref().map(|spill| spill.place.clone()),
        };
        let content = serde_json::to_vec(&sealed).map_err(ProtocolError::internal)?;
        let context = salient::context(core, call, &upgrade.salient)?;
        let state = core
            .profile
            .seal
            .seal(&content, &context.parts())
            .ok_or_else(|| ProtocolError::internal("no random bytes for a state"))?;
        Ok((state, spill))
    }
}

/// Reads what a call brings along from an earlier round. A call that brings nothing is a first
/// round and costs nothing here.
pub(in crate::server) fn open(
    core: &Core,
    call: &Call,
    upgrade: &Upgrade,
) -> Result<(), ProtocolError> {
    if call.request_state().is_none() && call.input_responses().is_none() {
        return Ok(());
    }
    let given: BTreeMap<String, RawJson> = match call.input_responses() {
        None => BTreeMap::new(),
        Some(text) => serde_json::from_str(text).map_err(|error| {
            ProtocolError::invalid_params(format!(
                "`params.inputResponses` must be an object: {error}"
            ))
        })?,
    };
    let now = core.profile.clock.wall().duration_since(std::time::UNIX_EPOCH).map_or(0, millis);
    let Some(state) = call.request_state() else {
        let durability = Durability::new(Journal::new(bounds(core, call)));
        rehearse(core, &durability.journal);
        durability.journal.apply_responses(None, given, now);
        call.attachment(|| durability);
        return Ok(());
    };
    let sealed = match unseal(core, call, upgrade, &state?, now) {
        Some(sealed) => sealed,
        None => {
            slow_down(core, call)?;
            return Err(ProtocolError::InvalidRequestState);
        }
    };
    let asked = sealed.journal.input_requests.clone();
    let answered = check_answers(&sealed, &given)?;
    if !asked.is_empty() && !answered {
        // Nothing of what was asked is there: it will be asked again, and again.
        slow_down(core, call)?;
    }
    let Sealed { call_id, round, sheds, journal, revision, jti, spilled, .. } = sealed;
    // What is not here is there because there is much of it.
    let has_step = spilled.is_some()
        || journal
            .entries
            .values()
            .any(|entry| matches!(entry, JournalEntry::Value(_) | JournalEntry::Secret(_)));
    let spilled = spilled.map(|place| Spilled {
        place,
        revision: revision.clone(),
        upgrade: upgrade.clone(),
    });
    let journal = migrated(journal, revision.as_deref(), upgrade);
    let durability = Durability {
        round: AtomicU32::new(round),
        sheds,
        call_id: call_id.into(),
        jti: Some(jti),
        has_effects: has_step || upgrade.single_use,
        spilled: Mutex::new(spilled),
        ..Durability::new(Journal::from_snapshot(bounds(core, call), journal))
    };
    rehearse(core, &durability.journal);
    durability.journal.apply_responses(Some(&asked), given, now);
    call.attachment(|| durability);
    Ok(())
}

/// Opens a state; whatever is wrong with it is the same to the client.
fn unseal(core: &Core, call: &Call, upgrade: &Upgrade, state: &str, now: u64) -> Option<Sealed> {
    let context = salient::context(core, call, &upgrade.salient).ok()?;
    let content = core.profile.seal.open(state, &context.parts())?;
    let sealed: Sealed = serde_json::from_slice(&content).ok()?;
    let skew = millis(SKEW);
    let known = sealed.version == VERSION;
    let in_time =
        sealed.issued <= now.saturating_add(skew) && now <= sealed.expires.saturating_add(skew);
    // With a store, a round that comes again is told what came of it.
    let fresh = || match &core.used_rounds {
        _ if core.tasks.is_some() || !upgrade.single_use => true,
        Some(used) => used.first_use(&sealed.jti, sealed.expires, now),
        None => false,
    };
    (known && in_time && fresh()).then_some(sealed)
}

/// Whether any of the questions is answered; what cannot be an answer refuses the call.
fn check_answers(
    sealed: &Sealed,
    given: &BTreeMap<String, RawJson>,
) -> Result<bool, ProtocolError> {
    let mut answered = false;
    for (key, kind) in sealed.journal.input_requests.iter().zip(&sealed.kinds) {
        let name = sealed.journal.name(key);
        let Some(raw) = given.get(&name) else { continue };
        kind.check(raw).map_err(|why| {
            ProtocolError::invalid_params(format!("`params.inputResponses`: `{name}`: {why}"))
        })?;
        answered = true;
    }
    Ok(answered)
}

/// Counts a caller who makes us do the same again, and refuses one who does it too often.
fn slow_down(core: &Core, call: &Call) -> Result<(), ProtocolError> {
    let now = core.profile.clock.now();
    match core.in_vain.enter(&caller_key(call), now) {
        Ok(_) => Ok(()),
        Err(busy) => Err(ProtocolError::OverLimit {
            limit: "rate_limit_rounds_in_vain".into(),
            retry_after: busy.retry_after,
        }),
    }
}

/// Lets an author's test have its way with a journal.
fn rehearse(core: &Core, journal: &Journal) {
    if let Some(rehearsal) = &core.rehearsal {
        rehearsal.begin(journal);
    }
}

/// 128 random bits.
pub(in crate::server) fn random_id() -> Option<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(hex(&bytes))
}
