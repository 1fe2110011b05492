//! The fixture as an upstream.

use std::path::Path;

/// Transport between the gateway and the fixture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    Http,
    Stdio,
}

/// Tools that the fixture rejects for clients without tasks. A gateway calls such tools for these
/// clients too, unless its own policy rejects them.
const POLICIES: &str = r#"
[hosts]
fallback = false

[upstreams.fixture.tools]
failing_job = { task = "always" }
confirm_delete = { task = "always" }
multi_input = { task = "always" }
"#;

impl Route {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Stdio => "stdio",
        }
    }

    /// Returns the `outlive.toml` of a gateway. The fixture is `program`, and already listens on
    /// `url`.
    pub(super) fn config(self, program: &Path, url: &str) -> String {
        let target = match self {
            Self::Http => format!("url = {url:?}"),
            Self::Stdio => format!("command = [{:?}, \"--stdio\"]", program.display().to_string()),
        };
        format!(
            "[server]\nname = \"fixture\"\n\n[upstreams.fixture]\n{target}\nprefix = \"\"\n{POLICIES}"
        )
    }
}
