//! The memory store passes the contract.

use std::sync::Arc;

use outlive_tasks::store::{
    MemoryStore,
    contract::{ContractBench, checks, operator_checks, people_checks},
};

#[tokio::test]
async fn store_passes_contract() {
    for check in [checks(), operator_checks(), people_checks()].concat() {
        let store = Arc::new(MemoryStore::new());
        let clock = Arc::clone(&store);
        println!("{}", check.name);
        (check.run)(ContractBench::people(store, move |span| clock.advance_clock(span))).await;
    }
}
