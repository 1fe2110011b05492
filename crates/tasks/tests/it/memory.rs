//! The store that forgets keeps every other promise.

use std::sync::Arc;

use outlive_tasks::store::{
    MemoryStore,
    contract::{Bench, checks, operated_checks},
};

#[tokio::test]
async fn the_contract_is_kept() {
    for check in checks().into_iter().chain(operated_checks()) {
        let store = Arc::new(MemoryStore::new());
        let clock = Arc::clone(&store);
        println!("{}", check.name);
        (check.run)(Bench::operated(store, move |span| clock.shift(span))).await;
    }
}
