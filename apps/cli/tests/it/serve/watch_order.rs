//! `outlive tasks watch`: shows the output of a task before its input request.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{Read, Seek, SeekFrom},
    sync::{Arc, Mutex},
};

use outlive::client::{Client, input::InputResponse, tasks::TaskEvent};
use serde_json::json;

use super::{Place, until};
use crate::call::{
    stage::{Outlive, Ran},
    tmux::Terminal,
};

/// Repeatedly prints a line and then requests input.
const PLANS: &str = r#"
[tasks]
poll_interval = "100ms"

[tools.plan]
description = "Prints what it will do before it asks."
command = ["python3", "-c", """
import os, json, sys
requests, responses = os.fdopen(3, 'w'), os.fdopen(4)
for n in range(COUNT):
    print('will destroy resource', n, flush=True)
    requests.write(json.dumps({'input': 'k%d' % n, 'message': 'Apply %d?' % n}) + '\\n')
    requests.flush()
    if json.loads(responses.readline())['content'] != {'yes': True}:
        sys.exit(1)
"""]
interactive = true
max_concurrent = 16
task = "always"
"#;

/// Recorded output of a terminal.
struct Written {
    file: File,
    text: String,
}

impl Written {
    fn read(&mut self) -> &str {
        let mut more = Vec::new();
        let read = u64::try_from(self.text.len()).unwrap();
        self.file.seek(SeekFrom::Start(read)).unwrap();
        self.file.read_to_end(&mut more).unwrap();
        // The rest of an incomplete character comes with the next read.
        let whole = match std::str::from_utf8(&more) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&more[..error.valid_up_to()]).unwrap(),
        };
        self.text.push_str(whole);
        &self.text
    }
}

/// Responds to all input requests of a task once the screen shows them. Returns for each whether
/// its output was shown first.
async fn answer_all(
    client: &Client,
    handle: &str,
    task: &str,
    written: &Mutex<Written>,
) -> Vec<bool> {
    let mut task = client.task(task).await.unwrap();
    let mut events = task.events();
    let (mut found, mut from) = (Vec::new(), 0);
    while let Some(event) = events.next().await {
        let TaskEvent::Input(question) = event.unwrap() else { continue };
        let number = found.len();
        let (asked, printed) = (
            format!("asks: Apply {number}?"),
            format!("{handle} | will destroy resource {number}"),
        );
        let shown = until(&asked, || {
            let mut written = written.lock().unwrap();
            let text = &written.read()[from..];
            let is_row = |line: &&str| line.contains(handle) && line.contains(&asked);
            let row =
                text.split_inclusive('\n').filter(|line| line.ends_with('\n')).find(is_row)?;
            let end = row.as_ptr() as usize - text.as_ptr() as usize;
            let before = text[..end].lines().any(|line| line.trim_end().ends_with(&printed));
            from += end;
            Some(before)
        });
        found.push(shown.await);
        events.respond(&question, InputResponse::accept(json!({"yes": true}))).await.unwrap();
    }
    found
}

#[tokio::test]
async fn output_before_request_is_shown_by_tasks_watch() {
    const TASKS: usize = 8;
    let (outlive, place) = (Outlive::new(), Place::new(&PLANS.replace("COUNT", "25")));
    for _ in 0..TASKS {
        let ran = outlive.run(&["call", "--detach", place.url(), "plan"]);
        assert_eq!(ran.code, 0, "{ran:?}");
    }
    let calls: BTreeMap<String, String> = outlive
        .written()
        .iter()
        .map(|call| {
            let text = |key: &str| call[key].as_str().unwrap().to_owned();
            (text("handle")[..8].to_owned(), text("task"))
        })
        .collect();
    let file = outlive.folder.file("watched");
    File::create(&file).unwrap();
    let _terminal = Terminal::record(&outlive, "", &["tasks", "watch"], &file);
    let written =
        Arc::new(Mutex::new(Written { file: File::open(&file).unwrap(), text: String::new() }));
    let client = place.client().await;
    let mut answering = tokio::task::JoinSet::new();
    for (handle, task) in calls {
        let (client, written) = (client.clone(), Arc::clone(&written));
        answering.spawn(async move { answer_all(&client, &handle, &task, &written).await });
    }
    let found: Vec<bool> = answering.join_all().await.into_iter().flatten().collect();
    let good = found.iter().filter(|is_before| **is_before).count();
    assert_eq!((good, found.len()), (200, 200));
}

#[test]
fn input_request_in_pipe_follows_earlier_output() {
    let (outlive, place) = (Outlive::new(), Place::new(&PLANS.replace("COUNT", "2")));
    assert_eq!(outlive.run(&["call", "--detach", place.url(), "plan"]).code, 0);
    let watch = outlive.run(&["tasks", "watch"]);
    let lines: Vec<&str> = watch.out.lines().collect();
    let place_of = |words: &str| lines.iter().position(|line| line.contains(words));
    let (printed, asked) = (place_of("| will destroy resource 0"), place_of("asks: Apply 0?"));
    assert!(watch.code == 5 && printed.is_some() && printed < asked, "{watch:?}");
    let json = outlive.run(&["tasks", "watch", "--json"]);
    let last: serde_json::Value = serde_json::from_str(json.out.lines().last().unwrap()).unwrap();
    assert_eq!(last["output"], "will destroy resource 0", "{json:?}");
    // For a host without our extension, the message contains the output and is shown in full.
    let other = Outlive::new();
    let ran = with_old_task(&place, &other);
    assert!(ran.out.contains("| will destroy resource 0\n"), "{ran:?}");
    assert!(ran.out.contains("| Apply 0?\n"), "{ran:?}");
}

/// Watches a task that a host without our extension created.
fn with_old_task(place: &Place, other: &Outlive) -> Ran {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let task = runtime.block_on(async {
        let answers = outlive::client::input::InputCallbacks::new()
            .form(|_| async { InputResponse::Decline });
        let host = Client::builder("host", "1.0.0").input_handler(answers);
        let client = place.client_with(host).await;
        let task = client.start_tool("plan", json!({})).await.unwrap();
        task.task_id().unwrap().to_owned()
    });
    other.run(&["tasks", "watch", "--server", place.url(), &task])
}
