//! The program in a terminal: progress bars, forms, Ctrl-C, size and colors.

use super::{
    stage::{ERAS, Outlive, Stage},
    tmux::Terminal,
};

struct World {
    outlive: Outlive,
    stage: Stage,
}

impl World {
    fn new() -> Self {
        Self { outlive: Outlive::new(), stage: Stage::start(&[]) }
    }

    fn call(&self, words: &[&str]) -> Terminal {
        Terminal::run(&self.outlive, &[&["call", self.stage.url.as_str()][..], words].concat())
    }

    /// Starts a call that waits in the middle, as a task.
    fn counting(&self) -> Terminal {
        let terminal = self.call(&["count", "to=4", &self.hold()]);
        // Only a task prints lines before it ends.
        terminal.until("line 2");
        terminal.until("50%");
        terminal
    }

    fn hold(&self) -> String {
        format!("hold={}", self.outlive.folder.file("hold"))
    }
}

fn count(screen: &str, text: &str) -> usize {
    screen.matches(text).count()
}

#[test]
fn progress_bar_is_below_output_of_task() {
    let world = World::new();
    let terminal = world.counting();
    let screen = terminal.until("2 of 4  counting");
    let lines: Vec<&str> = screen.lines().collect();
    assert_eq!(&lines[..2], ["line 1", "line 2"], "{screen}");
    assert!(lines[2].starts_with("[============>           ]  50%"), "{screen}");
    world.outlive.folder.touch("hold");
    let screen = each_line_once(&terminal);
    assert!(!screen.contains('%'), "the bar is gone: {screen}");
}

/// Waits for the end, and asserts that each line is printed once, including the scrollback.
#[track_caller]
fn each_line_once(terminal: &Terminal) -> String {
    terminal.until("EXIT:0");
    let screen = terminal.history();
    for line in ["line 1", "line 2", "line 3", "line 4"] {
        assert_eq!(count(&screen, line), 1, "{screen}");
    }
    screen
}

#[test]
fn progress_bar_in_shrunk_terminal_leaves_no_copy() {
    let world = World::new();
    let terminal = world.counting();
    terminal.until("50%  2 of 4  counting");
    // Narrower than before, and exactly as wide as the line, so that clearing the line removes all
    // of it.
    terminal.resize("60", "30");
    world.outlive.folder.touch("hold");
    let screen = each_line_once(&terminal);
    assert!(!screen.contains('%'), "a copy of the bar: {screen}");
}

#[test]
fn progress_bar_wider_than_terminal_is_truncated() {
    let world = World::new();
    let terminal = world.counting();
    terminal.until("50%  2 of 4  counting");
    terminal.resize("40", "30");
    terminal.until("50%  2 o…");
    world.outlive.folder.touch("hold");
    each_line_once(&terminal);
}

#[test]
fn progress_without_total_shows_spinner() {
    let world = World::new();
    let terminal = world.call(&["hang", &world.hold()]);
    terminal.until("1  hanging");
    world.outlive.folder.touch("hold");
    let screen = terminal.until("EXIT:0");
    assert!(screen.starts_with("hung\n"), "{screen}");
}

/// Fills in the form of `order`, with an invalid value in every validated field.
fn fill(terminal: &Terminal) {
    terminal.until("What would you like?");
    terminal.until("name (text, at least 2 characters)");
    terminal.enter("A");
    terminal.until("at least 2 characters");
    terminal.press(&["BSpace"]);
    terminal.enter("Ada");
    terminal.until("contact (text, email, optional)");
    terminal.enter("nowhere");
    terminal.until_that("the mistake is shown", |screen| screen.contains("the value must be an e"));
    for _ in 0.."nowhere".len() {
        terminal.press(&["BSpace"]);
    }
    terminal.press(&["Enter"]);
    terminal.until("count (integer, 1 to 10");
    terminal.enter("11");
    terminal.until_that("the mistake is shown", |screen| {
        screen.contains("the value must be at most 10")
    });
    terminal.press(&["BSpace", "BSpace", "Enter"]);
    terminal.until("Large");
    terminal.press(&["Down", "Enter"]);
    terminal.until("With sugar");
    terminal.press(&["Down", "Space", "Enter"]);
    terminal.until("gift");
    terminal.press(&["y"]);
}

#[test]
fn form_supports_all_field_kinds_and_validates() {
    for era in ERAS {
        for tool in ["order", "order_task"] {
            let world = World::new();
            let terminal = world.call(&[tool, "--protocol-version", era]);
            fill(&terminal);
            let screen = terminal.until("EXIT:0");
            assert!(screen.contains(&format!("{} requests input:", world.stage.url)), "{screen}");
            let order = r#"{"name":"Ada","contact":null,"count":3,"size":"Large","extras":["Sugar"],"gift":true}"#;
            assert!(screen.contains(order), "{era} {tool}: {screen}");
        }
    }
}

#[test]
fn form_skips_fields_with_prepared_answers() {
    let world = World::new();
    let answers = ["--answer", "name=Ada", "--answer", "size=Small", "--answer", "extras=Milk"];
    let terminal = world.call(&[&["order"][..], &answers].concat());
    let screen = terminal.until("contact");
    assert!(!screen.contains("name ("), "{screen}");
    terminal.press(&["Enter"]);
    terminal.until("count");
    terminal.press(&["Enter"]);
    terminal.until("gift");
    terminal.press(&["n"]);
    let screen = terminal.until("EXIT:0");
    assert!(screen.contains(r#""extras":["Milk"],"gift":false"#), "{screen}");
}

#[test]
fn url_request_shows_full_url_and_asks_consent() {
    let world = World::new();
    for (keys, code, out) in
        [(&["Up", "Up", "Enter"][..], "EXIT:0", "agreed"), (&["Enter"], "EXIT:1", "error")]
    {
        let terminal = world.call(&["visit"]);
        terminal.until("Log in to the shop");
        terminal.until("https://shop.example/login?next=%2Fcart");
        terminal.until("not now");
        terminal.press(keys);
        let screen = terminal.until(code);
        assert!(screen.contains(out), "{screen}");
    }
}

#[test]
fn ctrl_c_then_continue_resumes_call() {
    let world = World::new();
    let terminal = world.counting();
    terminal.press(&["C-c"]);
    terminal.until("What now?");
    terminal.press(&["Enter"]);
    terminal.until("50%");
    world.outlive.folder.touch("hold");
    terminal.until("EXIT:0");
}

#[test]
fn ctrl_c_then_detach_keeps_task_running() {
    let world = World::new();
    let terminal = world.counting();
    terminal.press(&["C-c"]);
    terminal.until("detach: the task keeps running");
    terminal.press(&["Down", "Enter"]);
    let screen = terminal.until("EXIT:130");
    assert!(screen.contains("outlive tasks result"), "{screen}");
    world.outlive.folder.touch("hold");
    world.outlive.says(&["tasks", "result"], "line 1\nline 2\nline 3\nline 4\n");
}

#[test]
fn ctrl_c_then_cancel_cancels_task() {
    let world = World::new();
    let terminal = world.counting();
    terminal.press(&["C-c"]);
    terminal.until("cancel the task");
    terminal.press(&["Down", "Down", "Enter"]);
    let screen = terminal.until("EXIT:4");
    assert!(screen.contains("the call was cancelled"), "{screen}");
    assert!(world.outlive.written().is_empty());
}

#[test]
fn ctrl_c_before_task_offers_cancel_and_later_detach() {
    let world = World::new();
    let terminal = world.call(&["hang", &world.hold()]);
    terminal.until("hanging");
    terminal.press(&["C-c"]);
    terminal.until("detach as soon as the call becomes a task");
    terminal.until("cancel the call");
    terminal.press(&["Down", "Down", "Enter"]);
    terminal.until("EXIT:4");
    assert!(world.outlive.written().is_empty());
}

#[test]
fn second_ctrl_c_exits_at_once() {
    let world = World::new();
    let terminal = world.counting();
    terminal.press(&["C-c"]);
    terminal.until("What now?");
    terminal.press(&["C-c"]);
    terminal.until("EXIT:130");
    assert_eq!(world.outlive.written().len(), 1, "the task keeps running");
}

#[test]
fn ctrl_c_in_form_offers_to_decline() {
    let world = World::new();
    let terminal = world.call(&["order_task"]);
    terminal.until("name (");
    terminal.press(&["C-c"]);
    terminal.until("close the form without a response");
    // The form starts again from its first field.
    terminal.press(&["Enter"]);
    terminal.until_that("the form is shown again", |screen| count(screen, "name (") == 2);
    terminal.press(&["C-c"]);
    terminal.until_that("the menu is shown again", |screen| screen.contains("cancel the task"));
    terminal.press(&["Down", "Enter"]);
    let screen = terminal.until("EXIT:1");
    assert!(screen.contains("declined"), "{screen}");
}

#[test]
fn detached_form_is_answered_later() {
    let world = World::new();
    let terminal = world.call(&["order_task"]);
    terminal.until("name (");
    terminal.press(&["C-c"]);
    terminal.until("detach");
    terminal.press(&["Down", "Down", "Down", "Enter"]);
    terminal.until("EXIT:130");
    let terminal = Terminal::run(&world.outlive, &["tasks", "answer"]);
    fill(&terminal);
    let screen = terminal.until("EXIT:0");
    assert!(screen.contains("answered"), "{screen}");
    assert!(world.outlive.run(&["tasks", "result"]).out.contains("Ada"));
}

#[test]
fn colors_are_only_for_terminals_without_no_color() {
    let world = World::new();
    let call = ["call", world.stage.url.as_str(), "order_task"];
    let colored = Terminal::run(&world.outlive, &call);
    colored.until("name (");
    assert!(colored.colors().contains("\u{1b}["), "{:?}", colored.colors());
    let plain = Terminal::run_with(&world.outlive, "NO_COLOR=1", &call, "");
    plain.until("name (");
    assert!(!plain.colors().contains("\u{1b}["), "{:?}", plain.colors());
    // Standard output in a pipe, standard error on the terminal.
    let inspect = ["inspect", world.stage.url.as_str()];
    let piped = Terminal::run_with(&world.outlive, "", &inspect, "| head -3 | cat -v");
    let screen = piped.until("EXIT:0");
    assert!(screen.contains("stage 1.0.0") && !screen.contains("^["), "{screen}");
    let shown = Terminal::run(&world.outlive, &["call", &world.stage.url, "picture"]);
    let screen = shown.until("EXIT:0");
    assert!(screen.contains("red") && !shown.colors().contains("[31m"), "{screen}");
}

#[test]
fn tasks_watch_in_terminal_redraws_table_in_place() {
    let world = World::new();
    let (outlive, url) = (&world.outlive, world.stage.url.as_str());
    assert_eq!(outlive.run(&["call", "--detach", url, "count", "to=4", &world.hold()]).code, 0);
    assert_eq!(outlive.run(&["call", "--detach", url, "order_task"]).code, 0);
    let terminal = Terminal::run(outlive, &["tasks", "watch"]);
    terminal.until("[========        ]  50%  counting");
    let screen = terminal.until("asks: What would you like?");
    assert_eq!(count(&screen, "HANDLE"), 1, "{screen}");
    world.outlive.folder.touch("hold");
    let screen = terminal.until("completed");
    assert_eq!((count(&screen, "HANDLE"), count(&screen, "order_task")), (1, 1), "{screen}");
    terminal.press(&["C-c"]);
    terminal.until("EXIT:130");
}
