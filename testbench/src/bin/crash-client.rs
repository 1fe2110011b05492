//! A client that a test kills: it calls one tool and resumes the call after a restart.
//!
//! `crash-client URL FOLDER ORACLE NAME TOOL ARGUMENTS` keeps its saved calls in FOLDER and the
//! result of the call in FOLDER/outcome. NAME identifies the process in the file ORACLE and is the
//! word it responds with. Lines have the format of `crash-server.rs`. At the end it waits for the
//! end of standard input, so that the test always has a process to kill.

use std::{
    env,
    error::Error,
    fs::{self, File, OpenOptions},
    io::{Read, Write},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use outlive::client::{
    Client, ClientError, Error as Failed,
    input::{InputCallbacks, InputOrigin, InputResponse},
    request::result_text,
    saved::FileCallStore,
};
use serde_json::{Value, json};
use tokio::time::sleep;

/// Time before an input response.
const THINKING: Duration = Duration::from_millis(60);

/// The file that all processes append to and none of them reads.
struct Oracle {
    file: File,
    name: String,
    job: String,
}

impl Oracle {
    fn note(&self, event: &str) -> std::io::Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let line = format!("{now} {} {} {event}\n", self.name, self.job);
        // One system call per line, so that lines of several processes do not mix.
        (&self.file).write_all(line.as_bytes())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [url, folder, oracle, name, tool, arguments] = &arguments[..] else {
        return Err("usage: crash-client URL FOLDER ORACLE NAME TOOL ARGUMENTS".into());
    };
    let arguments: Value = serde_json::from_str(arguments)?;
    let file = OpenOptions::new().append(true).create(true).open(oracle)?;
    let job = arguments["name"].as_str().unwrap_or_default().to_owned();
    let oracle = Arc::new(Oracle { file, name: name.clone(), job });
    let folder = PathBuf::from(folder);
    let client = Client::builder("crash-client", "1")
        .call_store(FileCallStore::open(folder.join("calls"))?)
        .input_handler(answers(&oracle))
        .connect(url.as_str())
        .await?;
    // The first line of this process: it separates later lines from those of earlier processes.
    oracle.note("connected")?;
    go_on(&client, &folder, tool, &arguments).await?;
    oracle.note("through")?;
    client.close().await;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// An input handler that waits a moment and responds with the name of this process.
fn answers(oracle: &Arc<Oracle>) -> InputCallbacks {
    let oracle = Arc::clone(oracle);
    InputCallbacks::new().form(move |question| {
        let oracle = Arc::clone(&oracle);
        async move {
            let place = match question.origin {
                InputOrigin::Round { .. } => "round",
                _ => "task",
            };
            let answer = async {
                oracle.note(&format!("shown {place}"))?;
                sleep(THINKING).await;
                oracle.note("decided")
            };
            match answer.await {
                Ok(()) => InputResponse::accept(json!({"word": oracle.name})),
                Err(error) => InputResponse::Error(error.to_string()),
            }
        }
    })
}

/// Starts the call or resumes the saved one.
async fn go_on(
    client: &Client,
    folder: &Path,
    tool: &str,
    arguments: &Value,
) -> Result<(), Box<dyn Error>> {
    let outcome = folder.join("outcome");
    let is_done = outcome.exists();
    let mut saved = client.saved_calls().await?;
    let handle = match saved.pop() {
        Some(saved) => match client.resume(saved.clone()).await {
            Err(Failed::Client(ClientError::MaybeExecuted(tool))) => {
                write(&outcome, &json!({"maybe": tool}))?;
                return Ok(client.delete_saved(&saved).await?);
            }
            resumed => resumed?,
        },
        None if is_done => return Ok(()),
        None => client.start_tool(tool, arguments).await?,
    };
    let mut handle = handle;
    if !is_done {
        let result = handle.wait().await?;
        write(&outcome, &json!({"result": result_text(&result)}))?;
    }
    Ok(handle.delete_saved().await?)
}

/// Writes a file atomically.
fn write(path: &Path, value: &Value) -> std::io::Result<()> {
    let beside = path.with_extension("new");
    let mut file = File::create(&beside)?;
    file.write_all(value.to_string().as_bytes())?;
    file.sync_all()?;
    fs::rename(beside, path)
}
