//! The list of all checks.

use super::{
    abandon, audience, audit, bench::Check, bridge, budgets, claim, cleanup, commit, create,
    decision_store, delivery_queue, end, end_audit, external_events, inbox, key_value,
    metric_store, operator, quarantine, respond, results, stats, task_index, timeline, waiting,
};

/// Returns the checks of [`Store`](super::super::Store).
pub fn checks() -> Vec<Check> {
    [
        create::CHECKS,
        claim::CHECKS,
        commit::CHECKS,
        respond::CHECKS,
        external_events::CHECKS,
        audience::CHECKS,
        waiting::CHECKS,
        end::CHECKS,
        results::CHECKS,
        quarantine::CHECKS,
        cleanup::CHECKS,
        stats::CHECKS,
        key_value::CHECKS,
        audit::CHECKS,
        end_audit::CHECKS,
        budgets::CHECKS,
        bridge::CHECKS,
        abandon::CHECKS,
    ]
    .concat()
}

/// Returns the checks of [`OperatorStore`](super::super::OperatorStore). They require a
/// [`ContractBench::operated`](super::ContractBench::operated).
pub fn operator_checks() -> Vec<Check> {
    operator::CHECKS.to_vec()
}

/// Returns the checks of [`PeopleStore`](super::super::PeopleStore). They require a
/// [`ContractBench::people`](super::ContractBench::people).
pub fn people_checks() -> Vec<Check> {
    [
        task_index::CHECKS,
        timeline::CHECKS,
        inbox::CHECKS,
        decision_store::CHECKS,
        delivery_queue::CHECKS,
        metric_store::CHECKS,
    ]
    .concat()
}
