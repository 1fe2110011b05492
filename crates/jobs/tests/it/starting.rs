//! Tests of starting: a command starts once, or the exit says why it did not start.

use std::fs;

use outlive_jobs::{How, JobSpec, State};

use crate::support::{ID, Place, line, read, sh};

#[tokio::test]
async fn lines_are_read_in_order_before_the_exit() {
    let place = Place::new();
    let (lines, exit) = place.run(&sh("echo one; echo two; echo; echo last; exit 7")).await;
    assert_eq!(lines, ["one", "two", "", "last"]);
    assert_eq!(exit.how, How::Code(7));
    assert_eq!((exit.bytes_dropped, exit.lines_dropped), (0, 0));
    // A finished job can be read again.
    let (again, same) = read(&mut place.find().await).await;
    assert_eq!((again, same), (lines, exit));
}

#[tokio::test]
async fn concurrent_starts_run_the_command_once() {
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
async fn job_that_was_created_but_not_started_is_started_when_found() {
    let place = Place::new();
    // The files of a server that was killed right after it created the job.
    fs::create_dir(place.data.join("jobs").join(ID)).unwrap();
    fs::write(place.file("spec.json"), serde_json::to_vec(&sh("echo done")).unwrap()).unwrap();
    assert_eq!(place.jobs.list().unwrap()[0].state, State::Waiting);
    let (lines, exit) = read(&mut place.find().await).await;
    assert_eq!(lines, ["done"]);
    assert_eq!(exit.how, How::Code(0));
}

#[tokio::test]
async fn job_in_folder_too_deep_for_sockets_is_followed_and_found_again() {
    let top = Place::new();
    let place = Place::at(top.data.join("deep".repeat(30)));
    let mut job = place.start(&sh("echo started; sleep 1000")).await;
    assert_eq!(line(&mut job).await, "started");
    place.find().await.end().await.unwrap();
    assert_eq!(read(&mut job).await.1.how, How::Ended);
}

#[tokio::test]
async fn job_that_was_created_but_not_started_can_be_removed() {
    let place = Place::new();
    fs::create_dir(place.data.join("jobs").join(ID)).unwrap();
    fs::write(place.file("spec.json"), serde_json::to_vec(&sh("echo done")).unwrap()).unwrap();
    place.jobs.remove(ID).unwrap();
    assert!(place.jobs.find(ID).await.unwrap().is_none());
}

#[tokio::test]
async fn command_that_may_have_started_is_not_started_again() {
    let place = Place::new();
    // The files of a supervisor that was killed right before it started the command.
    fs::create_dir(place.data.join("jobs").join(ID)).unwrap();
    fs::write(place.file("spec.json"), serde_json::to_vec(&sh("echo done")).unwrap()).unwrap();
    fs::write(place.file("begun"), r#"{"at":1,"mark":"5eed.0"}"#).unwrap();
    assert_eq!(place.jobs.list().unwrap()[0].state, State::Lost);
    let (lines, exit) = place.run(&sh("echo done")).await;
    assert!(lines.is_empty());
    assert_eq!(exit.how, How::Lost);
}

#[track_caller]
fn check_not_started(how: &How, says: &[&str]) {
    let How::NotStarted(why) = how else { panic!("the command was started: {how:?}") };
    for part in says {
        assert!(why.contains(part), "`{part}` is not in: {why}");
    }
}

#[tokio::test]
async fn missing_program_is_named_in_the_error() {
    let (_, exit) = Place::new().run(&JobSpec::new(["no-such-program"])).await;
    check_not_started(&exit.how, &["no-such-program", "install"]);
}

#[tokio::test]
async fn file_that_is_not_executable_is_named_in_the_error() {
    let place = Place::new();
    let file = place.data.join("notes");
    fs::write(&file, "text").unwrap();
    let (_, exit) = place.run(&JobSpec::new([file.to_str().unwrap()])).await;
    check_not_started(&exit.how, &["notes", "chmod +x"]);
}

#[tokio::test]
async fn missing_working_directory_is_named_in_the_error() {
    let mut spec = sh("pwd");
    spec.working_dir = Some("/no/such/folder".into());
    let (_, exit) = Place::new().run(&spec).await;
    check_not_started(&exit.how, &["/no/such/folder", "create it"]);
}

#[tokio::test]
async fn argument_with_a_nul_byte_is_rejected() {
    let (_, exit) = Place::new().run(&JobSpec::new(["echo", "a\0b"])).await;
    check_not_started(&exit.how, &["NUL"]);
    let (_, exit) = Place::new().run(&JobSpec::new(Vec::<String>::new())).await;
    check_not_started(&exit.how, &["empty"]);
}

#[tokio::test]
async fn command_gets_its_working_directory_and_environment() {
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
async fn id_that_could_name_another_folder_is_rejected() {
    let place = Place::new();
    for id in ["", "..", "a/b", "A", "x", &"a".repeat(65)] {
        assert!(place.jobs.find(id).await.is_err(), "`{id}`");
    }
    assert!(place.jobs.find(&"a".repeat(64)).await.unwrap().is_none());
}

#[tokio::test]
async fn ended_job_can_be_removed_and_running_job_cannot() {
    let place = Place::new();
    let job = place.start(&sh("echo started; sleep 1000")).await;
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
    // A removed job has ended, so this succeeds.
    job.end().await.unwrap();
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn supervisor_and_command_inherit_no_descriptors_of_the_server() {
    let place = Place::new();
    // Descriptors that this process inherited may be inherited further.
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

/// Returns the open descriptors of a process that are not files.
#[cfg(target_os = "linux")]
fn open_in(process: &str) -> std::collections::BTreeSet<String> {
    let open = fs::read_dir(format!("/proc/{process}/fd")).unwrap();
    let open = open.filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
    let open = open.map(|target| target.to_string_lossy().into_owned());
    open.filter(|target| target.contains(":[") && !target.starts_with("anon_inode")).collect()
}

#[tokio::test]
async fn command_with_a_niceness_runs_at_a_lower_priority() {
    let own = std::process::Command::new("nice").output().unwrap();
    let own: i32 = String::from_utf8(own.stdout).unwrap().trim().parse().unwrap();
    let spec = JobSpec { niceness: 3, ..sh("nice") };
    let (lines, _) = Place::new().run(&spec).await;
    assert_eq!(lines, [(own + 3).min(19).to_string()]);
}
