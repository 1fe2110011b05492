//! [`PeopleStore`]: what gates, consoles and notifications need from a store.

use super::{
    decision_store::DecisionStore, delivery_queue::DeliveryQueue, metric_store::MetricStore,
    operator::OperatorStore, task_index::TaskIndex,
};

/// A store with lists, decisions, deliveries and metrics. A server with a gate, a console or
/// notifications needs one; every other server works with a plain [`Store`](super::Store).
///
/// Implemented for every type that implements all parts.
pub trait PeopleStore:
    OperatorStore + TaskIndex + DecisionStore + DeliveryQueue + MetricStore
{
}

impl<S> PeopleStore for S where
    S: OperatorStore + TaskIndex + DecisionStore + DeliveryQueue + MetricStore
{
}
