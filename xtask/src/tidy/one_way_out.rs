//! The program writes to its terminal in one file, which escapes untrusted text.

use super::findings::Findings;
use super::tree::Tree;

/// The file that writes to the terminal.
pub(super) const PRINT: &str = "apps/cli/src/print.rs";

/// The sources of the rule: the program, and its supervisor.
const PROGRAM: [&str; 2] = ["apps/cli/src/", "crates/jobs/src/"];

/// Files that may draw on a terminal: forms, bars and tables, with escaped text.
const DRAWS: [&str; 4] = [
    "apps/cli/src/call/progress_bar.rs",
    "apps/cli/src/call/form.rs",
    "apps/cli/src/doctor/machine.rs",
    "apps/cli/src/tasks/watch/view.rs",
];

/// The code that writes to its parent process over a pipe.
const PIPES: [&str; 3] =
    ["crates/jobs/src/supervisor/", "crates/jobs/src/asked.rs", "crates/jobs/src/ready.rs"];

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    let files = tree.rust_files().filter(|file| {
        PROGRAM.iter().any(|folder| file.path.starts_with(folder))
            && file.path != PRINT
            && !PIPES.iter().any(|place| file.path.starts_with(place))
    });
    for file in files {
        for line in file.lines().iter().filter(|line| !line.in_tests) {
            let code = line.code.replace("stdout().is_terminal()", "");
            let code = code.replace("stderr().is_terminal()", "");
            let has = |word: &&str| code.contains(*word);
            let prints = ["println!", "eprintln!", "print!(", "eprint!(", "dbg!("];
            let writes = ["io::stdout", "io::stderr", "stdout().lock", "stderr().lock"];
            let draws = ["Term::stdout", "Term::stderr", "Term::buffered"];
            let is_drawn = DRAWS.contains(&file.path.as_str());
            if prints.iter().any(&has)
                || writes.iter().any(&has)
                || (!is_drawn && draws.iter().any(has))
            {
                findings.add(
                    &file.path,
                    line.number,
                    format!("untrusted text would reach the terminal unescaped; use `{PRINT}`"),
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rules::found;
    use super::check;

    #[test]
    fn terminal_output_in_other_file_is_finding() {
        let text = "fn a() { eprintln!(\"x\"); }\nfn b() { io::stdout().lock(); }\nfn c() { Term::stderr(); }\n\
                    fn d() { io::stdin().is_terminal() && io::stderr().is_terminal(); }\n// println!\n";
        let places = [
            ("apps/cli/src/call/mod.rs", text),
            ("apps/cli/src/call/form.rs", "fn a() { Term::stderr(); }\n"),
            ("apps/cli/src/print.rs", text),
            ("crates/jobs/src/supervisor/run.rs", text),
            ("xtask/src/main.rs", text),
        ];
        let found = found(check, &places);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found.iter().all(|finding| finding.starts_with("apps/cli/src/call/mod.rs:")));
    }
}
