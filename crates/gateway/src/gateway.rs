//! The gateway: builder, life cycle, reload and status.

use std::{
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use outlive::{
    auth::{client::Assertion, server::Delegates},
    people::Vault,
    server::{Principal, Server, ServerBuilder, catalog::CatalogHandle},
    store::KeyValueStore,
};

use crate::{
    assemble,
    catalog::StoredCatalogs,
    credentials::{Credentials, Subjects},
    logins,
    member::Member,
    metrics::{GatewayMetrics, UpstreamMetrics},
    refresh::{self, Events},
    relay::problem_text,
    served::ServedCatalog,
    settings::{GatewayError, GatewaySettings, Start, Supervision, Upstream, check},
    shared::{Config, Shared},
    status::{GatewayStatus, INTERVAL, StatusFile, UpstreamReport},
    subscriptions::Subscriptions,
    upstream::{
        ANONYMOUS, Alive, CatalogKey, ConnectionKey, OwnerRules, ProcessLimit, Supervisor,
        UpstreamEvents, unix_millis,
    },
    view::ViewKey,
};

/// Existing MCP servers behind one server.
///
/// ```
/// use outlive::server::Server;
/// use outlive_gateway::{Gateway, Upstream};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let gateway = Gateway::builder()
///     .upstream(Upstream::command("everything", ["npx", "-y", "@modelcontextprotocol/server-everything"]))
///     .build()?;
/// let server = gateway.attach(Server::builder("gateway", "1.0.0")).build()?;
/// # let _ = server;
/// # Ok(())
/// # }
/// ```
///
/// Dropping the gateway and its server ends the processes of the upstreams;
/// [`Gateway::shutdown`] waits for that.
#[derive(Clone)]
pub struct Gateway {
    shared: Arc<Shared>,
    subscriptions: Arc<Subscriptions>,
    status_file: Option<Arc<Mutex<StatusFile>>>,
}

/// Builder for [`Gateway`].
#[derive(Default)]
#[must_use]
pub struct GatewayBuilder {
    settings: GatewaySettings,
    upstreams: Vec<Upstream>,
    status_file: Option<PathBuf>,
    store: Option<Arc<dyn KeyValueStore>>,
    supervision: Option<Supervision>,
    vault: Option<Vault>,
    subjects: Subjects,
    rules: OwnerRules,
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").finish_non_exhaustive()
    }
}

impl fmt::Debug for GatewayBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatewayBuilder").field("upstreams", &self.upstreams).finish_non_exhaustive()
    }
}

impl GatewayBuilder {
    /// Sets the settings of the gateway as a whole.
    pub fn settings(mut self, settings: GatewaySettings) -> Self {
        self.settings = settings;
        self
    }

    /// Adds an upstream. Lists have the upstreams in the order in which they are added.
    pub fn upstream(mut self, upstream: Upstream) -> Self {
        self.upstreams.push(upstream);
        self
    }

    /// Sets the file that gets the status of a started gateway.
    pub fn status_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.status_file = Some(path.into());
        self
    }

    /// Sets the store of catalogs and pins, so that tools stay listed after a restart.
    pub fn store(mut self, store: Arc<dyn KeyValueStore>) -> Self {
        self.store = Some(store);
        self
    }

    /// Lets processes of upstreams survive the gateway, so that calls of tasks continue if it is
    /// killed. Without it, processes end with the gateway.
    pub fn supervision(mut self, supervision: Supervision) -> Self {
        self.supervision = Some(supervision);
        self
    }

    /// Sets the place of the tokens and logins at upstreams. The default is the store of the server,
    /// from [`Gateway::start`] on.
    pub fn vault(mut self, vault: Vault) -> Self {
        self.vault = Some(vault);
        self
    }

    /// Sets the access tokens of callers, which the gateway exchanges for tokens at upstreams. The
    /// [`ResourceServer`](outlive::auth::server::ResourceServer) of the server collects them.
    pub fn delegates(mut self, delegates: Delegates) -> Self {
        self.subjects.delegates = Some(delegates);
        self
    }

    /// Sets the tokens of principals at the identity provider behind the server, which the gateway
    /// exchanges for tokens at upstreams with
    /// [`ExchangeSubject::Provider`](crate::ExchangeSubject::Provider).
    pub fn provider_tokens(
        mut self,
        tokens: impl Fn(&Principal) -> Assertion + Send + Sync + 'static,
    ) -> Self {
        self.subjects.provider = Some(Arc::new(tokens));
        self
    }

    /// Sets the addresses of the pages on which principals log in at upstreams with
    /// [`UpstreamAuth::each_user`](crate::UpstreamAuth::each_user). The function gets the name of the
    /// upstream. The page calls [`Gateway::user_login`] and [`Gateway::user_logged_in`].
    pub fn connect_url(
        mut self,
        address: impl Fn(&str, &Principal) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.subjects.connect_url = Some(Arc::new(address));
        self
    }

    /// Sets whether anonymous clients of other machines can call. They are then unrelated, and
    /// share upstream connections as [`Isolation::Shared`](crate::Isolation::Shared) does.
    pub fn open_listener(mut self, open: bool) -> Self {
        self.rules.open_listener = open;
        self
    }

    /// Builds the gateway. Upstreams are started when they are used.
    ///
    /// # Errors
    ///
    /// If the settings of an upstream are invalid.
    pub fn build(self) -> Result<Gateway, GatewayError> {
        check(&self.upstreams)?;
        let events = Arc::new(Events::default());
        let limit = ProcessLimit::new(self.settings.max_processes);
        let supervisor = self.supervision.and_then(Supervisor::open);
        let credentials = Arc::new(Credentials::new(self.subjects));
        if let Some(vault) = self.vault {
            credentials.set_vault(vault);
        }
        let member = |settings| {
            let events: Arc<dyn UpstreamEvents> = Arc::clone(&events) as _;
            let supervisor = supervisor.as_ref();
            Member::new(settings, Arc::default(), events, &limit, supervisor, &credentials)
        };
        let members = self.upstreams.into_iter().map(member).collect();
        let config = Config::new(self.settings, members);
        let stored = StoredCatalogs::new(self.store);
        let dynamic = Arc::clone(&events) as Arc<dyn UpstreamEvents>;
        let processes = (limit, supervisor);
        let credentials = Arc::clone(&credentials);
        let shared = Shared::new(config, self.rules, processes, stored, credentials, dynamic);
        let shared = Arc::new(shared);
        events.connect(&shared);
        let status_file = self.status_file.map(|path| Arc::new(Mutex::new(StatusFile::new(path))));
        Ok(Gateway { shared, subscriptions: Arc::default(), status_file })
    }
}

impl Gateway {
    /// Starts a builder.
    pub fn builder() -> GatewayBuilder {
        GatewayBuilder::default()
    }

    /// Adds the upstreams to a server. A gateway belongs to one server.
    pub fn attach(&self, server: ServerBuilder) -> ServerBuilder {
        server.catalog(Arc::new(ServedCatalog::new(&self.shared, &self.subscriptions)))
    }

    /// Starts the background work: idle stops, lists that are no longer fresh, processes of earlier
    /// gateways, and the status file. It ends with the gateway.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
    pub fn start(&self, server: &Server) {
        if let Some(vault) = Vault::new(server) {
            self.shared.credentials.set_vault(vault);
        }
        self.shared.spawn(logins::watch(Arc::downgrade(&self.shared)));
        if let Some(supervisor) = self.shared.supervisor.clone() {
            self.shared.spawn(async move {
                loop {
                    supervisor.tidy().await;
                    tokio::time::sleep(TIDY_INTERVAL).await;
                }
            });
        }
        self.shared.config().members.iter().for_each(|member| self.start_early(member));
        let (weak, file) = (Arc::downgrade(&self.shared), self.status_file.clone());
        self.shared.spawn(async move {
            loop {
                let Some(shared) = weak.upgrade() else { return };
                tend(&shared);
                if let Some(file) = &file {
                    let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                    if let Err(error) = file.write(&status(&shared), Instant::now()) {
                        tracing::warn!(%error, "cannot write the status of the gateway");
                    }
                }
                let _ = tokio::time::timeout(INTERVAL, shared.wake.notified()).await;
                drop(shared);
                // Bounds the work if the state changes all the time.
                tokio::time::sleep(TEND_PAUSE).await;
            }
        });
    }

    /// Replaces the settings. Upstreams whose connection settings are equal keep their connections.
    /// Other connections close after their last call.
    ///
    /// # Errors
    ///
    /// If the settings of an upstream are invalid. Nothing changes then.
    pub fn reload(
        &self,
        settings: GatewaySettings,
        upstreams: Vec<Upstream>,
    ) -> Result<(), GatewayError> {
        check(&upstreams)?;
        let shared = &self.shared;
        shared.limit.set(settings.max_processes);
        let old = shared.config();
        let members = upstreams.into_iter().map(|upstream| {
            let same = old.members.iter().find(|member| {
                let known = member.settings();
                known.name == upstream.name && known.connects_as(&upstream)
            });
            match same {
                Some(member) => {
                    member.set_settings(upstream);
                    Arc::clone(member)
                }
                None => {
                    // The counters of an upstream survive a change of its settings.
                    let known = old.members.iter().find(|it| it.settings().name == upstream.name);
                    let meter = known.map(|known| Arc::clone(known.state().meter()));
                    let (meter, events) = (meter.unwrap_or_default(), Arc::clone(shared.events()));
                    let (limit, supervisor) = (&shared.limit, shared.supervisor.as_ref());
                    let credentials = &shared.credentials;
                    Member::new(upstream, meter, events, limit, supervisor, credentials)
                }
            }
        });
        let members: Vec<Arc<Member>> = members.collect();
        let removed: Vec<_> = old
            .members
            .iter()
            .filter(|old| !members.iter().any(|new| Arc::ptr_eq(new, old)))
            .cloned()
            .collect();
        let is_new = |new: &&Arc<Member>| !old.members.iter().any(|old| Arc::ptr_eq(new, old));
        let added: Vec<_> = members.iter().filter(is_new).cloned().collect();
        shared.set_config(Config::new(settings, members));
        added.iter().for_each(|member| self.start_early(member));
        for member in removed {
            member.runtime.drain();
            // The upstream lives until its last call has ended. A call that was found before the
            // change may not have started.
            shared.spawn(async move {
                tokio::time::sleep(REMOVED_GRACE).await;
                while member.runtime.is_draining() {
                    tokio::time::sleep(INTERVAL).await;
                }
            });
        }
        refresh::notify(shared);
        Ok(())
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Returns the status of all upstreams.
    pub fn status(&self) -> GatewayStatus {
        status(&self.shared)
    }

    /// Returns the metrics of all upstreams.
    pub fn metrics(&self) -> GatewayMetrics {
        let config = self.shared.config();
        let metrics = config
            .members
            .iter()
            .map(|member| UpstreamMetrics::new(member.report(), member.state().meter()));
        GatewayMetrics::new(metrics.collect())
    }

    /// Connects to an upstream before its first use, if its settings say so.
    fn start_early(&self, member: &Arc<Member>) {
        let settings = member.settings();
        if settings.start == Start::AtStart {
            let key = ConnectionKey::of_principal(&settings, self.shared.rules, ANONYMOUS);
            // Clients that list meanwhile wait for the same task.
            let _ = refresh::ensure_key(&self.shared, member, key, Alive::Always);
        }
    }

    /// Connects to an upstream, or to all, as the local user, and lists it.
    pub async fn check(&self, upstream: Option<&str>) -> Vec<UpstreamReport> {
        let config = self.shared.config();
        let mut reports = Vec::new();
        for member in &config.members {
            let settings = member.settings();
            if upstream.is_some_and(|name| name != &*settings.name) {
                continue;
            }
            if settings.has_user_credentials() {
                let mut report = self.report(member);
                let reason = "not checked, because each user has another token";
                report.status.warnings.push(reason.to_owned());
                reports.push(report);
                continue;
            }
            member.state().retry_now();
            let key = ConnectionKey::of_principal(&settings, self.shared.rules, LOCAL);
            if let Some(missing) = refresh::ensure_key(&self.shared, member, key, Alive::Always) {
                missing.wait().await;
            }
            reports.push(self.report(member));
        }
        reports
    }

    fn report(&self, member: &Arc<Member>) -> UpstreamReport {
        let settings = member.settings();
        let key = ViewKey::default();
        let view = assemble::view(&self.shared, &key);
        let listed = member.catalogs.get(&CatalogKey::default());
        let prefix = format!("{}__", settings.shown_prefix());
        let shown = |name: &&str| settings.shown_prefix().is_empty() || name.starts_with(&prefix);
        let tools: Vec<String> = match self.shared.handle() {
            Some(_) => {
                view.tools.iter().map(|(name, _)| name).filter(shown).map(str::to_owned).collect()
            }
            // Without a server nothing has a shown name: the names are the upstream's own.
            None => listed
                .iter()
                .flat_map(|lists| lists.tools.iter().map(|tool| tool.name.clone()))
                .collect(),
        };
        let problem = member.state().problem();
        UpstreamReport {
            name: settings.name.to_string(),
            problem: problem.map(|problem| problem_text(&settings.name, &problem)),
            tools,
            status: member.report(),
        }
    }

    /// Ends the connection of an upstream after its last call, and allows the next start at once.
    /// New connections use its current login. Returns whether the upstream exists.
    pub fn restart(&self, upstream: &str) -> bool {
        let config = self.shared.config();
        let member = config.members.iter().find(|member| *member.settings().name == *upstream);
        if let Some(member) = member {
            member.runtime.drain();
            member.runtime.retry_now();
        }
        member.is_some()
    }

    /// Accepts the changed definitions of one tool or of all tools of an upstream. Returns the names
    /// of the tools.
    pub async fn accept(&self, upstream: &str, tool: Option<&str>) -> Vec<String> {
        let config = self.shared.config();
        let member = config.members.iter().find(|member| *member.settings().name == *upstream);
        let Some(member) = member else { return Vec::new() };
        let has_changed_instructions = member.pins.has_changed_instructions();
        let accepted = member.pins.accept(tool);
        if !accepted.is_empty() || has_changed_instructions {
            member.pins.save(&self.shared.stored, upstream).await;
            refresh::notify(&self.shared);
        }
        accepted
    }

    /// Ends all upstream connections and their processes, and removes the status file. A process that
    /// a call of a task needs continues for the next gateway.
    pub async fn shutdown(&self) {
        self.shared.stop().await;
        if let Some(supervisor) = &self.shared.supervisor {
            supervisor.settle().await;
        }
        self.subscriptions.clear();
        let config = self.shared.config();
        for member in &config.members {
            member.runtime.shutdown().await;
        }
        if let Some(supervisor) = &self.shared.supervisor {
            // No next gateway may come that removes what ended processes left.
            let _ = tokio::time::timeout(TIDY_TIMEOUT, supervisor.tidy_all()).await;
        }
        if let Some(file) = &self.status_file {
            file.lock().unwrap_or_else(PoisonError::into_inner).remove();
        }
    }
}

/// Key of the local principal.
const LOCAL: &str = "local";

/// Time of the last such check, when the gateway ends.
const TIDY_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval of the checks of processes that earlier gateways left.
const TIDY_INTERVAL: Duration = Duration::from_secs(10);
/// Time for which calls that were found before a change of the settings can start.
const REMOVED_GRACE: Duration = Duration::from_secs(10);

/// Shortest pause between two rounds of the background work.
const TEND_PAUSE: Duration = Duration::from_millis(100);

/// Stops idle connections, and reads lists that are no longer fresh.
fn tend(shared: &Arc<Shared>) {
    let now = Instant::now();
    let config = shared.config();
    let interval = config.settings.relist_interval;
    let has_listeners = shared.handle().is_some_and(CatalogHandle::has_listeners);
    for member in &config.members {
        member.runtime.tend(now);
        if has_listeners {
            for open in member.runtime.take_unlisted(now, interval) {
                refresh::refresh(shared, member, open.key.clone(), open.alive());
            }
        }
        for catalog in member.catalogs.take_expired(now) {
            // Without a connection, the lists are read again when one is opened.
            if let Some(open) = member.runtime.open_with(&catalog) {
                refresh::refresh(shared, member, open.key.clone(), open.alive());
            }
        }
    }
}

fn status(shared: &Shared) -> GatewayStatus {
    let upstreams = shared.config().members.iter().map(|member| member.report()).collect();
    GatewayStatus { written_at: unix_millis(), pid: std::process::id(), upstreams }
}
