//! The limit of open files.

use std::{
    fs,
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use super::Place;

#[test]
#[cfg(target_os = "linux")]
fn serve_raises_soft_limit_of_open_files() {
    let place = Place::unserved("[tools.up]\ndescription = \"d\"\ncommand = [\"true\"]\n");
    let outlive = env!("CARGO_BIN_EXE_outlive");
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -S -n 256; exec \"$@\"", "sh", outlive, "serve", "--json"]);
    command.args(["--listen", "127.0.0.1:0", "--data-dir"]).arg(place.folder.join("data"));
    let mut server = command.current_dir(&place.folder).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut said).unwrap();
    let limits = fs::read_to_string(format!("/proc/{}/limits", server.id())).unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
    let files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let numbers: Vec<u64> = files.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [soft, hard] = numbers[..] else { panic!("no numbers: {files}") };
    assert_eq!(soft, hard.min(65_536), "{files}");
}
