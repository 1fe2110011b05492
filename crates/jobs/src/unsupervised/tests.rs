//! Tests of commands that are children of this process. Behavior that is common to both kinds of
//! jobs is tested with supervisors.

#![allow(clippy::unwrap_used, reason = "all of this is tests, helpers included")]

use std::{fs, path::PathBuf, time::Duration};

use super::{
    super::{Event, Exit, How, JobSpec, State},
    Job, Jobs, supervise,
};

const ID: &str = "5eed";

struct Place {
    folder: PathBuf,
    jobs: Jobs,
}

impl Place {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir()
            .join(format!("outlive-unsupervised-{name}-{}", std::process::id()));
        let jobs = Jobs::open(&folder).unwrap();
        Self { folder, jobs }
    }

    async fn start(&self, spec: &JobSpec) -> Job {
        self.jobs.start_or_find(ID, spec).await.unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn sh(script: &str) -> JobSpec {
    JobSpec::new(["sh", "-c", script])
}

async fn read(job: &mut Job) -> (Vec<String>, Exit) {
    let mut lines = Vec::new();
    loop {
        match job.next().await.unwrap() {
            Event::Line(line) => lines.push(String::from_utf8(line.bytes).unwrap()),
            Event::Exit(exit) => return (lines, exit),
            _ => {}
        }
    }
}

#[tokio::test]
async fn finished_job_is_read_again_with_the_same_lines_and_exit() {
    let place = Place::new("lines");
    let mut job = place.start(&sh("echo one; echo two; echo oops >&2; exit 7")).await;
    let (lines, exit) = read(&mut job).await;
    assert_eq!(lines, ["one", "two"]);
    assert_eq!((&exit.how, exit.stderr_tail.as_str()), (&How::Code(7), "oops\n"));
    let mut again = place.start(&sh("echo another")).await.after_line(1);
    assert_eq!(read(&mut again).await, (vec!["two".to_owned()], exit));
    // Another instance reads the job from its files alone.
    let later = Jobs::open(&place.folder).unwrap();
    let mut job = later.find(ID).await.unwrap().unwrap().read_from(again.position());
    assert_eq!(job.next().await.unwrap(), Event::Status("oops".to_owned()));
    assert!(read(&mut job).await.0.is_empty());
    assert!(later.find("0").await.unwrap().is_none());
}

#[tokio::test]
async fn job_of_a_former_process_is_lost() {
    let place = Place::new("lost");
    fs::create_dir(place.folder.join(ID)).unwrap();
    fs::write(place.folder.join(ID).join("out"), "one\n").unwrap();
    assert_eq!(place.jobs.list().unwrap()[0].state, State::Lost);
    let (lines, exit) = read(&mut place.start(&sh("echo again")).await).await;
    assert_eq!((lines, exit.how), (vec!["one".to_owned()], How::Lost));
}

#[tokio::test]
async fn command_ends_on_request_and_at_its_timeout() {
    let place = Place::new("ended");
    let mut job = place.start(&sh("echo started; exec sleep 1000")).await;
    assert!(matches!(job.next().await.unwrap(), Event::Line(_)));
    assert!(place.jobs.remove(ID).is_err());
    job.set_note("mine").unwrap();
    let info = place.jobs.list().unwrap().remove(0);
    assert_eq!((info.state, info.note.as_deref()), (State::Running, Some("mine")));
    assert!(place.jobs.may_run(ID).unwrap() && !place.jobs.has_ended(ID).unwrap());
    job.end().await.unwrap();
    assert_eq!(read(&mut job).await.1.how, How::Ended);
    assert!(!place.jobs.may_run(ID).unwrap() && place.jobs.has_ended(ID).unwrap());
    assert!(matches!(place.jobs.state(ID).unwrap(), Some(State::Ended { .. })));
    place.jobs.remove(ID).unwrap();
    assert_eq!(place.jobs.state(ID).unwrap(), None);
    assert!(place.jobs.list().unwrap().is_empty());

    let mut spec = sh("exec sleep 1000");
    spec.timeout = Some(Duration::from_millis(50));
    assert_eq!(read(&mut place.start(&spec).await).await.1.how, How::TimedOut);
}

#[tokio::test]
async fn input_request_gets_its_response() {
    let place = Place::new("asks");
    let mut spec =
        sh(r#"echo "{\"nonce\":\"$OUTLIVE_CONTROL_NONCE\",\"input\":\"who\",\"message\":\"who?\"}"
        read -r who; echo "hello $who"; echo busy >&2; read -r more"#);
    spec.interactive = true;
    let mut job = place.start(&spec).await;
    assert!(matches!(job.next().await.unwrap(), Event::Input { number: 1, .. }));
    assert!(place.jobs.list().unwrap()[0].waits_for.is_some());
    assert!(job.respond(2, "no such request").await.is_err());
    job.respond(1, "Ada").await.unwrap();
    job.respond(1, "Ada again").await.unwrap();
    let mut events = vec![job.next().await.unwrap(), job.next().await.unwrap()];
    events.sort_by_key(|event| matches!(event, Event::Status(_)));
    assert!(matches!(&events[0], Event::Line(line) if line.bytes == b"hello Ada"), "{events:?}");
    assert_eq!(events[1], Event::Status("busy".to_owned()));
    assert!(place.jobs.list().unwrap()[0].waits_for.is_none());
    job.end().await.unwrap();
    job.respond(2, "late").await.unwrap();
}

#[tokio::test]
async fn program_that_cannot_start_reports_the_reason() {
    let place = Place::new("not-started");
    let exit = read(&mut place.start(&JobSpec::new(["no-such-program"])).await).await.1;
    assert!(matches!(&exit.how, How::NotStarted(why) if why.contains("no-such-program")));
    let refused = supervise(&place.folder).unwrap_err();
    assert!(refused.to_string().contains("not supported"));
}
