//! Logins of an authorization proxy in the task store, durable and shared by all replicas.

use std::{fmt, sync::Arc, time::Duration};

use outlive_auth_proxy::{LoginStore, LoginStoreError, LoginStoreFuture};
use outlive_tasks::store::KeyValueStore;
use outlive_wire::RawJson;
use serde_json::value::to_raw_value;

/// Login store in a task store. The logins are sealed, so the store cannot read them.
///
/// ```no_run
/// use outlive::{
///     auth_proxy::{AuthProxy, Provider, TaskLoginStore},
///     store::open,
/// };
///
/// # async fn run(secret: [u8; 32]) -> Result<(), Box<dyn std::error::Error>> {
/// let store = open("sqlite:/var/lib/files/tasks.db").await?;
/// let upstream = Provider::discover("https://id.example.com", "client-id");
/// let proxy = AuthProxy::builder("https://mcp.example.com/mcp", upstream)
///     .login_store(TaskLoginStore::new(store))
///     .secret(secret)
///     .build()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct TaskLoginStore(Arc<dyn KeyValueStore>);

impl TaskLoginStore {
    /// Stores the logins of an [`AuthProxy`](outlive_auth_proxy::AuthProxy) in `store`.
    ///
    /// A server that runs tasks on this store deletes expired logins with its sweep.
    pub fn new(store: Arc<dyn KeyValueStore>) -> Self {
        Self(store)
    }
}

impl LoginStore for TaskLoginStore {
    fn put_if_absent<'a>(
        &'a self,
        key: &'a str,
        value: String,
        ttl: Duration,
    ) -> LoginStoreFuture<'a, bool> {
        Box::pin(async move {
            let there = self
                .0
                .put_if_absent(key, json(&value)?, ttl, None)
                .await
                .map_err(LoginStoreError::new)?;
            Ok(there.is_none())
        })
    }

    fn put<'a>(&'a self, key: &'a str, value: String, ttl: Duration) -> LoginStoreFuture<'a, ()> {
        Box::pin(async move {
            self.0.put(key, json(&value)?, ttl, None).await.map_err(LoginStoreError::new)
        })
    }

    fn get<'a>(&'a self, key: &'a str) -> LoginStoreFuture<'a, Option<String>> {
        Box::pin(async move {
            let value = self.0.get_value(key).await.map_err(LoginStoreError::new)?;
            let read = value.map(|value| serde_json::from_str(value.get())).transpose();
            read.map_err(LoginStoreError::new)
        })
    }

    fn delete<'a>(&'a self, key: &'a str) -> LoginStoreFuture<'a, ()> {
        Box::pin(async move { self.0.delete(key).await.map_err(LoginStoreError::new) })
    }
}

fn json(value: &str) -> Result<RawJson, LoginStoreError> {
    to_raw_value(value).map_err(LoginStoreError::new)
}

impl fmt::Debug for TaskLoginStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TaskLoginStore(…)")
    }
}
