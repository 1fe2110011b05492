//! Logins with the keyring of a Linux desktop: a private session bus and GNOME Keyring.
//!
//! Prints a notice and tests nothing if their programs are missing. Debian has them in `dbus` and
//! `gnome-keyring`.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::fs::PermissionsExt,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use super::world::World;
use crate::call::stage::{GUARD, Ran};

/// A session: a bus, and an unlocked or locked keyring.
struct Desktop {
    bus: Child,
    address: String,
    keyring: Option<Child>,
    home: String,
}

impl Desktop {
    /// Starts a session bus. Returns `None` if the programs are not installed.
    fn start(world: &World) -> Option<Self> {
        let home = world.outlive.folder.file("home");
        fs::create_dir_all(&home).unwrap();
        fs::set_permissions(&home, fs::Permissions::from_mode(0o700)).unwrap();
        let has = |program: &str| {
            let mut tried = Command::new(program);
            tried.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
        };
        if !["dbus-daemon", "dbus-send", "gnome-keyring-daemon"].into_iter().all(has) {
            eprintln!(
                "NOT TESTED: dbus-daemon, dbus-send or gnome-keyring-daemon is not installed"
            );
            return None;
        }
        // A bus that starts no services by itself.
        let config = world.outlive.folder.file("bus.conf");
        let rules = format!(
            "<busconfig><type>session</type><listen>unix:path={home}/bus</listen>\
             <policy context=\"default\"><allow send_destination=\"*\" eavesdrop=\"true\"/>\
             <allow eavesdrop=\"true\"/><allow own=\"*\"/></policy></busconfig>"
        );
        fs::write(&config, rules).unwrap();
        let mut bus = Command::new("dbus-daemon")
            .args(["--config-file", &config, "--nofork", "--print-address"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut address = String::new();
        BufReader::new(bus.stdout.take().unwrap()).read_line(&mut address).unwrap();
        Some(Self { bus, address: address.trim().to_owned(), keyring: None, home })
    }

    /// Stops the running keyring, and starts another one.
    fn keyring(&mut self, password: Option<&str>) {
        self.end_keyring();
        self.until(false);
        let mut command = self.with(Command::new("gnome-keyring-daemon"));
        command.args(["--foreground", "--components=secrets"]);
        command.args(password.map(|_| "--unlock"));
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut keyring = command.spawn().unwrap();
        let mut stdin = keyring.stdin.take().unwrap();
        stdin.write_all(password.unwrap_or_default().as_bytes()).unwrap();
        drop(stdin);
        self.keyring = Some(keyring);
        self.until(true);
    }

    /// Waits until the keyring is on the bus, or until it is gone.
    fn until(&self, there: bool) {
        let start = Instant::now();
        while self.has_keyring() != there {
            let state = if there { "not there" } else { "still there" };
            assert!(start.elapsed() < GUARD, "after {GUARD:?} the keyring is {state}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns whether the bus has a keyring.
    fn has_keyring(&self) -> bool {
        let mut asked = self.with(Command::new("dbus-send"));
        asked.args(["--session", "--print-reply", "--dest=org.freedesktop.DBus", "/"]);
        asked.args(["org.freedesktop.DBus.GetNameOwner", "string:org.freedesktop.secrets"]);
        asked.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
    }

    fn end_keyring(&mut self) {
        if let Some(mut keyring) = self.keyring.take() {
            let _ = keyring.kill();
            let _ = keyring.wait();
        }
    }

    /// Returns the command with the environment of this session.
    fn with(&self, mut command: Command) -> Command {
        command.env("DBUS_SESSION_BUS_ADDRESS", &self.address).env("HOME", &self.home);
        command
            .env("XDG_RUNTIME_DIR", &self.home)
            .env("XDG_DATA_HOME", format!("{}/data", self.home));
        command.env("OUTLIVE_KEYRING", "on");
        command
    }

    fn run(&self, world: &World, arguments: &[&str]) -> Ran {
        Ran::of(self.with(world.command(arguments)).output().unwrap())
    }

    fn log_in(&self, world: &World) -> Ran {
        let login = self.with(world.command(&["login", &world.url])).spawn().unwrap();
        world.browse();
        Ran::of(login.wait_with_output().unwrap())
    }
}

impl Drop for Desktop {
    fn drop(&mut self) {
        self.end_keyring();
        let _ = self.bus.kill();
        let _ = self.bus.wait();
    }
}

// ACL-33
#[test]
fn login_with_keyring_is_encrypted() {
    let world = World::new();
    let Some(mut desktop) = Desktop::start(&world) else { return };
    let (plain, sealed) =
        (world.credentials(), world.outlive.folder.file("data/credentials.sealed"));
    let url = world.url.as_str();

    // A bus without a keyring: the login is in the plain file, without a message.
    let ran = desktop.log_in(&world);
    assert!(ran.code == 0 && !ran.err.contains("stored in"), "{ran:?}");
    assert!(fs::read_to_string(&plain).unwrap().contains("secret-refresh-"));

    // An unlocked keyring: logins move from the plain file to the encrypted one.
    desktop.keyring(Some("password"));
    let ran = desktop.run(&world, &["call", url, "scopes"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "mcp\n"), "{ran:?}");
    let ran = desktop.log_in(&world);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(!fs::read_to_string(&plain).unwrap().contains("secret-refresh-"));
    let kept = fs::read_to_string(&sealed).unwrap();
    assert!(kept.contains(url) && !kept.contains("secret-") && !kept.contains("eyJ"), "{kept}");
    assert_eq!(fs::metadata(&sealed).unwrap().permissions().mode() & 0o777, 0o600);
    let who = desktop.run(&world, &["whoami"]);
    let where_to = format!("stored  in {sealed}, encrypted with a key in the Secret Service");
    assert!(who.code == 0 && who.out.contains(&where_to), "{who:?}");
    let ran = desktop.run(&world, &["call", url, "scopes"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "mcp\n"), "{ran:?}");

    // A locked keyring: the encrypted login is unreadable, and a new login goes to the plain file,
    // with a message.
    desktop.keyring(None);
    let who = desktop.run(&world, &["whoami", url]);
    assert!(who.code == 1 && who.err.contains("outlive login"), "{who:?}");
    assert!(who.err.contains(": the Secret Service is locked"), "{who:?}");
    let ran = desktop.run(&world, &["call", url, "scopes"]);
    assert!(ran.code == 3 && ran.err.contains("the Secret Service is locked"), "{ran:?}");
    let ran = desktop.log_in(&world);
    let word = format!("The Secret Service is locked, so the login is stored in {plain}");
    assert!(ran.code == 0 && ran.err.contains(&word), "{ran:?}");
    assert!(fs::read_to_string(&plain).unwrap().contains("secret-refresh-"));

    // Unlocked again, with the same key.
    desktop.keyring(Some("password"));
    assert_eq!(desktop.log_in(&world).code, 0);
    assert_eq!(desktop.run(&world, &["whoami", url]).code, 0);
    let out = desktop.run(&world, &["logout", url]);
    assert!(out.code == 0 && out.err.contains("Logged out"), "{out:?}");
    assert!(!fs::read_to_string(&sealed).unwrap().contains(url));
    assert_eq!(desktop.run(&world, &["whoami", url]).code, 1);
}
