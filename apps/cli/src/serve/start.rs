//! The command `outlive serve`.

use super::args::Args;
use super::background::in_background;
use super::location::{
    base_of, data_folder, is_shared, open_store, seal_key_file, store_url, unusable,
};
use super::{
    banner, config, console, files, janitor, metrics, named_upstreams, pages, reload, secrets,
    upstream_replies,
};
use crate::serve::{
    banner::Hello,
    callers::Callers,
    command_pool::Runner,
    config::{Config, ServerConfig, TasksConfig},
    host_liveness::{Host, orphan_after},
    notify::add_receivers,
    pages::Numbers,
    source::Source,
    tools::Tools,
    upstreams::{Surroundings, Upstreams},
    workers::{WorkerOptions, Workers},
};
use crate::{
    checks::{self, Check},
    error::{CliError, Kind, Result},
    print,
};
use outlive::{
    server::{
        SealKeys, Server, ServerBuilder,
        http::{HttpConfig, StaticTokens},
        skills::Skills,
        tasks::{ResponseMode, TaskConfig},
    },
    store::{KeyValueStore, PeopleStore, Store},
};
use outlive_gateway::Supervision;
use std::{io, path::Path, pin::pin, process::ExitCode, sync::Arc, time::Duration};
use tokio::{net::TcpListener, runtime::Runtime};

/// Path to which other systems deliver the values of external events, followed by the completion token.
const EXTERNAL_EVENTS: &str = "/events";

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    if args.print_demo || args.print_schema {
        let text = if args.print_demo { config::DEMO } else { config::SCHEMA };
        let printed = print::own(text.as_bytes());
        return printed.map(|()| ExitCode::SUCCESS).map_err(CliError::usage);
    }
    let calls = crate::log::to_stderr(!args.stdio);
    files::raise_limit();
    let runtime = Runtime::new().map_err(|error| CliError::new(Kind::Failed, error))?;
    let served = runtime.block_on(serve(args));
    // Do not wait for threads in blocking reads.
    runtime.shutdown_timeout(Duration::from_secs(1));
    calls.flush();
    served.map(|()| ExitCode::SUCCESS)
}

pub(super) async fn serve(args: Args) -> Result<()> {
    let source = Source::of(&args);
    let path = source.path();
    let mut config = with_flags(source.config()?, &args)?;
    let data = data_folder(&args, path)?;
    let url = store_url(&config.tasks, &data);
    check(&config, args.stdio, path, &data, &url)?;
    let people = open_store(&url).await?;
    let store = Arc::clone(&people) as Arc<dyn Store>;
    let shared = is_shared(&url).then(|| Arc::clone(&store));
    let host = Host::of(&data).map_err(|error| unusable(&data, &error))?;
    let replica_timeout = config.tasks.replica_timeout;
    let runner = runner(&config, path, &data, &host, shared.clone())?;
    let options = WorkerOptions { data: Some(&data), is_dev: args.dev, ..WorkerOptions::default() };
    let workers = Workers::start(&config, path, options).await?;
    if let (Source::Script(_), Some(name)) = (&source, workers.app_name()) {
        name.clone_into(&mut config.server.name);
    }
    let hello = Hello::new(&config, &workers.tool_names(), path, &data, &url);
    // On standard input, the caller is the user of this process.
    let callers = match args.stdio {
        true => None,
        false => Callers::new(&config, Arc::clone(&store))?,
    };
    let surroundings = Surroundings {
        store: Arc::clone(&people) as Arc<dyn KeyValueStore>,
        data: data.clone(),
        supervision: supervision(&data, &host, &store, shared.is_some(), replica_timeout),
        is_http: !args.stdio,
        callers: callers.as_ref(),
    };
    let upstreams = Upstreams::new(&config, path, &args.upstream, surroundings)?;
    let tools = Tools::new(base_of(path), Arc::clone(&runner));
    let mut parts = Parts { tools, upstreams: upstreams.clone(), workers: workers.clone() };
    let built = build(&config, &mut parts, people, &data, path, &args)?;
    upstreams.start(&built);
    workers.serve(&built);
    let requests = upstream_replies::serve(data.clone(), upstreams.clone());
    let _replying = (!args.stdio && !config.upstreams.is_empty()).then(|| in_background(requests));
    let _living = shared.map(|store| in_background(host.live(store, config.tasks.replica_timeout)));
    let _tidying = in_background(janitor::tidy(Arc::clone(&runner), Arc::clone(&store)));
    let _reloading = reloading(&source, &config, args.stdio, &built, parts).map(in_background);

    if args.stdio {
        hello.on_stdio();
        built.serve_stdio().await.map_err(|error| CliError::new(Kind::Failed, error))?;
    } else {
        let numbers = Numbers::new(&built, &upstreams, &workers);
        serve_http(&config, built, callers, &hello, (numbers, args.json)).await?;
    }
    upstreams.shutdown().await;
    workers.shutdown().await;
    runner.settled().await;
    banner::goodbye(&runner);
    Ok(())
}

/// Returns how processes of upstreams survive the server. If machines share the store, they end before
/// another machine considers them lost, as commands do.
fn supervision(
    data: &Path,
    host: &Host,
    store: &Arc<dyn Store>,
    is_shared: bool,
    replica_timeout: Duration,
) -> Supervision {
    let machines = is_shared.then(|| Arc::clone(store));
    let supervision = Supervision::new(data.join("pipes"), Arc::clone(store) as _).machine(
        host.id(),
        move |machine| {
            let store = machines.clone();
            async move {
                match store {
                    Some(store) => Host::is_alive(&*store, &machine).await,
                    None => false,
                }
            }
        },
    );
    match is_shared {
        true => supervision.orphan_timeout(orphan_after(replica_timeout)),
        false => supervision,
    }
}

/// Sources of the tools of a server.
struct Parts {
    tools: Tools,
    upstreams: Upstreams,
    workers: Workers,
}

/// Returns the state that all commands share.
fn runner(
    config: &Config,
    path: Option<&Path>,
    data: &Path,
    host: &Host,
    shared: Option<Arc<dyn Store>>,
) -> Result<Arc<Runner>> {
    let mut runner = Runner::new(data, host.clone(), shared, config.tasks.replica_timeout)?;
    runner.withheld_env = secrets::variables(path);
    runner.max_waiting = config.server.max_waiting_jobs_per_caller as usize;
    Ok(Arc::new(runner))
}

/// Returns the work that keeps a server in sync with its file.
fn reloading(
    source: &Source,
    config: &Config,
    stdio: bool,
    built: &Server,
    parts: Parts,
) -> Option<impl Future<Output = ()> + Send + 'static> {
    let file = source.file()?.to_owned();
    let token_file = config.server.token_file.clone();
    let people = move |config: &Config| people_checks(config, stdio, token_file.as_deref());
    let Parts { tools, upstreams, workers } = parts;
    let served = reload::Served { server: built.clone(), tools, upstreams, workers };
    Some(reload::follow(file, people, served))
}

/// Builds the server with its tools.
fn build(
    config: &Config,
    parts: &mut Parts,
    people: Arc<dyn PeopleStore>,
    data: &Path,
    file: Option<&Path>,
    args: &Args,
) -> Result<Server> {
    let base = base_of(file);
    let public_url = config.base_url().filter(|_| !args.stdio);
    let links = public_url.clone().filter(|_| config.has_links());
    let longest_end = config.tools.iter().map(|tool| tool.kill_grace).max().unwrap_or_default();
    let tasks = task_config(&config.tasks, people, longest_end)
        .index_tasks(config.has_console())
        .hosts(config.hosts.clone().at(links.as_deref()))
        .results(config.results);
    let mut builder = builder(&config.server, tasks, data)?.console_path(&config.console.path);
    if let Some(rule) = &config.approve_destructive {
        builder = builder.approve_destructive(rule.rule());
    }
    if args.replay_on_input {
        builder = builder.replay_on_input();
    }
    let builder = with_skills(builder, config.server.skills.as_deref(), &base)?;
    let builder = add_receivers(builder, &config.notify, &base, public_url)?;
    let builder = parts.workers.attach(parts.tools.build(builder, config.tools.clone()));
    parts.upstreams.attach(builder).build().map_err(CliError::usage)
}

/// Serves HTTP until the server is stopped.
async fn serve_http(
    config: &Config,
    built: Server,
    callers: Option<Callers>,
    hello: &Hello,
    (numbers, json): (Numbers, bool),
) -> Result<()> {
    let server = &config.server;
    let http = http(config, callers)?;
    let http = pages::add(http, server, &built, &numbers)?;
    let (http, console) = console::add(http, config, &built)?;
    let _metrics = match &server.metrics_listen {
        Some(address) => Some(in_background(metrics::serve(listen(address).await?, numbers))),
        None => None,
    };
    let serving = built
        .serve_http(server.listen.as_str(), http)
        .await
        .map_err(|error| no_listener(server, &error))?;
    let url = serving.url();
    let _farewell = in_background(banner::stopping());
    let mut stopped = pin!(serving.wait());
    // Polled first: a signal right after the URL is printed must stop the server.
    let ended = tokio::select! {
        biased;
        ended = stopped.as_mut() => ended,
        () = async { hello.at(&url, console.as_ref(), json) } => stopped.await,
    };
    ended.map_err(|error| CliError::new(Kind::Failed, error))
}

/// Runs the checks of `doctor` on the configuration, and prints warnings.
///
/// # Errors
///
/// Returns all problems that prevent the server from starting.
pub(super) fn check(
    config: &Config,
    stdio: bool,
    file: Option<&Path>,
    data: &Path,
    store: &str,
) -> Result<()> {
    config.warnings.iter().for_each(checks::warn);
    let server = &config.server;
    let mut all = checks::data_folder(data);
    all.extend(checks::store_file(store));
    all.extend(checks::tools(&config.tools, &base_of(file)));
    all.extend(checks::upstreams(config, file));
    all.extend(checks::workers(config, &base_of(file)));
    all.extend(server.skills.as_ref().map(|folder| checks::skills(&base_of(file).join(folder))));
    all.extend(people_checks(config, stdio, server.token_file.as_deref()));
    if !stdio {
        all.extend(server.token_file.as_deref().map(checks::tokens));
        let knows_callers = server.token_file.is_some() || config.auth.is_some();
        all.extend(checks::reach(server, &server.listen, knows_callers));
    }
    checks::admit(all)
}

/// Checks the people whom the file names. Behind stdio, people decide at another server on the same
/// store, whose people are not known here.
fn people_checks(config: &Config, stdio: bool, token_file: Option<&Path>) -> Vec<Check> {
    if stdio { Vec::new() } else { checks::people(config, token_file) }
}

pub(super) async fn listen(address: &str) -> Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| {
        CliError::usage(format_args!("cannot listen on `metrics_listen` {address}: {error}"))
            .remedy("set metrics_listen = \"127.0.0.1:PORT\" in [server], with a free port")
    })
}

/// Returns the error for an address that the server cannot listen on.
pub(super) fn no_listener(server: &ServerConfig, error: &io::Error) -> CliError {
    CliError::usage(format_args!("cannot listen on {}: {error}", server.listen))
        .remedy("choose a free port: outlive serve --listen 127.0.0.1:PORT")
}

/// Applies the command line, which takes precedence over the file.
pub(super) fn with_flags(mut config: Config, args: &Args) -> Result<Config> {
    if let Some(listen) = &args.listen {
        if !config::is_address(listen) {
            let what = format!("--listen must be an address and a port, but is \"{listen}\"");
            return Err(CliError::usage(what).remedy("write --listen 127.0.0.1:8000"));
        }
        config.server.listen.clone_from(listen);
    }
    if args.token_file.is_some() {
        if config.auth.is_some() {
            return Err(CliError::usage("--token-file cannot be combined with [auth] in the file")
                .remedy("remove --token-file or [auth]"));
        }
        config.server.token_file.clone_from(&args.token_file);
    }
    if args.store.is_some() {
        config.tasks.store.clone_from(&args.store);
    }
    named_upstreams::add(&mut config, &args.upstream)?;
    Ok(config)
}

/// Returns the configuration of the server's tasks.
pub(super) fn task_config(
    tasks: &TasksConfig,
    store: Arc<dyn PeopleStore>,
    longest_end: Duration,
) -> TaskConfig {
    let running = tasks.max_running as usize;
    let per_caller = tasks.max_running_per_caller.map(|count| count as usize);
    TaskConfig::people(store)
        .ttl(tasks.ttl)
        .max_ttl(tasks.max_ttl)
        .poll_interval(tasks.poll_interval)
        .max_tasks_per_caller(tasks.max_tasks_per_caller as usize)
        .max_store_bytes_per_caller(tasks.max_store_bytes_per_caller)
        .max_audit_events(u64::from(tasks.max_audit_events))
        .max_anonymous_store(tasks.max_anonymous_store)
        .max_store(tasks.max_store)
        .response_modes([ResponseMode::Immediate, ResponseMode::Streaming])
        .partial_results(true)
        .promote_before_input(tasks.promote_before_input)
        .engine(|engine| {
            engine.max_running = running;
            engine.max_running_per_caller = per_caller;
            engine.cancel_grace = engine.cancel_grace.max(longest_end + Duration::from_secs(5));
            engine.cleanup_timeout =
                engine.cleanup_timeout.max(longest_end + Duration::from_secs(5));
            // A command runs in another process, so it cannot crash the server.
            engine.max_crashes = 1_000;
            engine.max_backoff = engine.backoff;
        })
}

pub(super) fn builder(
    server: &ServerConfig,
    tasks: TaskConfig,
    data: &Path,
) -> Result<ServerBuilder> {
    let keys = SealKeys::from_file(seal_key_file(server, data)).map_err(CliError::usage)?;
    let mut builder = Server::builder(&server.name, &server.version)
        .seal_keys(keys)
        .limits(|limits| server.limits.protocol(limits))
        .tasks(tasks)
        .idempotency_keys(true);
    if let Some(title) = &server.title {
        builder = builder.title(title);
    }
    if let Some(instructions) = &server.instructions {
        builder = builder.instructions(instructions);
    }
    Ok(builder)
}

/// Adds the skills of a folder, which is read once.
pub(super) fn with_skills(
    builder: ServerBuilder,
    folder: Option<&Path>,
    base: &Path,
) -> Result<ServerBuilder> {
    let Some(folder) = folder else { return Ok(builder) };
    let skills = Skills::from_folder(base.join(folder)).map_err(CliError::usage)?;
    Ok(builder.skills(skills))
}

pub(super) fn http(config: &Config, callers: Option<Callers>) -> Result<HttpConfig> {
    let server = &config.server;
    let mut http = HttpConfig::new();
    if let Some(file) = &server.token_file {
        http = http.authenticator(StaticTokens::from_file(file).map_err(CliError::usage)?);
    }
    if let Some(callers) = callers {
        http = callers.add_to_http(http);
    }
    for host in &server.allow_hosts {
        http = http.allow_host(host);
    }
    for origin in &server.allow_origins {
        http = http.allow_origin(origin);
    }
    for proxy in &server.trusted_proxies {
        http = http.trusted_proxy(*proxy);
    }
    if !config.workers.is_empty() {
        http = http.external_event_path(EXTERNAL_EVENTS);
    }
    let http = server.limits.http(http);
    Ok(http.allow_anonymous(server.allow_anonymous))
}
