//! Approval requests, which a gate opens before the handler of a task starts.

use super::{
    ask::JournalInputs,
    inputs::{APPROVAL, ApprovalRequest},
    pending_writes::WriteTicket,
};

impl JournalInputs<'_> {
    /// Opens the approval request unless the journal has its response. The store ignores a request
    /// that it has already.
    pub fn open_approval(&self, approval: ApprovalRequest) {
        let mut state = self.0.lock();
        if state.entry(APPROVAL).is_none() && state.inputs.serial_of(APPROVAL).is_none() {
            state.inputs.push_bound(APPROVAL, approval);
        }
    }

    /// Issues the approval request again under another wire key, because its response does not
    /// cover the task. Returns the number of reissues.
    pub fn reissue_approval(&self, approval: ApprovalRequest) -> u32 {
        let mut state = self.0.lock();
        state.forget(APPROVAL);
        state.inputs.push_bound(APPROVAL, approval);
        state.inputs.count_reissue(APPROVAL)
    }

    /// Withdraws the approval request in the store. After the write, no vote settles the request,
    /// but a vote may have settled it before.
    pub fn withdraw_approval(&self) -> WriteTicket {
        let mut state = self.0.lock();
        state.inputs.close(APPROVAL);
        let name = state.inputs.name(APPROVAL);
        state.pending.get_or_insert_default().add_withdrawn(name);
        state.ticket()
    }

    /// Returns the wire key of the current approval request.
    pub fn approval_name(&self) -> String {
        self.0.lock().inputs.name(APPROVAL)
    }
}

#[cfg(test)]
mod tests {
    use outlive_wire::InputRequest;
    use serde_json::value::to_raw_value;

    use super::{APPROVAL, ApprovalRequest};
    use crate::{
        Journal, JournalLimits,
        store::{Audience, Binding},
    };

    fn journal() -> Journal {
        let journal = Journal::new(JournalLimits {
            bytes: 1_000,
            open_inputs: 10,
            leaves: false,
            segments: 10,
            segment_bytes: 100,
        });
        journal.begin_writing();
        journal
    }

    fn approval(definition: &str) -> ApprovalRequest {
        ApprovalRequest {
            request: InputRequest::ListRoots,
            audience: Audience::Names(vec!["ada".to_owned()]),
            due: 10,
            binding: Binding::new("digest", definition),
        }
    }

    #[test]
    fn reissued_approval_has_new_name_and_binding() {
        let journal = journal();
        journal.inputs().open_approval(approval("one"));
        let first = journal.take_changes().unwrap();
        journal.written();
        let response = to_raw_value(&serde_json::json!({"action": "accept"})).unwrap();
        journal.take_responses(vec![(APPROVAL.to_owned(), response)]);
        assert_eq!(journal.inputs().reissue_approval(approval("two")), 1);
        let second = journal.take_changes().unwrap();
        let asked = |changes: &crate::store::Changes| {
            let request = &changes.input_requests[0];
            (request.name.clone(), request.binding.clone().unwrap().definition, request.due)
        };
        assert_eq!(asked(&first), ("#approval".to_owned(), "one".to_owned(), Some(10)));
        assert_eq!(asked(&second), ("#approval#2".to_owned(), "two".to_owned(), Some(10)));
        assert_eq!(second.invalidated, [APPROVAL]);
        assert_eq!(journal.inputs().approval_name(), "#approval#2");
    }

    #[test]
    fn withdrawn_approval_is_withdrawn_even_if_this_run_did_not_issue_it() {
        let journal = journal();
        journal.inputs().withdraw_approval();
        assert_eq!(journal.take_changes().unwrap().withdrawn, [APPROVAL]);
    }
}
