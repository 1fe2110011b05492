//! The configuration of bridged calls.

use std::{fmt, time::Duration};

use crate::server::hosts::{
    answer_by::AnswerBy, client::Client, host::Host, known::KnownHost, limits::HostLimits,
    repeat::Repeat,
};

/// Tokens of a result for hosts without a limit of their own.
const RESULT_TOKENS: usize = 20_000;

/// Configuration of bridged calls: the limits of hosts, and how calls of clients without tasks
/// wait.
///
/// With [`TaskConfig::hosts`](crate::server::tasks::TaskConfig::hosts), a slow call of a client
/// without tasks becomes a task, as for every other client, and the call waits for it. The server
/// also lists the tools `task_result` and `task_cancel` for these clients.
///
/// ```
/// use outlive::server::{Server, hosts::Hosts, tasks::TaskConfig};
///
/// let server = Server::builder("studio", "1")
///     .tasks(TaskConfig::in_memory().hosts(Hosts::known()))
///     .build()?;
/// # Ok::<(), outlive::server::BuildError>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct Hosts {
    hosts: Vec<(String, Host)>,
    defaults: HostLimits,
    max_rounds: u32,
    max_wait: Duration,
    repeat: Repeat,
    abandon_timeout: Option<Duration>,
    answers: Vec<AnswerBy>,
    public_url: Option<String>,
    view: bool,
    learn: bool,
}

impl Hosts {
    /// Returns the configuration with the table of known hosts.
    pub fn known() -> Self {
        Self {
            hosts: Vec::new(),
            defaults: HostLimits {
                call_timeout: Some(Duration::from_secs(60)),
                progress_extends: false,
                result_tokens: Some(RESULT_TOKENS),
                input_stops_clock: false,
                has_tasks: false,
                timeout_spans_rounds: false,
            },
            max_rounds: 8,
            max_wait: Duration::from_secs(30 * 60),
            repeat: Repeat::Join,
            abandon_timeout: None,
            answers: Vec::new(),
            public_url: None,
            view: true,
            learn: true,
        }
    }

    /// Adds a host. `name` is the `clientInfo.name` of its client, in any case; a `*` may end it.
    ///
    /// The first host that matches a client applies. A limit that it does not set comes from the
    /// table of known hosts.
    pub fn host(mut self, name: impl Into<String>, host: Host) -> Self {
        self.hosts.push((name.into(), host));
        self
    }

    /// Sets the call timeout of clients that neither the host table nor a learned limit covers; one
    /// minute by default. `None`: these clients wait without a limit.
    pub fn call_timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.defaults.call_timeout = timeout.into();
        self
    }

    /// Limits the rounds of one call, input rounds included; eight by default. Clients of
    /// 2026-07-28 follow ten rounds and fail the call at the eleventh.
    pub fn max_rounds(mut self, rounds: u32) -> Self {
        self.max_rounds = rounds;
        self
    }

    /// Sets the longest wait of one call whose client has no call timeout, or extends it on
    /// progress; 30 minutes by default.
    pub fn max_wait(mut self, wait: Duration) -> Self {
        self.max_wait = wait;
        self
    }

    /// Sets whether a repeated call joins its run; [`Repeat::Join`] by default.
    /// [`Tool::repeat`](crate::server::Tool::repeat) overrides it.
    pub fn repeat(mut self, repeat: Repeat) -> Self {
        self.repeat = repeat;
        self
    }

    /// Sets the time after which the server cancels a run that its client left, counted from the
    /// last response. The default is
    /// [`Limits::request_state_ttl`](crate::server::Limits::request_state_ttl).
    pub fn abandon_timeout(mut self, timeout: Duration) -> Self {
        self.abandon_timeout = Some(timeout);
        self
    }

    /// Sets how users of clients without elicitation can answer input requests, in order of
    /// preference; none by default. [`Tool::answers`](crate::server::Tool::answers) overrides it.
    /// The answers never apply to a [`destructive`](crate::server::Tool::destructive) tool.
    pub fn answers(mut self, answers: impl IntoIterator<Item = AnswerBy>) -> Self {
        self.answers = answers.into_iter().collect();
        self
    }

    /// Sets the address under which people open the pages of this server, such as
    /// `https://tools.example.com`. Without it, no text has an answer link.
    pub fn public_url(mut self, url: impl Into<String>) -> Self {
        self.public_url = Some(url.into());
        self
    }

    /// Sets whether hosts that render MCP Apps show a running task as one; on by default.
    pub fn view(mut self, view: bool) -> Self {
        self.view = view;
        self
    }

    /// Sets whether the server learns call timeouts from calls that clients end by timeout; on by
    /// default.
    pub fn learn(mut self, learn: bool) -> Self {
        self.learn = learn;
        self
    }

    /// Returns the limits of a client: its host row, else the defaults.
    pub(crate) fn limits(&self, client: &Client) -> HostLimits {
        let known = KnownHost::find(client).map_or(self.defaults, |row| row.apply(self.defaults));
        let host = self.hosts.iter().find(|(name, _)| client.is_named(name));
        host.map_or(known, |(_, host)| host.apply(known))
    }

    /// Returns whether a host row covers a client.
    pub(crate) fn has_row(&self, client: &Client) -> bool {
        KnownHost::find(client).is_some()
            || self.hosts.iter().any(|(name, _)| client.is_named(name))
    }

    /// Returns the maximum number of rounds of one call.
    pub(crate) fn round_limit(&self) -> u32 {
        self.max_rounds
    }

    /// Returns the longest wait of one call.
    pub(crate) fn longest_wait(&self) -> Duration {
        self.max_wait
    }

    /// Returns the policy for repeated calls of a tool with this policy.
    pub(crate) fn repeat_policy(&self, tool: Option<Repeat>) -> Repeat {
        tool.unwrap_or(self.repeat)
    }

    /// Returns the time after which an abandoned run is cancelled.
    pub(crate) fn abandon_after(&self, request_state_ttl: Duration) -> Duration {
        self.abandon_timeout.unwrap_or(request_state_ttl)
    }

    /// Returns the ways to answer input requests of a tool with these answers.
    pub(crate) fn answers_of<'a>(&'a self, tool: Option<&'a [AnswerBy]>) -> &'a [AnswerBy] {
        tool.unwrap_or(&self.answers)
    }

    /// Returns the address of the server's pages.
    pub(crate) fn page_url(&self) -> Option<&str> {
        self.public_url.as_deref()
    }

    /// Returns whether the task view is on.
    pub(crate) fn has_view(&self) -> bool {
        self.view
    }

    /// Returns whether the server learns call timeouts.
    pub(crate) fn learns(&self) -> bool {
        self.learn
    }
}

// Destructures every setting, so that a new setting does not compile until it has a field here. A
// test compares `docs/limits.md` with this output.
impl fmt::Debug for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            hosts,
            defaults,
            max_rounds,
            max_wait,
            repeat,
            abandon_timeout,
            answers,
            public_url,
            view,
            learn,
        } = self;
        f.debug_struct("Hosts")
            .field("host", hosts)
            .field("call_timeout", &defaults.call_timeout)
            .field("max_rounds", max_rounds)
            .field("max_wait", max_wait)
            .field("repeat", repeat)
            .field("abandon_timeout", abandon_timeout)
            .field("answers", answers)
            .field("public_url", public_url)
            .field("view", view)
            .field("learn", learn)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Hosts;
    use crate::server::hosts::{
        Host,
        client::{Client, Transport},
        limits::HostLimits,
    };

    const MINUTE: Duration = Duration::from_secs(60);

    fn limits(hosts: &Hosts, name: &str, transport: Transport) -> HostLimits {
        hosts.limits(&Client::new(name, "1.0.0", transport))
    }

    #[test]
    fn unknown_client_has_default_limits() {
        let limits = limits(&Hosts::known(), "acme-agent", Transport::Http);
        assert_eq!(limits.call_timeout, Some(MINUTE));
        assert_eq!(limits.slice(), Some(Duration::from_secs(50)));
        assert_eq!(limits.result_tokens, Some(20_000));
        assert!(!limits.progress_extends && !limits.has_tasks);
    }

    #[test]
    fn known_client_has_limits_of_its_transport() {
        let hosts = Hosts::known();
        let piped = limits(&hosts, "Claude-Code", Transport::Stdio);
        assert_eq!(piped.call_timeout, Some(Duration::from_secs(1_800)));
        assert!(piped.progress_extends);
        let http = limits(&hosts, "claude-code", Transport::Http);
        assert_eq!(http.call_timeout, Some(Duration::from_secs(300)));
        assert!(http.progress_extends);
        assert_eq!(http.result_tokens, Some(25_000));
    }

    #[test]
    fn default_timeout_applies_to_clients_whose_application_sets_it() {
        let hosts = Hosts::known().call_timeout(Duration::from_secs(20));
        for name in ["mcp", "ai-sdk-mcp-client", "acme-agent"] {
            let limits = limits(&hosts, name, Transport::Stdio);
            assert_eq!(limits.call_timeout, Some(Duration::from_secs(20)), "{name}");
        }
        assert_eq!(limits(&hosts, "opencode", Transport::Stdio).call_timeout, Some(MINUTE));
    }

    #[test]
    fn own_host_replaces_only_limits_that_it_sets() {
        let hosts = Hosts::known()
            .host("claude-*", Host::new().result_tokens(50_000))
            .host("claude-code", Host::new().call_timeout(MINUTE))
            .host("acme", Host::new().call_timeout(None).result_tokens(None));
        let http = limits(&hosts, "claude-code", Transport::Http);
        assert_eq!(http.result_tokens, Some(50_000));
        assert_eq!(http.call_timeout, Some(Duration::from_secs(300)));
        let acme = limits(&hosts, "ACME", Transport::Http);
        assert_eq!((acme.call_timeout, acme.result_tokens, acme.slice()), (None, None, None));
    }
}
