//! `outlive serve` with real commands, called by a real client.

mod auth; // callers with tokens of an issuer
mod away; // servers that are temporarily unreachable
mod checks; // errors and warnings at start, same as doctor
mod commands; // commands and their results
mod ending; // cancelled, expired and abandoned commands
mod files; // limit of open files
mod gateway; // MCP servers behind the server
mod handles; // client commands on calls of real commands
mod inbox; // `outlive inbox` and `outlive console` on real servers
mod injection; // values of callers are never interpreted
mod input; // commands that request input
mod killed; // servers that are killed while commands run
mod places; // concurrency limits of commands
mod planted; // text is never read as a control message
mod proxy; // logins with an identity provider without MCP support
mod reload; // a file that changes at run time
mod replicas; // two servers on one database
mod surviving; // calls of MCP servers whose server is killed
mod upstream_login; // logins of the server at its upstreams
mod watch_order; // input requests in `outlive tasks watch`
mod watching; // monitoring pages, metrics and log
mod workers; // tool workers, `outlive test`, steps of commands

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use outlive::client::{Client, ClientBuilder, transport::ChildProcess};

/// A folder with an `outlive.toml`, and a server that serves it. Dropping it ends the server and
/// its commands.
pub(crate) struct Place {
    pub(crate) folder: PathBuf,
    store: Option<String>,
    data: &'static str,
    env: Vec<(&'static str, &'static str)>,
    server: Option<Running>,
}

struct Running {
    process: Child,
    url: String,
}

impl Place {
    /// Writes the file and starts the server.
    pub(crate) fn new(file: &str) -> Self {
        let mut place = Self::unserved(file);
        place.start();
        place
    }

    pub(crate) fn unserved(file: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("outlive-serve-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        let place = Self { folder, store: None, data: "data", env: Vec::new(), server: None };
        place.write(file);
        place
    }

    /// Writes the file. Replaces `MARK` with a variable name that identifies commands of this
    /// folder.
    pub(crate) fn write(&self, file: &str) {
        let file = file.replace("MARK", &self.mark());
        fs::write(self.folder.join("outlive.toml"), file).unwrap();
    }

    fn mark(&self) -> String {
        self.folder.file_name().unwrap().to_string_lossy().replace('-', "_")
    }

    /// Returns another server on the same file, with another data folder and a shared store.
    pub(crate) fn replica(&self, data: &'static str, store: &str) -> Self {
        let (folder, store, env) = (self.folder.clone(), Some(store.to_owned()), Vec::new());
        Self { folder, store, data, env, server: None }
    }

    /// Sets an environment variable of the server.
    pub(crate) fn with_env(mut self, name: &'static str, value: &'static str) -> Self {
        self.env.push((name, value));
        self
    }

    /// Starts the server, on its previous address if it ran before.
    pub(crate) fn start(&mut self) {
        let log =
            fs::File::options().create(true).append(true).open(self.folder.join("log")).unwrap();
        self.start_logging_to(log);
    }

    /// Starts the server with another standard error.
    fn start_logging_to(&mut self, log: impl Into<Stdio>) {
        let listen = match &self.server {
            None => "127.0.0.1:0".to_owned(),
            Some(server) => {
                server.url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned()
            }
        };
        let mut command = Command::new(env!("CARGO_BIN_EXE_outlive"));
        command.current_dir(&self.folder).args(["serve", "--json", "--listen", &listen]);
        command.arg("--data-dir").arg(self.folder.join(self.data)).envs(self.env.iter().copied());
        if let Some(store) = &self.store {
            command.args(["--store", store]);
        }
        let mut process = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut said = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut said).unwrap();
        let said: serde_json::Value = serde_json::from_str(&said)
            .unwrap_or_else(|_| panic!("the server did not start: {}", self.log()));
        let url = said["url"].as_str().unwrap().to_owned();
        self.server = Some(Running { process, url });
    }

    /// Kills the server with SIGKILL.
    pub(crate) fn kill(&mut self) {
        let server = self.server.as_mut().expect("the server runs");
        server.process.kill().unwrap();
        server.process.wait().unwrap();
    }

    /// Stops the server with SIGTERM.
    pub(crate) fn stop(&mut self) {
        let server = self.server.as_mut().expect("the server runs");
        let stopped = Command::new("kill").arg(server.process.id().to_string()).status();
        assert!(stopped.unwrap().success());
        assert!(server.process.wait().unwrap().success(), "{}", self.log());
    }

    pub(crate) fn url(&self) -> &str {
        &self.server.as_ref().expect("the server runs").url
    }

    pub(crate) fn pid(&self) -> u32 {
        self.server.as_ref().expect("the server runs").process.id()
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    pub(crate) async fn client(&self) -> Client {
        self.client_with(builder()).await
    }

    pub(crate) async fn client_with(&self, builder: ClientBuilder) -> Client {
        builder.connect(self.url()).await.unwrap()
    }

    pub(crate) fn read(&self, file: &str) -> String {
        fs::read_to_string(self.folder.join(file)).unwrap_or_default()
    }

    /// Returns the program `outlive jobs` for the data folder of the server.
    pub(crate) fn jobs(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_outlive"));
        command.arg("jobs").args(arguments).arg("--data-dir").arg(self.folder.join(self.data));
        command
    }

    /// Ends all commands. A command outlives its server, and may wait for a file of a test that has
    /// ended.
    fn end_jobs(&self) {
        let jobs = fs::read_dir(self.folder.join(self.data).join("jobs"));
        for job in jobs.into_iter().flatten().flatten() {
            let id = job.file_name().to_string_lossy().into_owned();
            if !id.starts_with('.') {
                // Fails if the command has already ended.
                let _ = self.jobs(&["end", &id]).output();
            }
        }
    }

    /// Returns the command lines of all processes with the mark: commands and their children.
    pub(crate) fn left_over(&self) -> Vec<String> {
        let line = |(process, _): (PathBuf, String)| {
            let line = fs::read(process.join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).replace('\0', " ")
        };
        self.marked().map(line).collect()
    }

    /// Returns the IDs of those processes.
    pub(crate) fn marked_processes(&self) -> Vec<u32> {
        let id = |(process, _): (PathBuf, String)| process.file_name()?.to_str()?.parse().ok();
        self.marked().filter_map(id).collect()
    }

    /// Returns the jobs that those processes belong to.
    pub(crate) fn running_jobs(&self) -> BTreeSet<String> {
        let job = |(_, environment): (PathBuf, String)| {
            let mut variables = environment.split('\0');
            variables.find_map(|variable| variable.strip_prefix("OUTLIVE_JOB=").map(str::to_owned))
        };
        self.marked().filter_map(job).collect()
    }

    /// Returns all processes with the mark, and their environments.
    fn marked(&self) -> impl Iterator<Item = (PathBuf, String)> {
        let mark = format!("{}=", self.mark());
        fs::read_dir("/proc").unwrap().flatten().filter_map(move |process| {
            let environment = fs::read(process.path().join("environ")).ok()?;
            let environment = String::from_utf8_lossy(&environment).into_owned();
            environment.contains(&mark).then(|| (process.path(), environment))
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(server) = &mut self.server {
            let _ = server.process.kill();
            let _ = server.process.wait();
        }
        self.end_jobs();
        if self.data == "data" && !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

/// A server that its client starts: `program` with these arguments, and those of the server.
pub(crate) fn stdio_server(place: &Place, program: &str, arguments: &[&str]) -> ChildProcess {
    let server = ["serve", "--stdio", "--data-dir", place.data];
    ChildProcess::new(program).current_dir(&place.folder).args(arguments).args(server)
}

pub(crate) fn builder() -> ClientBuilder {
    Client::builder("test", "1.0.0").partial_results()
}

/// Waits until `look` returns a value. Panics with `what` after a timeout.
pub(crate) async fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "timed out waiting until {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
