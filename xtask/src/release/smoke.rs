//! Starts the program inside another root: it must print its version, and `serve` must report that
//! it is ready.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::artifacts::VERSION;
use xtask::{packages, process};

/// Time that `serve` has until it is ready.
const READY_TIMEOUT: Duration = Duration::from_secs(20);

/// Interval between two requests to `/readyz`.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Devices of a root with their numbers. A container runtime makes them; a static program reads random
/// bytes from `/dev/urandom`.
const DEVICES: [(&str, &str); 3] = [("null", "3"), ("random", "8"), ("urandom", "9")];

/// Makes the devices that are missing.
fn make_devices(root: &Path) -> Result<()> {
    let folder = root.join("dev");
    fs::create_dir_all(&folder).context("could not make the folder of devices")?;
    for (name, minor) in DEVICES {
        let device = folder.join(name);
        if !device.exists() {
            let mut mknod = Command::new("mknod");
            process::run(mknod.args(["-m", "666"]).arg(&device).args(["c", "1", minor]))?;
        }
    }
    Ok(())
}

/// Checks the program inside a root file system. `user` is numeric; only an administrator can select
/// it, and other users run as themselves.
pub(super) fn check_in_root(root: &Path, program: &str, user: Option<u32>) -> Result<()> {
    make_devices(root)?;
    check(&|words| {
        let mut command = if packages::is_root() {
            Command::new("chroot")
        } else {
            let mut unshare = Command::new("unshare");
            unshare.args(["--map-root-user", "chroot"]);
            unshare
        };
        if let Some(user) = user.filter(|_| packages::is_root()) {
            command.arg(format!("--userspec={user}:{user}"));
        }
        // The server needs neither variables nor a home folder.
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command.arg(root).arg(program).args(words);
        command
    })
}

/// Checks the program that `command` starts with the given arguments.
pub(super) fn check(command: &dyn Fn(&[&str]) -> Command) -> Result<()> {
    let mut version = command(&["--version"]);
    let shown = process::shown(&version);
    let text = process::answer(&mut version).with_context(|| format!("`{shown}` failed"))?;
    ensure!(text.contains(VERSION), "`{shown}` printed `{}`, not {VERSION}", text.trim());
    let address = free_address()?;
    let listen = address.to_string();
    let mut serve = command(&["serve", "--listen", &listen, "--data-dir", "/data"]);
    let start = Instant::now();
    let child = serve.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
    let mut server =
        Server(child.with_context(|| format!("could not start `{}`", process::shown(&serve)))?);
    server.wait_until_ready(address)?;
    eprintln!("{}; serve was ready after {} ms", text.trim(), start.elapsed().as_millis());
    Ok(())
}

/// A server process, killed on drop.
struct Server(Child);

impl Server {
    fn wait_until_ready(&mut self, address: SocketAddr) -> Result<()> {
        let start = Instant::now();
        while start.elapsed() < READY_TIMEOUT {
            if let Some(status) = self.0.try_wait()? {
                bail!("`outlive serve` ended before it was ready: {status}");
            }
            if is_ready(address) {
                return Ok(());
            }
            thread::sleep(POLL_INTERVAL);
        }
        bail!("`outlive serve` was not ready after {} s", READY_TIMEOUT.as_secs())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns an address that no process listens on.
fn free_address() -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").context("no free port")?;
    listener.local_addr().context("no free port")
}

/// Whether `/readyz` responds with 200.
fn is_ready(address: SocketAddr) -> bool {
    let response = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(READY_TIMEOUT))?;
        let request =
            format!("GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes())?;
        let mut response = String::new();
        stream.read_to_string(&mut response)?;
        Ok(response)
    };
    response().is_ok_and(|response| response.starts_with("HTTP/1.1 200"))
}
