//! A server that means harm (`examples/hostile.rs`), in front of every command, in a real terminal:
//! nothing that it wrote steers the terminal, hides, or looks like a line of the program.

use std::{
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

/// What every text of the server holds, but for ASCII.
const INVISIBLE: &str = "\u{85}\u{90}\u{9b}\u{9c}\u{9d}\u{202a}\u{202b}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}\u{202c}\
\u{200e}\u{200f}\u{61c}\u{200b}\u{200c}\u{200d}\u{2060}\u{2064}\u{feff}\u{ad}\u{34f}\u{180e}\u{e0001}\u{e0041}\
\u{fe00}\u{fe0f}\u{e0100}\u{3164}\u{2028}\u{2029}\u{fff9}\u{fdd0}";

/// The program at a terminal, with every byte that it wrote.
struct Recorded {
    terminal: Terminal,
    file: String,
}

impl Recorded {
    fn run(outlive: &Outlive, arguments: &[&str]) -> Self {
        let number = fs::read_dir(outlive.folder.file("")).unwrap().count();
        let file = outlive.folder.file(&format!("recorded-{number}"));
        Self { terminal: Terminal::record(outlive, arguments, &file), file }
    }

    fn bytes(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.file).unwrap_or_default()).into_owned()
    }

    /// Waits until this was written.
    #[track_caller]
    fn until(&self, text: &str) -> String {
        let begun = Instant::now();
        loop {
            let bytes = self.bytes();
            if bytes.contains(text) {
                return bytes;
            }
            assert!(begun.elapsed() < GUARD, "`{text}` was not written:\n{bytes:?}");
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

    /// Waits for the end, and holds what was written against the rules. `words` were all shown.
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
            assert!(!is_forged, "a line of the server looks like one of the program:\n{bytes:?}");
        }
    }
}

/// Whether a command prints what the server made, which may have lines of any kind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Talk,
    Data,
}

/// The text without the sequences that the program itself may write: colors, lines that are taken
/// away, a cursor that moves beside or up and is hidden.
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
                ["", "0", "1", "2", "5", "22", "31", "32", "33", "35", "36", "38", "39"]
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
fn hostile_lists_do_not_steer_the_terminal() {
    let outlive = Outlive::new();
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
    ];
    for era in ERAS {
        let server = server(era);
        Recorded::run(&outlive, &["inspect", &server]).check(Kind::Talk, &words);
        let json = Recorded::run(&outlive, &["inspect", "--json", &server]);
        json.check(Kind::Talk, &["server-title", "tool-name"]);
        assert!(json.bytes().contains(r"\u202e"), "JSON stays JSON");
    }
}

#[test]
fn hostile_results_and_errors_do_not_steer_the_terminal() {
    let outlive = Outlive::new();
    for era in ERAS {
        let server = server(era);
        let run = |words: &[&str]| {
            Recorded::run(&outlive, &[&["call", server.as_str()][..], words].concat())
        };
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
fn hostile_input_requests_do_not_steer_the_terminal() {
    let outlive = Outlive::new();
    for era in ERAS {
        let server = server(era);
        let form = Recorded::run(&outlive, &["call", &server, "ask"]);
        form.fill();
        let words =
            ["form", "field-title", "field-description", "enum-name", "const-title", "boolean"];
        form.check(Kind::Data, &words);
        let said = without_own(&form.bytes());
        assert!(said.contains("\n| error: forged"), "the message is quoted: {said}");

        let visit = Recorded::run(&outlive, &["call", &server, "visit"]);
        visit.until("not now");
        visit.terminal.press(&["Enter"]);
        visit.check(Kind::Data, &["url-message", "url"]);
        let said = without_own(&visit.bytes());
        assert!(said.contains("host: evil.example\r\n"), "the host stands apart: {said}");
        // Nobody is here who could be asked.
        let ran = outlive.run(&["call", &server, "ask"]);
        assert!(ran.code == 5 && !ran.err.contains(['\u{1b}', '\u{202e}']), "{ran:?}");
    }
}

#[test]
fn hostile_tasks_do_not_steer_the_terminal() {
    let outlive = Outlive::new();
    let server = server(ERAS[0]);
    let call = Recorded::run(&outlive, &["call", &server, "task"]);
    call.until("<status>");
    call.fill();
    call.check(Kind::Talk, &["form", "task-error"]);

    let detached = outlive.run(&["call", "--detach", &server, "task"]);
    let handle = detached.out.trim();
    assert_eq!(detached.code, 0, "{detached:?}");
    Recorded::run(&outlive, &["tasks", "list"]).check(Kind::Talk, &[]);
    Recorded::run(&outlive, &["tasks", "list", "--json"]).check(Kind::Talk, &["task-id"]);
    Recorded::run(&outlive, &["tasks", "get", handle]).check(Kind::Talk, &["status"]);
    Recorded::run(&outlive, &["tasks", "get", handle, "--json"]).check(Kind::Talk, &["task-id"]);
    let watch = Recorded::run(&outlive, &["tasks", "watch", handle]);
    watch.until("<status>");
    watch.until("asks: <form>");
    watch.terminal.press(&["C-c"]);
    watch.check(Kind::Talk, &[]);
    let result = Recorded::run(&outlive, &["tasks", "result", handle]);
    result.fill();
    result.check(Kind::Talk, &["form", "task-error"]);

    let detached = outlive.run(&["call", "--detach", &server, "task"]);
    let handle = detached.out.trim();
    Recorded::run(&outlive, &["tasks", "cancel", handle]).check(Kind::Talk, &["stderr"]);
}

#[test]
fn hostile_legacy_tasks_do_not_steer_the_terminal() {
    let outlive = Outlive::new();
    let server = server(ERAS[1]);
    let list = ["tasks", "list", "--server", &server, "--version", ERAS[1]];
    Recorded::run(&outlive, &list).check(Kind::Talk, &["task-id", "status"]);
    Recorded::run(&outlive, &["call", &server, "task"])
        .check(Kind::Data, &["status", "task-result"]);
}

/// Serves error pages and documents of a login.
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
fn hostile_pages_and_logins_do_not_steer_the_terminal() {
    let (outlive, pages) = (Outlive::new(), Pages::start());
    let url = |path: &str| format!("{}{path}", pages.1);
    for path in ["/error", "/page", "/nothing"] {
        Recorded::run(&outlive, &["inspect", &url(path)]).check(Kind::Talk, &[]);
        Recorded::run(&outlive, &["call", &url(path), "good"]).check(Kind::Talk, &[]);
    }
    for step in ["resource", "issuer", "registration"] {
        let login = ["login", &url(&format!("/mcp/{step}")), "--no-browser"].map(str::to_owned);
        let login: Vec<&str> = login.iter().map(String::as_str).collect();
        Recorded::run(&outlive, &login).check(Kind::Talk, &[step]);
    }
    let login = Recorded::run(&outlive, &["login", &url("/mcp/page"), "--no-browser"]);
    login.until("Paste that address here");
    login.terminal.enter("nonsense");
    login.check(Kind::Talk, &[]);
    assert!(login.bytes().contains("host: 127.0.0.1:"), "the host stands apart");
    Recorded::run(&outlive, &["whoami"]).check(Kind::Talk, &[]);
}
