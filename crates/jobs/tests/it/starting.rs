//! A command is started once, or the exit says why it was not.

use std::fs;

use outlive_jobs::{How, JobSpec, Jobs, State};

use crate::support::{ID, Place, read, sh};

#[tokio::test]
async fn all_lines_come_in_their_order_and_then_the_exit() {
    let place = Place::new();
    let (lines, exit) = place.run(&sh("echo one; echo two; echo; echo last; exit 7")).await;
    assert_eq!(lines, ["one", "two", "", "last"]);
    assert_eq!(exit.how, How::Code(7));
    assert_eq!((exit.bytes_dropped, exit.lines_dropped), (0, 0));
    // What is over can be read again, by anybody.
    let (again, same) = read(&mut place.find().await).await;
    assert_eq!((again, same), (lines, exit));
}

#[tokio::test]
async fn of_all_who_start_a_command_at_once_one_does() {
    let place = Place::new();
    let spec = sh(&format!("echo ran >> {}/ran; echo done", place.data.display()));
    let mut starting = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let (jobs, spec) = (place.jobs.clone(), spec.clone());
        starting.spawn(async move {
            let mut job = jobs.start_or_find(ID, &spec).await.unwrap();
            read(&mut job).await
        });
    }
    for (lines, exit) in starting.join_all().await {
        assert_eq!(lines, ["done"]);
        assert_eq!(exit.how, How::Code(0));
    }
    assert_eq!(fs::read_to_string(place.data.join("ran")).unwrap(), "ran\n");
}

#[tokio::test]
async fn a_claim_that_came_to_nothing_is_taken_up_by_who_finds_it() {
    let place = Place::new();
    // What is left by a server that was killed right after its claim.
    fs::create_dir(place.data.join("jobs").join(ID)).unwrap();
    fs::write(place.file("spec.json"), serde_json::to_vec(&sh("echo done")).unwrap()).unwrap();
    assert_eq!(place.jobs.list().unwrap()[0].state, State::Waiting);
    let (lines, exit) = read(&mut place.find().await).await;
    assert_eq!(lines, ["done"]);
    assert_eq!(exit.how, How::Code(0));
}

#[tokio::test]
async fn a_claim_that_came_to_nothing_can_be_forgotten() {
    let place = Place::new();
    fs::create_dir(place.data.join("jobs").join(ID)).unwrap();
    fs::write(place.file("spec.json"), serde_json::to_vec(&sh("echo done")).unwrap()).unwrap();
    place.jobs.remove(ID).unwrap();
    assert!(place.jobs.find(ID).await.unwrap().is_none());
}

#[tokio::test]
async fn what_may_have_been_started_is_not_started_again() {
    let place = Place::new();
    // What is left by a supervisor that was killed right before it started the command.
    fs::create_dir(place.data.join("jobs").join(ID)).unwrap();
    fs::write(place.file("spec.json"), serde_json::to_vec(&sh("echo done")).unwrap()).unwrap();
    fs::write(place.file("begun"), r#"{"at":1,"mark":"5eed.0"}"#).unwrap();
    assert_eq!(place.jobs.list().unwrap()[0].state, State::Lost);
    let (lines, exit) = place.run(&sh("echo done")).await;
    assert!(lines.is_empty());
    assert_eq!(exit.how, How::Lost);
}

#[track_caller]
fn check_refused(how: &How, says: &[&str]) {
    let How::NotStarted(why) = how else { panic!("it was started: {how:?}") };
    for part in says {
        assert!(why.contains(part), "`{part}` is not in: {why}");
    }
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    let (_, exit) = Place::new().run(&JobSpec::new(["no-such-program"])).await;
    check_refused(&exit.how, &["no-such-program", "install"]);
}

#[tokio::test]
async fn a_file_that_is_no_program_is_named() {
    let place = Place::new();
    let file = place.data.join("notes");
    fs::write(&file, "text").unwrap();
    let (_, exit) = place.run(&JobSpec::new([file.to_str().unwrap()])).await;
    check_refused(&exit.how, &["notes", "chmod +x"]);
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_named() {
    let mut spec = sh("pwd");
    spec.working_dir = Some("/no/such/folder".into());
    let (_, exit) = Place::new().run(&spec).await;
    check_refused(&exit.how, &["/no/such/folder", "make it"]);
}

#[tokio::test]
async fn an_argument_with_nul_is_refused() {
    let (_, exit) = Place::new().run(&JobSpec::new(["echo", "a\0b"])).await;
    check_refused(&exit.how, &["NUL"]);
    let (_, exit) = Place::new().run(&JobSpec::new(Vec::<String>::new())).await;
    check_refused(&exit.how, &["empty"]);
}

#[tokio::test]
async fn folder_and_environment_are_those_that_were_given() {
    let place = Place::new();
    let mut spec = sh("pwd -P; echo $GIVEN; test -n \"$HOME\" && echo home");
    spec.working_dir = Some(place.data.clone());
    spec.env = vec![("GIVEN".to_owned(), "a b".to_owned())];
    spec.clear_env = true;
    let (lines, _) = place.run(&spec).await;
    let folder = fs::canonicalize(&place.data).unwrap();
    assert_eq!(lines, [folder.to_str().unwrap(), "a b"]);
}

#[tokio::test]
async fn ids_that_could_name_other_folders_are_refused() {
    let place = Place::new();
    for id in ["", "..", "a/b", "A", "x", &"a".repeat(65)] {
        assert!(place.jobs.find(id).await.is_err(), "`{id}`");
    }
    assert!(place.jobs.find(&"a".repeat(64)).await.unwrap().is_none());
}

#[test]
fn a_path_too_long_for_a_socket_is_refused_with_a_remedy() {
    let long = std::env::temp_dir().join("long".repeat(30));
    let error = Jobs::open(&long).unwrap_err().to_string();
    assert!(error.contains("OUTLIVE_DATA_DIR"), "{error}");
    assert!(!long.exists());
}

#[tokio::test]
async fn what_is_over_can_be_forgotten_and_what_runs_cannot() {
    let place = Place::new();
    let job = place.start(&sh("echo begun; sleep 1000")).await;
    job.set_note("task 17").unwrap();
    let info = place.jobs.list().unwrap().remove(0);
    assert_eq!((info.id.as_str(), info.note.as_deref()), (ID, Some("task 17")));
    assert_eq!((info.state, info.waits_for), (State::Running, None));
    assert!(info.started_at.is_some());
    assert!(place.jobs.remove(ID).unwrap_err().to_string().contains("end it first"));
    job.end().await.unwrap();
    assert!(matches!(place.jobs.list().unwrap()[0].state, State::Ended { .. }));
    place.jobs.remove(ID).unwrap();
    assert!(place.jobs.list().unwrap().is_empty());
    assert!(place.jobs.find(ID).await.unwrap().is_none());
    place.jobs.remove(ID).unwrap();
    // It has ended, which is all that is wanted.
    job.end().await.unwrap();
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn neither_supervisor_nor_command_holds_what_the_server_has_open() {
    let place = Place::new();
    // What this process was given is not its own to keep from others.
    let given = open_in("self");
    let _listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut job = place.start(&sh("echo $$; exec sleep 1000")).await;
    let command = crate::support::line(&mut job).await;
    let server = &open_in("self") - &given;
    assert!(!server.is_empty());
    for process in [command, place.supervisor().to_string()] {
        let shared = &open_in(&process) & &server;
        assert!(shared.is_empty(), "{shared:?}");
    }
    job.end().await.unwrap();
}

/// What a process has open that is no file.
#[cfg(target_os = "linux")]
fn open_in(process: &str) -> std::collections::BTreeSet<String> {
    let open = fs::read_dir(format!("/proc/{process}/fd")).unwrap();
    let open = open.filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
    let open = open.map(|target| target.to_string_lossy().into_owned());
    open.filter(|target| target.contains(":[") && !target.starts_with("anon_inode")).collect()
}

#[tokio::test]
async fn command_with_a_niceness_runs_at_that_lower_priority() {
    let own = std::process::Command::new("nice").output().unwrap();
    let own: i32 = String::from_utf8(own.stdout).unwrap().trim().parse().unwrap();
    let spec = JobSpec { niceness: 3, ..sh("nice") };
    let (lines, _) = Place::new().run(&spec).await;
    assert_eq!(lines, [(own + 3).min(19).to_string()]);
}
