//! Errors and warnings of `serve` at start: the same as those of `doctor`.

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    process::{Command, Output, Stdio},
};

use serde_json::Value;

use super::Place;

const TOOL: &str = "[tools.t]\ndescription = \"d\"\ncommand = [\"true\"]\n";

/// Returns a command of the program in the folder of the test.
fn command(place: &Place, args: &[&str]) -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_outlive"));
    program.current_dir(&place.folder).args(args).env_remove("OUTLIVE_STORE");
    program.args(["--data-dir", place.folder.join("data").to_str().unwrap()]);
    program.args(["--listen", "127.0.0.1:0"]);
    program
}

/// Runs `serve` to its end. Kills a server that starts successfully.
fn serve(place: &Place) -> Output {
    let mut program = command(place, &["serve", "--json"]);
    let mut server = program.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut address = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut address).unwrap();
    if !address.is_empty() {
        server.kill().unwrap();
    }
    server.wait_with_output().unwrap()
}

/// Returns the findings of `doctor` at a level.
fn findings(place: &Place, level: &str) -> Vec<String> {
    let output = command(place, &["doctor", "--json"]).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let all = report["findings"].as_array().unwrap().iter();
    let found = all.filter(|finding| finding["level"] == level);
    found.map(|finding| finding["what"].as_str().unwrap().to_owned()).collect()
}

/// Asserts that `serve` exits with code 2 and prints every failure of `doctor`.
#[track_caller]
fn refused(place: &Place, says: &str) {
    let failures = findings(place, "failure");
    assert!(failures.iter().any(|what| what.contains(says)), "doctor: {says}: {failures:?}");
    let served = serve(place);
    let said = String::from_utf8_lossy(&served.stderr);
    assert_eq!(served.status.code(), Some(2), "{says}: {said}");
    for failure in failures {
        assert!(said.contains(&failure), "{failure}: {said}");
    }
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn file_with_mistakes_is_rejected_by_serve_and_doctor() {
    for (file, says) in [
        (
            format!("{TOOL}comand = [\"x\"]\nmax_concurrent = 0\n"),
            "outlive.toml:4: unknown key `comand`",
        ),
        (
            format!("{TOOL}[tools.t.arguments.a]\ntype = \"string\"\npattern = \"([a-z\"\n"),
            "outlive.toml:6: `tools.t.arguments.a.pattern` must be a regular expression",
        ),
        (format!("{TOOL}output_schema = {{ type = \"x\" }}\n"), "outlive.toml:4: `output_schema`"),
        (format!("[server]\nlisten = \"localhost\"\n{TOOL}"), "outlive.toml:2: `server.listen`"),
        (format!("[tasks]\nstore = \"mysql:x\"\n{TOOL}"), "outlive.toml:2: `store` starts"),
        (format!("{TOOL}{TOOL}"), "outlive.toml:4: `t` is defined twice"),
    ] {
        refused(&Place::unserved(&file), says);
    }
}

#[test]
fn public_address_without_tokens_is_rejected_by_serve_and_doctor() {
    let place = Place::unserved(TOOL);
    for command in ["serve", "doctor"] {
        let mut program = Command::new(env!("CARGO_BIN_EXE_outlive"));
        program.current_dir(&place.folder).args([command, "--listen", "0.0.0.0:0"]);
        let output = program.arg("--data-dir").arg(place.folder.join("data")).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(said.contains("other machines can reach 0.0.0.0:0"), "{said}");
        assert!(!output.status.success());
    }
}

#[test]
fn world_writable_data_folder_is_rejected() {
    let place = Place::unserved(TOOL);
    let data = place.folder.join("data");
    fs::create_dir(&data).unwrap();
    mode(&data, 0o777);
    refused(&place, "all users can write to");
    assert_eq!(fs::read_dir(&data).unwrap().count(), 0, "no file is created in it");
}

#[test]
fn world_writable_store_file_is_rejected() {
    let mut place = Place::new(TOOL);
    place.stop();
    mode(&place.folder.join("data/tasks.db"), 0o666);
    refused(&place, "all users can write to the store");
}

#[test]
fn symlinked_jobs_folder_is_rejected_and_target_unchanged() {
    let place = Place::unserved(TOOL);
    let (data, target) = (place.folder.join("data"), place.folder.join("target"));
    for folder in [&data, &target] {
        fs::create_dir(folder).unwrap();
    }
    mode(&data, 0o700);
    mode(&target, 0o755);
    symlink(&target, data.join("jobs")).unwrap();
    refused(&place, "is a symbolic link");
    assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o755);
}

#[test]
fn unsafe_token_file_is_rejected() {
    let place = Place::unserved(&format!("[server]\ntoken_file = \"tokens\"\n{TOOL}"));
    let tokens = place.folder.join("tokens");
    for (text, bits, says) in [
        ("", 0o600, "has no tokens"),
        ("# empty\n\n", 0o600, "has no tokens"),
        (
            "ada 0123456789abcdef\nbob 0123456789abcdef\n",
            0o600,
            "tokens:2 has the token of another name",
        ),
        ("ada 0123456789abcdef\nbob\n", 0o600, "tokens:2 has no token"),
        ("ada 0123456789abcdef\n", 0o666, "all users can write to tokens"),
    ] {
        fs::write(&tokens, text).unwrap();
        mode(&tokens, bits);
        refused(&place, says);
    }
}

#[test]
fn serve_start_prints_warnings_of_doctor() {
    let file = "[server]\ntoken_file = \"tokens\"\n\
        [tools.a]\ndescription = \"d\"\ncommand = [\"echo a | wc\"]\n\
        [tools.b]\ndescription = \"d\"\ncommand = [\"true\"]\nworking_dir = \"nowhere\"\n\
        [tools.c]\ndescription = \"d\"\ncommand = [\"no-such-program\"]\n\
        [tools.d]\ndescription = \"d\"\ncommand = [\"true\"]\n[tools.d.arguments]\nx = { type = \"string\" }\n";
    let mut place = Place::unserved(file);
    let tokens = place.folder.join("tokens");
    fs::write(&tokens, "ada 0123456789abcdef\n").unwrap();
    mode(&tokens, 0o644);
    place.start();
    let log = place.log();
    let found = [findings(&place, "warning"), findings(&place, "failure")].concat();
    for says in [
        "other users can read or write tokens (mode 644)",
        "tool `a` runs `echo a | wc`, which was not found",
        "the working folder of tool `b` does not exist",
        "tool `c` runs `no-such-program`, which was not found",
        "outlive.toml:17: the command of `d` does not use the argument `x`",
    ] {
        assert!(log.contains(says), "serve: {says}: {log}");
        assert!(found.iter().any(|what| what.contains(says)), "doctor: {says}: {found:?}");
    }
    assert!(
        log.contains("write one string per word, command = [\"echo\", \"a\", \"|\", \"wc\"]"),
        "{log}"
    );
}

#[test]
fn invalid_skills_folder_is_rejected_by_serve_and_doctor() {
    let place = Place::unserved(&format!("[server]\nskills = \"skills\"\n{TOOL}"));
    refused(&place, "cannot be read");
    let skill = place.folder.join("skills/refunds");
    fs::create_dir_all(&skill).unwrap();
    fs::write(skill.join("SKILL.md"), "---\nname: refund\ndescription: d\n---\n").unwrap();
    refused(&place, "its name `refund` differs from its folder `refunds`");
    fs::write(skill.join("SKILL.md"), "---\nname: refunds\ndescription: d\n---\n").unwrap();
    symlink("/etc/passwd", skill.join("notes.md")).unwrap();
    refused(&place, "is a link that points outside the folder");
    fs::remove_file(skill.join("notes.md")).unwrap();
    let found = findings(&place, "ok");
    assert!(found.iter().any(|what| what.ends_with("skills has 1 skill")), "{found:?}");
}

#[tokio::test]
async fn skills_in_folder_are_served() {
    let mut place = Place::unserved(&format!("[server]\nskills = \"skills\"\n{TOOL}"));
    let skill = place.folder.join("skills/refunds");
    fs::create_dir_all(skill.join("templates")).unwrap();
    let text = "---\nname: refunds\ndescription: How to refund\n---\n\nBe kind.\n";
    fs::write(skill.join("SKILL.md"), text).unwrap();
    fs::write(skill.join("templates/letter.md"), "Dear customer").unwrap();
    place.start();
    let client = super::builder().connect(place.url()).await.unwrap();
    let listed = client.request("skills/list", serde_json::json!({})).await.unwrap();
    let listed = serde_json::to_string(&listed).unwrap();
    assert!(listed.contains("skill://refunds/SKILL.md") && listed.contains("How to refund"));
    let read = client.read_resource("skill://refunds/templates/letter.md").await.unwrap();
    assert!(serde_json::to_string(&read).unwrap().contains("Dear customer"));
    assert!(client.read_resource("skill://refunds/../../outlive.toml").await.is_err());
}
