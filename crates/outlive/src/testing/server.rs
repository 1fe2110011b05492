//! Server of a test.

use std::sync::Arc;

use crate::server::{BuildError, Server, ServerBuilder, TestHooks};

/// Server whose handlers a test calls, one call at a time.
#[derive(Debug)]
pub struct TestServer {
    pub(super) server: Server,
    pub(super) hooks: Arc<TestHooks>,
}

impl TestServer {
    /// Builds the server with test hooks.
    ///
    /// # Errors
    ///
    /// Same as [`ServerBuilder::build`].
    pub fn new(mut builder: ServerBuilder) -> Result<Self, BuildError> {
        let hooks = TestHooks::install(&mut builder.clock);
        builder.test_hooks = Some(Arc::clone(&hooks));
        Ok(Self { server: builder.build()?, hooks })
    }
}
