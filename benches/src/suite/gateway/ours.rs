//! The measured server, and our gateways in front of it.

use std::{cell::RefCell, net::SocketAddr, rc::Rc, time::Duration};

use anyhow::{Context, Result};

use super::clients::{Era, requests};
use crate::{
    child::Server,
    load::{Generator, http::Load, lines::LineLoad},
    machine::Cores,
    program::{Gateway, StdioGateway, upstream_command},
    slices::Target,
};

/// One of our targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// The server itself.
    Direct,
    /// The program, modern on both sides.
    Modern,
    DirectLegacy,
    /// The program, legacy on both sides.
    Legacy,
    /// The gateway as a library, modern on both sides.
    Library,
    /// The program in front of a server on stdio.
    Stdio,
    /// The supervisor of that server.
    Supervisor,
    /// The program on stdio, in front of a server over HTTP.
    Pipe,
}

/// The measured server, and our gateways in front of it.
pub(super) struct Ours {
    entries: Vec<Entry>,
    /// URL of the server.
    pub(super) url: String,
    pub(super) direct: Rc<RefCell<Load>>,
    pub(super) modern: Rc<RefCell<Load>>,
    _here: Processes,
    _pipe: StdioGateway,
}

struct Entry {
    way: Way,
    name: &'static str,
    pid: u32,
    helper: Option<u32>,
    load: Rc<RefCell<dyn Generator>>,
}

/// The processes of our targets.
struct Processes {
    server: Server,
    address: SocketAddr,
    modern: Gateway,
    legacy: Gateway,
    stdio: Gateway,
    library: Server,
    library_address: SocketAddr,
}

impl Processes {
    fn start(cores: Cores) -> Result<Self> {
        let (server, address) = Server::listening("outlive-http", cores)?;
        let pinned = |version| http(address, &format!("protocol_version = \"{version}\""));
        let command = upstream_command(&["outlive-stdio"])?;
        let program = std::env::current_exe().context("could not find this program")?;
        let words = ["serve", "outlive-gateway", &url(address)];
        let (library, library_address, _) = Server::start_listening(&program, &words, cores)?;
        Ok(Self {
            modern: Gateway::start(&pinned("2026-07-28"), cores)?,
            legacy: Gateway::start(&pinned("2025-11-25"), cores)?,
            stdio: Gateway::start(&upstream(&format!("command = {command}")), cores)?,
            server,
            address,
            library,
            library_address,
        })
    }
}

/// An upstream whose tools keep their names.
fn upstream(keys: &str) -> String {
    format!("[upstreams.bench]\nprefix = \"\"\n{keys}\n")
}

fn http(address: SocketAddr, keys: &str) -> String {
    upstream(&format!("url = \"{}\"\n{keys}", url(address)))
}

fn url(address: SocketAddr) -> String {
    format!("http://{address}/mcp")
}

impl Ours {
    pub(super) fn start(cores: Cores) -> Result<Self> {
        let here = Processes::start(cores)?;
        let (pipe, stdin, stdout) = StdioGateway::start(&http(here.address, ""), cores)?;
        let lines = LineLoad::open(stdin, stdout).context("the gateway on stdio")?;
        let direct = load(Era::Modern, here.address).context("the server")?;
        let modern = load(Era::Modern, here.modern.address).context("the gateway")?;
        let stdio = load(Era::Modern, here.stdio.address).context("the gateway to stdio")?;
        let direct_legacy = load(Era::Legacy, here.address).context("the server")?;
        let legacy = load(Era::Legacy, here.legacy.address).context("the legacy gateway")?;
        let library = load(Era::Modern, here.library_address).context("the library")?;
        let server = here.server.pid();
        let mut entries = Vec::new();
        let mut add = |way, name, pid, load: Rc<RefCell<dyn Generator>>| {
            // The server behind a gateway is not another process.
            let helper = (pid != server).then_some(server);
            entries.push(Entry { way, name, pid, helper, load });
        };
        add(Way::Direct, "direct call", server, direct.clone());
        add(Way::Modern, "gateway", here.modern.server.pid(), modern.clone());
        add(Way::DirectLegacy, "direct call, legacy session", server, direct_legacy);
        add(Way::Legacy, "gateway, legacy", here.legacy.server.pid(), legacy);
        add(Way::Library, "gateway as a library", here.library.pid(), library);
        add(Way::Stdio, "gateway to stdio", here.stdio.server.pid(), stdio.clone());
        let one_call = "gateway on stdio, one call at a time";
        add(Way::Pipe, one_call, pipe.server.pid(), Rc::new(RefCell::new(lines)));
        if let [supervisor] = here.stdio.supervisors()?[..] {
            add(Way::Supervisor, "supervisor of a server on stdio", supervisor, stdio);
        }
        Ok(Self { entries, url: url(here.address), direct, modern, _here: here, _pipe: pipe })
    }

    /// Returns all targets, in the order of [`Ours::ways`].
    pub(super) fn targets(&self) -> Vec<Box<dyn Target>> {
        self.entries.iter().map(Entry::target).collect()
    }

    pub(super) fn ways(&self) -> Vec<Way> {
        self.entries.iter().map(|entry| entry.way).collect()
    }

    pub(super) fn target(&self, way: Way) -> Option<Box<dyn Target>> {
        self.entries.iter().find(|entry| entry.way == way).map(Entry::target)
    }
}

fn load(era: Era, address: SocketAddr) -> Result<Rc<RefCell<Load>>> {
    let load = Load::open(address, requests(era, address, "/mcp", "echo")?)?;
    Ok(Rc::new(RefCell::new(load)))
}

impl Entry {
    fn target(&self) -> Box<dyn Target> {
        // Other processes work for a server on stdio, and their number is not known here.
        let has_helpers = matches!(self.way, Way::Stdio | Way::Supervisor);
        let (name, load) = (self.name.to_owned(), Rc::clone(&self.load));
        let Self { pid, helper, .. } = *self;
        Box::new(Relayed { name, pid, others: Vec::new(), helper, has_helpers, load })
    }
}

/// A gateway under load, or the server behind it.
pub(super) struct Relayed {
    pub(super) name: String,
    pub(super) pid: u32,
    pub(super) others: Vec<u32>,
    pub(super) helper: Option<u32>,
    pub(super) has_helpers: bool,
    pub(super) load: Rc<RefCell<dyn Generator>>,
}

impl Target for Relayed {
    fn name(&self) -> &str {
        &self.name
    }

    fn pid(&self) -> u32 {
        self.pid
    }

    fn others(&self) -> &[u32] {
        &self.others
    }

    fn helper(&self) -> Option<u32> {
        self.helper
    }

    fn has_helpers(&self) -> bool {
        self.has_helpers
    }

    fn load(&mut self, time: Duration) -> Result<u64> {
        self.load.borrow_mut().run(time)
    }
}
