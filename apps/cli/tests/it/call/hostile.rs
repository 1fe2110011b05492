//! Every command in a real terminal, against hostile servers (`examples/hostile.rs`), callers and
//! files.
//!
//! Their text must not control the terminal, hide, or imitate a line of the program.

#[cfg(target_os = "linux")]
mod inbox; // hostile callers against people who decide
#[cfg(target_os = "linux")]
mod operator; // hostile callers, files and folders against an operator
#[cfg(target_os = "linux")]
mod upstreams; // hostile upstreams and files of hosts against an operator
#[cfg(target_os = "linux")]
mod workers; // hostile tool workers against their developer

use std::{
    cell::RefCell,
    collections::BTreeSet,
    fs,
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use super::{
    stage::{ERAS, GUARD, Outlive, example},
    tmux::Terminal,
};

/// Non-ASCII characters in every text of the server.
const INVISIBLE: &str = "\u{85}\u{90}\u{9b}\u{9c}\u{9d}\u{202a}\u{202b}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}\u{202c}\
\u{200e}\u{200f}\u{61c}\u{200b}\u{200c}\u{200d}\u{2060}\u{2064}\u{feff}\u{ad}\u{34f}\u{180e}\u{e0001}\u{e0041}\
\u{fe00}\u{fe0f}\u{e0100}\u{3164}\u{2028}\u{2029}\u{fff9}\u{fdd0}";

/// Escape sequences that may also be in a file name.
const HARM: &str = "\u{1b}]0;PWNED\u{7}\u{1b}[2J\u{1b}[8m\u{1b}[31m\u{9b}2J";
const LINES: &str = "\rerror: forged\nPassword for root: ";

/// Returns a hostile text that starts with a word to search for.
fn harm(word: &str) -> String {
    format!("<{word}>{HARM}{INVISIBLE}{LINES}")
}

/// Commands that each test runs.
const LISTS: &[&str] = &["inspect"];
const RESULTS: &[&str] = &["call"];
const INPUT_REQUESTS: &[&str] = &["call"];
const TASKS: &[&str] = &[
    "call",
    "tasks list",
    "tasks get",
    "tasks watch",
    "tasks answer",
    "tasks result",
    "tasks cancel",
    "tasks remove",
];
const LEGACY_TASKS: &[&str] = &["call", "tasks list"];
const PAGES: &[&str] = &["inspect", "call", "login", "whoami", "logout"];
const SERVING: &[&str] = &["init", "serve", "connect", "doctor", "jobs list", "jobs end"];
const STORE: &[&str] = &[
    "store list",
    "store show",
    "store retry",
    "store purge",
    "store migrate",
    "tasks list",
    "tasks answer",
    "tasks cancel",
];
const PEOPLE: &[&str] = &[
    "inbox list",
    "inbox show",
    "inbox approve",
    "inbox deny",
    "inbox answer",
    "inbox link",
    "console",
];
const UPSTREAMS: &[&str] = &[
    "upstreams check",
    "upstreams log",
    "upstreams restart",
    "upstreams accept",
    "upstreams import",
];
const WORKERS: &[&str] = &["test", "serve"];
/// Commands that print only text of the program.
const OWN_TEXT: &[&str] = &["completions", "man"];

#[test]
fn every_command_is_tested_with_hostile_text() {
    let driven = [
        LISTS,
        RESULTS,
        INPUT_REQUESTS,
        TASKS,
        LEGACY_TASKS,
        PAGES,
        SERVING,
        STORE,
        PEOPLE,
        UPSTREAMS,
        WORKERS,
        OWN_TEXT,
    ];
    let driven: BTreeSet<String> =
        driven.iter().flat_map(|it| it.iter()).map(|it| (*it).to_owned()).collect();
    let all: BTreeSet<String> = outlive_cli::commands().into_iter().collect();
    assert_eq!(driven, all, "a test of this module must run each command");
}

/// The program, in a test that must run all commands in `promised`.
struct Driver {
    outlive: Outlive,
    promised: &'static [&'static str],
    driven: RefCell<BTreeSet<String>>,
}

impl Driver {
    fn new(promised: &'static [&'static str]) -> Self {
        Self { outlive: Outlive::new(), promised, driven: RefCell::default() }
    }

    /// Runs the program in a terminal.
    #[track_caller]
    fn run(&self, arguments: &[&str]) -> Recorded {
        self.run_with("", arguments)
    }

    #[track_caller]
    fn run_with(&self, variables: &str, arguments: &[&str]) -> Recorded {
        let is_meant = |command: &&&str| {
            let words: Vec<&str> = command.split(' ').collect();
            arguments.starts_with(&words)
        };
        let command = self.promised.iter().find(is_meant);
        let command = command.unwrap_or_else(|| panic!("{arguments:?} is not promised"));
        self.driven.borrow_mut().insert((*command).to_owned());
        Recorded::run(&self.outlive, variables, arguments)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if !thread::panicking() {
            let promised = self.promised.iter().map(|it| (*it).to_owned());
            assert_eq!(*self.driven.borrow(), promised.collect::<BTreeSet<String>>());
        }
    }
}

/// The program in a terminal, with every byte of its output.
struct Recorded {
    terminal: Terminal,
    file: String,
}

impl Recorded {
    fn run(outlive: &Outlive, variables: &str, arguments: &[&str]) -> Self {
        let number = fs::read_dir(outlive.folder.file("")).unwrap().count();
        let file = outlive.folder.file(&format!("recorded-{number}"));
        Self { terminal: Terminal::record(outlive, variables, arguments, &file), file }
    }

    fn bytes(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.file).unwrap_or_default()).into_owned()
    }

    /// Waits until the output contains a text.
    #[track_caller]
    fn until(&self, text: &str) -> String {
        let start = Instant::now();
        loop {
            let bytes = self.bytes();
            if bytes.contains(text) {
                return bytes;
            }
            assert!(start.elapsed() < GUARD, "timed out waiting for `{text}`:\n{bytes:?}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Responds to the form of the server.
    fn fill(&self) {
        self.until("<field-title>");
        self.until("suggested: <field-default>");
        self.terminal.enter("x");
        self.until("<enum-name>");
        self.terminal.press(&["Enter"]);
        self.until("<const-title>");
        self.terminal.press(&["Enter"]);
        self.until("<boolean>");
        self.terminal.press(&["y"]);
    }

    /// Waits for the end, and checks the output. All `words` must be shown.
    #[track_caller]
    fn check(&self, kind: Kind, words: &[&str]) {
        let bytes = self.until("EXIT:");
        for word in words {
            assert!(bytes.contains(&format!("<{word}>")), "<{word}> is not shown:\n{bytes:?}");
        }
        let text = without_own(&bytes);
        for char in text.chars() {
            let is_layout = matches!(char, '\r' | '\n' | '\t');
            assert!(is_layout || !char.is_control(), "{char:?} was written:\n{bytes:?}");
            assert!(!INVISIBLE.contains(char), "{char:?} was written:\n{bytes:?}");
        }
        for line in text.split(['\r', '\n']).filter(|_| kind == Kind::Talk) {
            let is_forged = line.starts_with("error: forged") || line.starts_with("Password for");
            assert!(!is_forged, "a line of the server imitates the program:\n{bytes:?}");
        }
    }
}

/// Whether a command prints data of the server, which may have any lines.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Talk,
    Data,
}

/// Removes the escape sequences that the program itself may write: colors, clearing a line, moving
/// and hiding the cursor.
fn without_own(bytes: &str) -> String {
    let mut text = String::new();
    let mut left = bytes;
    while let Some(at) = left.find('\u{1b}') {
        text.push_str(&left[..at]);
        let sequence = &left[at..];
        let rest = sequence.strip_prefix("\u{1b}[").unwrap_or_default();
        let end = rest.find(|char: char| char.is_ascii_alphabetic()).unwrap_or_default();
        let (numbers, last) = (&rest[..end], rest[end..].chars().next().unwrap_or(' '));
        let is_own = match last {
            'm' => numbers.split(';').all(|it| {
                ["", "0", "1", "2", "3", "5", "22", "31", "32", "33", "34", "35", "36", "38", "39"]
                    .contains(&it)
                    || numbers == "38;5;8"
            }),
            'A' | 'B' | 'C' | 'D' => numbers.chars().all(|it| it.is_ascii_digit()),
            'K' => ["", "0", "2"].contains(&numbers),
            'h' | 'l' => numbers == "?25",
            _ => false,
        };
        assert!(is_own, "an escape sequence was written: {:?}", sequence.get(..20));
        left = &rest[end + 1..];
    }
    text + left
}

fn server(era: &str) -> String {
    let legacy = if era == ERAS[1] { " --legacy" } else { "" };
    format!("'{}'{legacy}", example("hostile"))
}

#[test]
fn hostile_lists_do_not_control_terminal() {
    let driver = Driver::new(LISTS);
    let words = [
        "stderr",
        "server-name",
        "server-version",
        "instructions",
        "tool-name",
        "tool-title",
        "tool-description",
        "argument",
        "argument-description",
        "choice",
        "default",
        "format",
        "output",
        "resource-uri",
        "resource-name",
        "resource-description",
        "template-uri",
        "prompt-name",
        "prompt-argument",
        "skill-uri",
        "skill-name",
        "skill-description",
    ];
    for era in ERAS {
        let server = server(era);
        driver.run(&["inspect", &server]).check(Kind::Talk, &words);
        let json = driver.run(&["inspect", "--json", &server]);
        json.check(Kind::Talk, &["server-title", "tool-name"]);
        assert!(json.bytes().contains(r"\u202e"), "the output is not valid JSON");
        driver.run(&["inspect", "--all-protocol-versions", &server]).check(Kind::Talk, &words);
    }
}

#[test]
fn hostile_results_and_errors_do_not_control_terminal() {
    let driver = Driver::new(RESULTS);
    for era in ERAS {
        let server = server(era);
        let run = |words: &[&str]| driver.run(&[&["call", server.as_str()][..], words].concat());
        let result = ["result", "mime", "link-uri", "link-name", "embedded-uri", "structured"];
        run(&["good"]).check(Kind::Data, &result);
        run(&["good", "--json"]).check(Kind::Talk, &["result", "embedded", "structured-key"]);
        run(&["progress"]).check(Kind::Data, &["progress", "progressed"]);
        run(&["fail"]).check(Kind::Talk, &["tool-error"]);
        run(&["refuse"]).check(Kind::Talk, &["call-error"]);
        run(&["no-such-tool"]).check(Kind::Talk, &["tool-name"]);
        run(&["need"]).check(Kind::Talk, &["argument", "choice"]);
        run(&["need", "choice=zzz"]).check(Kind::Talk, &["choice"]);
        run(&["need", "other=1"]).check(Kind::Talk, &["argument"]);
    }
}

#[test]
fn hostile_input_requests_do_not_control_terminal() {
    let driver = Driver::new(INPUT_REQUESTS);
    for era in ERAS {
        let server = server(era);
        let form = driver.run(&["call", &server, "ask"]);
        form.fill();
        let words =
            ["form", "field-title", "field-description", "enum-name", "const-title", "boolean"];
        form.check(Kind::Data, &words);
        let said = without_own(&form.bytes());
        assert!(said.contains("\n| error: forged"), "the message is quoted: {said}");
        assert!(!said.contains(r"\u{fdd6}"), "a style mark is printed as text: {said}");

        let visit = driver.run(&["call", &server, "visit"]);
        visit.until("not now");
        visit.terminal.press(&["Enter"]);
        visit.check(Kind::Data, &["url-message", "url"]);
        let said = without_own(&visit.bytes());
        assert!(
            said.contains("host: evil.example\r\n"),
            "the host is not on a separate line: {said}"
        );
        // Without a terminal.
        let ran = driver.outlive.run(&["call", &server, "ask"]);
        assert!(ran.code == 5 && !ran.err.contains(['\u{1b}', '\u{202e}']), "{ran:?}");
    }
}

#[test]
fn hostile_tasks_do_not_control_terminal() {
    let driver = Driver::new(TASKS);
    let server = server(ERAS[0]);
    let call = driver.run(&["call", &server, "task"]);
    call.until("<status>");
    call.fill();
    call.check(Kind::Talk, &["form", "task-error"]);

    let detached = driver.outlive.run(&["call", "--detach", &server, "task"]);
    let handle = detached.out.trim();
    assert_eq!(detached.code, 0, "{detached:?}");
    driver.run(&["tasks", "list"]).check(Kind::Talk, &[]);
    driver.run(&["tasks", "list", "--json"]).check(Kind::Talk, &["task-id"]);
    driver.run(&["tasks", "get", handle]).check(Kind::Talk, &["status"]);
    driver.run(&["tasks", "get", handle, "--json"]).check(Kind::Talk, &["task-id"]);
    let watch = driver.run(&["tasks", "watch", handle]);
    watch.until("<status>");
    watch.until("asks: <form>");
    watch.terminal.press(&["C-c"]);
    watch.check(Kind::Talk, &[]);
    let result = driver.run(&["tasks", "result", handle]);
    result.fill();
    result.check(Kind::Talk, &["form", "task-error"]);

    let detached = driver.outlive.run(&["call", "--detach", &server, "task"]);
    let handle = detached.out.trim();
    driver.run(&["tasks", "cancel", handle]).check(Kind::Talk, &["stderr"]);

    let asks = format!("{server} --asks");
    let detached = driver.outlive.run(&["call", "--detach", &asks, "task"]);
    let handle = detached.out.trim();
    let wrong = driver.run(&["tasks", "answer", handle, "--answer", "nofield=1"]);
    wrong.check(Kind::Talk, &["field"]);
    driver.run(&["tasks", "watch", handle, "--json"]).check(Kind::Talk, &["form"]);
    let answer = driver.run(&["tasks", "answer", handle]);
    answer.fill();
    answer.check(Kind::Talk, &["form", "field-title"]);
    driver.run(&["tasks", "remove", handle]).check(Kind::Talk, &[]);
}

#[test]
fn own_text_does_not_control_terminal() {
    let driver = Driver::new(OWN_TEXT);
    for shell in ["bash", "zsh", "fish"] {
        driver.run(&["completions", shell]).check(Kind::Talk, &[]);
    }
    let folder = driver.outlive.folder.file("man");
    driver.run(&["man", &folder]).check(Kind::Talk, &[]);
}

#[test]
fn hostile_legacy_tasks_do_not_control_terminal() {
    let driver = Driver::new(LEGACY_TASKS);
    let server = server(ERAS[1]);
    let list = ["tasks", "list", "--server", &server, "--protocol-version", ERAS[1]];
    driver.run(&list).check(Kind::Talk, &["task-id", "status"]);
    driver.run(&["call", &server, "task"]).check(Kind::Data, &["status", "task-result"]);
}

/// A server of error pages and documents of a login.
struct Pages(Child, String);

impl Pages {
    fn start() -> Self {
        let mut server =
            Command::new(example("hostile")).arg("--http").stderr(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(server.stderr.take().unwrap()).read_line(&mut url).unwrap();
        Self(server, url.trim().to_owned())
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn hostile_pages_and_logins_do_not_control_terminal() {
    let (driver, pages) = (Driver::new(PAGES), Pages::start());
    let url = |path: &str| format!("{}{path}", pages.1);
    for path in ["/error", "/page", "/nothing"] {
        driver.run(&["inspect", &url(path)]).check(Kind::Talk, &[]);
        driver.run(&["call", &url(path), "good"]).check(Kind::Talk, &[]);
    }
    for step in ["resource", "issuer", "registration"] {
        let login = ["login", &url(&format!("/mcp/{step}")), "--no-browser"].map(str::to_owned);
        let login: Vec<&str> = login.iter().map(String::as_str).collect();
        driver.run(&login).check(Kind::Talk, &[step]);
    }
    let login = driver.run(&["login", &url("/mcp/page"), "--no-browser"]);
    login.until("Paste that URL here");
    login.terminal.enter("nonsense");
    login.check(Kind::Talk, &[]);
    assert!(login.bytes().contains("host: 127.0.0.1:"), "the host is not on a separate line");

    let full = url("/mcp/full");
    let login = driver.run(&["login", &full, "--no-browser"]);
    let shown = login.until("Paste that URL here");
    let parameter = |name: &str| {
        let (_, rest) = shown.split_once(&format!("{name}=")).unwrap();
        rest.split(['&', '\r']).next().unwrap().to_owned()
    };
    let back = parameter("redirect_uri").replace("%3A", ":").replace("%2F", "/");
    login.terminal.enter(&format!("{back}?code=c&state={}", parameter("state")));
    login.check(Kind::Talk, &[]);
    assert!(login.bytes().contains("Logged in to"), "{}", login.bytes());
    driver.run(&["whoami"]).check(Kind::Talk, &["client", "granted"]);
    driver.run(&["whoami", "--json"]).check(Kind::Talk, &["client", "granted"]);
    driver.run(&["logout", &full]).check(Kind::Talk, &[]);
    driver.run(&["logout", &full, "--json"]).check(Kind::Talk, &[]);
}
