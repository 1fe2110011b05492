//! Random histories against the reference models.

use outlive_tasks::store::PostgresStore;

use super::Schema;
use crate::{
    bridge_histories,
    decision_histories::{self, PeopleUnderTest},
    model::{Clocked, play},
};

// K-48
#[test]
fn postgres_store_matches_model() {
    play(20, async || Clocked::new(Schema::new().connect().await, PostgresStore::advance_clock));
}

#[test]
fn postgres_store_matches_memory_store_in_bridged_calls() {
    bridge_histories::play(20, async || {
        Clocked::new(Schema::new().connect().await, PostgresStore::advance_clock)
    });
}

#[test]
fn postgres_store_matches_memory_store_in_decisions() {
    decision_histories::play(20, async || {
        PeopleUnderTest::new(Schema::new().connect().await, PostgresStore::advance_clock)
    });
}
