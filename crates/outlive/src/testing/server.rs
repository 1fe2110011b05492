//! The server of a test.

use std::sync::Arc;

use crate::server::{BuildError, Server, ServerBuilder, TestHooks};

/// A server whose handlers are called by a test, one call at a time.
#[derive(Debug)]
pub struct TestServer {
    pub(super) server: Server,
    pub(super) hooks: Arc<TestHooks>,
}

impl TestServer {
    /// Builds the server.
    ///
    /// # Errors
    ///
    /// As [`ServerBuilder::build`].
    pub fn new(mut builder: ServerBuilder) -> Result<Self, BuildError> {
        let hooks = TestHooks::install(&mut builder.clock);
        builder.test_hooks = Some(Arc::clone(&hooks));
        Ok(Self { server: builder.build()?, hooks })
    }
}
