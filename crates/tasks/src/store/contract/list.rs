//! The list of all checks.

use super::{
    audit, bench::Check, budgets, claim, cleaning, commit, counting, create, elsewhere, end,
    keeping, key_value, operator, respond, waiting,
};

/// Returns the checks of [`Store`](super::super::Store).
pub fn checks() -> Vec<Check> {
    [
        create::CHECKS,
        claim::CHECKS,
        commit::CHECKS,
        respond::CHECKS,
        elsewhere::CHECKS,
        waiting::CHECKS,
        end::CHECKS,
        keeping::CHECKS,
        cleaning::CHECKS,
        counting::CHECKS,
        key_value::CHECKS,
        audit::CHECKS,
        budgets::CHECKS,
    ]
    .concat()
}

/// Returns the checks of [`OperatorStore`](super::super::OperatorStore). They require a
/// [`ContractBench::operated`](super::ContractBench::operated).
pub fn operator_checks() -> Vec<Check> {
    operator::CHECKS.to_vec()
}
