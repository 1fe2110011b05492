//! The list of all checks.

use super::{
    abandon, audience, audit, bench::Check, bridge, budgets, claim, cleanup, commit, create, end,
    external_events, key_value, operator, quarantine, respond, results, stats, waiting,
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
