//! A process that speaks JSON-RPC over its standard streams, for the tests of supervised processes.
//!
//! Its argument is a folder. A request `slow` adds a line to the file `executions` there, and gets its
//! response when the file `go` exists.

use std::{
    env, fs,
    io::{self, BufRead, Write},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

fn main() {
    let folder = PathBuf::from(env::args_os().nth(1).unwrap_or_default());
    eprintln!("speaking");
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        let message: Value = serde_json::from_str(&line).unwrap_or_default();
        let (id, method) = (message["id"].clone(), message["method"].as_str().unwrap_or_default());
        let respond = |result: Value| say(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
        match method {
            "echo" => respond(message["params"].clone()),
            "variables" => {
                let mut names: Vec<String> = env::vars().map(|(name, _)| name).collect();
                names.sort();
                respond(json!(names));
            }
            "slow" => slow(&folder, id),
            "ask" => say(&json!({
                "jsonrpc": "2.0", "id": "form", "method": "ask", "params": {"of": id}
            })),
            "long" => {
                let count = message["params"]["bytes"].as_u64().unwrap_or_default();
                respond("x".repeat(usize::try_from(count).unwrap_or_default()).into());
            }
            "log" => (0..message["params"]["lines"].as_u64().unwrap_or(1))
                .for_each(|line| say(&json!({"method": "logged", "params": {"line": line}}))),
            "exit" => {
                eprintln!("going down");
                std::process::exit(7);
            }
            "respond-and-exit" => {
                respond("last".into());
                std::process::exit(0);
            }
            // A response to `ask`, or a notification: recorded.
            _ => append(&folder, "heard", &line),
        }
    }
    append(&folder, "heard", "end of input");
}

/// Responds when the test allows it.
fn slow(folder: &Path, id: Value) {
    append(folder, "executions", &id.to_string());
    let folder = folder.to_owned();
    thread::spawn(move || {
        let mut progress = 0;
        while !folder.join("go").exists() {
            progress += 1;
            let params = json!({"progressToken": id, "progress": progress});
            say(&json!({"jsonrpc": "2.0", "method": "progress", "params": params}));
            thread::sleep(Duration::from_millis(10));
        }
        say(&json!({"jsonrpc": "2.0", "id": id, "result": "slow result"}));
    });
}

fn say(message: &Value) {
    let mut out = io::stdout().lock();
    // The supervisor may be gone.
    let _ = writeln!(out, "{message}").and_then(|()| out.flush());
}

fn append(folder: &Path, file: &str, line: &str) {
    let file = fs::File::options().create(true).append(true).open(folder.join(file));
    let _ = file.and_then(|mut file| writeln!(file, "{line}"));
}
