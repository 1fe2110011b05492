//! The guides of the [site](https://github.com/outlive/outlive/tree/main/docs), with examples that the tests compile.
//!
//! This module exists in the documentation only.

/// Declares a module whose documentation is a guide. `guide-links.md` comes first: of two definitions of a link
/// the first counts, so that links between guides lead to these modules.
macro_rules! guide {
    ($name:ident, $file:literal) => {
        #[doc = include_str!("guide-links.md")]
        #[doc = include_str!(concat!("../docs/", $file))]
        pub mod $name {}
    };
}

guide!(tutorial_server, "tutorial-server.md");
guide!(tutorial_client, "tutorial-client.md");
guide!(durable_execution, "durable-execution.md");
guide!(tasks, "tasks.md");
guide!(hosts, "hosts.md");
guide!(approvals, "approvals.md");
guide!(input, "input.md");
guide!(streaming, "streaming.md");
guide!(eras, "eras.md");
guide!(client, "client.md");
#[cfg(feature = "auth-proxy")]
guide!(authorization, "authorization.md");
guide!(operations, "operations.md");
#[cfg(feature = "webhooks")]
guide!(notifications, "notifications.md");
guide!(deployment, "deployment.md");
guide!(errors, "errors.md");
guide!(testing, "testing.md");
guide!(skills, "skills.md");
