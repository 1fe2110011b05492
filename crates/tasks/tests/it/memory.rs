//! The store that forgets keeps every other promise.

use std::sync::Arc;

use outlive_tasks::store::{
    MemoryStore,
    contract::{ContractBench, checks, operator_checks},
};

#[tokio::test]
async fn the_contract_is_kept() {
    for check in checks().into_iter().chain(operator_checks()) {
        let store = Arc::new(MemoryStore::new());
        let clock = Arc::clone(&store);
        println!("{}", check.name);
        (check.run)(ContractBench::operated(store, move |span| clock.advance_clock(span))).await;
    }
}
