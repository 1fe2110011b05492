//! The rules of a decision: the people that may respond to an input request, and the effect of a
//! vote. All stores of this crate decide alike.

use super::{
    binding::Binding,
    decision_store::{Decision, DecisionOutcome, InboxReader, Vote},
    id::UnixMillis,
    input::Audience,
    operator::InputRequestState,
};

/// An input request at the moment of a vote. It is a request to the client or to people, not an
/// external event.
pub(super) struct Ballot<'a> {
    /// Person of the task.
    pub(super) person: Option<&'a str>,
    pub(super) audience: &'a Audience,
    pub(super) binding: Option<&'a Binding>,
    pub(super) state: InputRequestState,
    /// When the request times out.
    pub(super) due: Option<UnixMillis>,
    pub(super) votes: &'a [Vote],
}

impl Ballot<'_> {
    /// Returns the outcome of a decision, which [says](DecisionOutcome::is_recorded) whether the
    /// store records the vote.
    pub(super) fn outcome(&self, decision: &Decision, now: UnixMillis) -> DecisionOutcome {
        let person = decision.person.as_deref();
        if !may_respond(self.audience, self.person, person, &decision.scopes) {
            return DecisionOutcome::Unknown;
        }
        match self.state {
            InputRequestState::Open => {}
            InputRequestState::Answered => return DecisionOutcome::AlreadySettled,
            InputRequestState::Withdrawn => return DecisionOutcome::Withdrawn,
        }
        if self.due.is_some_and(|due| due <= now) {
            return DecisionOutcome::Expired;
        }
        if self.binding.is_some_and(|bound| decision.digest.as_ref() != Some(&bound.digest)) {
            return DecisionOutcome::DigestDiffers;
        }
        if self.votes.iter().any(|vote| Some(vote.person.as_str()) == person) {
            return DecisionOutcome::AlreadyVoted;
        }
        let needed = self.binding.map_or(1, |bound| bound.count);
        let approvals = approvals(self.votes) + 1;
        match decision.accepts && approvals < needed {
            true => DecisionOutcome::Counted { approvals, needed },
            false => DecisionOutcome::Settled,
        }
    }
}

/// Returns the number of approvals.
pub(super) fn approvals(votes: &[Vote]) -> u32 {
    votes.iter().map(|vote| u32::from(vote.accepts)).sum()
}

/// Returns whether a person may respond to an input request of a task of the person `of`. Without a
/// person, an operator responds.
fn may_respond(
    audience: &Audience,
    of: Option<&str>,
    person: Option<&str>,
    scopes: &[String],
) -> bool {
    match audience {
        Audience::Client if person.is_none() => true,
        Audience::Client | Audience::Caller => person.is_some() && person == of,
        people => {
            person.is_some_and(|person| of != Some(person) && people.contains(person, scopes))
        }
    }
}

/// Returns whether an inbox contains an open input request. `of` is principal and person of its
/// task, and `indexed` whether lists contain the task.
pub(super) fn is_in_inbox(
    reader: &InboxReader,
    audience: &Audience,
    (principal, of): (&str, Option<&str>),
    indexed: bool,
) -> bool {
    let person = reader.person.as_deref();
    let is_for = person.is_some() && may_respond(audience, of, person, &reader.scopes);
    let is_read = reader.principal.as_deref().is_none_or(|only| only == principal);
    is_read && (indexed || audience.is_people()) && (reader.all || is_for)
}

#[cfg(test)]
mod tests {
    use serde_json::value::to_raw_value;

    use super::{Ballot, is_in_inbox};
    use crate::store::{
        Audience, Binding, Decision, DecisionOutcome, InboxReader, InputRequestState, Vote,
    };

    fn vote(person: &str) -> Vote {
        Vote::new(person, true, "console", 1)
    }

    fn decision(person: Option<&str>, accepts: bool) -> Decision {
        let response = to_raw_value(&accepts).unwrap();
        let scopes = vec!["ops".to_owned()];
        Decision::new(person.map(str::to_owned), accepts, response)
            .scopes(scopes)
            .digest(Some("d".to_owned()))
    }

    #[test]
    fn audience_and_person_determine_right_to_respond() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        for (audience, person, expected) in [
            (Audience::Client, Some("ann"), DecisionOutcome::Settled),
            (Audience::Client, None, DecisionOutcome::Settled),
            (Audience::Client, Some("ben"), DecisionOutcome::Unknown),
            (Audience::Caller, Some("ann"), DecisionOutcome::Settled),
            (Audience::Caller, None, DecisionOutcome::Unknown),
            (Audience::Names(names(&["ben", "ann"])), Some("ben"), DecisionOutcome::Settled),
            (Audience::Names(names(&["ben", "ann"])), Some("ann"), DecisionOutcome::Unknown),
            (Audience::Names(names(&["ben", "ann"])), Some("cid"), DecisionOutcome::Unknown),
            (Audience::Names(names(&["ben"])), None, DecisionOutcome::Unknown),
            (Audience::Scope("ops".to_owned()), Some("cid"), DecisionOutcome::Settled),
            (Audience::Scope("ops".to_owned()), Some("ann"), DecisionOutcome::Unknown),
            (Audience::Scope("dev".to_owned()), Some("cid"), DecisionOutcome::Unknown),
        ] {
            let ballot = Ballot {
                person: Some("ann"),
                audience: &audience,
                binding: None,
                state: InputRequestState::Open,
                due: None,
                votes: &[],
            };
            assert_eq!(ballot.outcome(&decision(person, true), 1), expected, "{audience:?}");
        }
    }

    #[test]
    fn votes_count_until_enough_people_approve_or_one_denies() {
        let (audience, binding) = (Audience::Scope("ops".to_owned()), Binding::new("d", "h"));
        let binding = binding.count(3);
        let votes = [vote("ben")];
        let ballot = Ballot {
            person: Some("ann"),
            audience: &audience,
            binding: Some(&binding),
            state: InputRequestState::Open,
            due: Some(10),
            votes: &votes,
        };
        let outcome = |person, accepts, now| ballot.outcome(&decision(Some(person), accepts), now);
        assert_eq!(outcome("cid", true, 9), DecisionOutcome::Counted { approvals: 2, needed: 3 });
        assert_eq!(outcome("cid", false, 9), DecisionOutcome::Settled);
        assert_eq!(outcome("ben", false, 9), DecisionOutcome::AlreadyVoted);
        assert_eq!(outcome("cid", true, 10), DecisionOutcome::Expired);
        let other = decision(Some("cid"), true).digest(None);
        assert_eq!(ballot.outcome(&other, 9), DecisionOutcome::DigestDiffers);
        let enough = Ballot { votes: &[vote("ben"), vote("dan")], ..ballot };
        assert_eq!(enough.outcome(&decision(Some("cid"), true), 9), DecisionOutcome::Settled);
    }

    #[test]
    fn inbox_without_person_is_empty_unless_it_reads_all() {
        let (nobody, all) = (InboxReader::default(), InboxReader::default().all(true));
        let (ann, unknown) = (("p", Some("ann")), ("p", None));
        assert!(!is_in_inbox(&nobody, &Audience::Client, ann, true));
        assert!(is_in_inbox(&all, &Audience::Client, ann, true));
        assert!(!is_in_inbox(&all, &Audience::Client, ann, false));
        assert!(is_in_inbox(&all, &Audience::Scope("ops".to_owned()), unknown, false));
        let only = all.principal(Some("q".to_owned()));
        assert!(!is_in_inbox(&only, &Audience::Client, ann, true));
    }
}
