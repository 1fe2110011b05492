//! A command that is notified of events of tasks: it reads each message from standard input.

use std::{
    env,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use outlive::deliveries::{DeliveryTransport, Message, SendError, SendFuture};
use tokio::{io::AsyncWriteExt, process::Command};

use super::command::PASSED_ON;

/// Time in which the command must exit; then it is killed.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);

/// A command that reads messages.
pub(super) struct NotifyCommand {
    words: Vec<String>,
    folder: PathBuf,
}

impl NotifyCommand {
    /// Creates a command that runs in a folder.
    pub(super) fn new(words: &[String], folder: &Path) -> Self {
        Self { words: words.to_vec(), folder: folder.to_owned() }
    }

    async fn run(&self, message: &Message) -> Result<(), SendError> {
        let failed = |error: std::io::Error| {
            SendError::Failed(format!("the command cannot be run: {error}; check its path"))
        };
        let mut words = self.words.iter();
        let passed = PASSED_ON.iter().filter_map(|name| Some((name, env::var_os(name)?)));
        let mut child = Command::new(words.next().map_or("", String::as_str))
            .args(words)
            .current_dir(&self.folder)
            .env_clear()
            .envs(passed)
            .env("OUTLIVE_DELIVERY_ID", &message.id)
            .env("OUTLIVE_EVENT", message.event.as_str())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // The sender drops this future after the timeout.
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        if let Some(mut input) = child.stdin.take() {
            // A command that does not read its input decides by its exit status alone.
            let _ = input.write_all(message.body.as_bytes()).await;
            let _ = input.write_all(b"\n").await;
        }
        let status = child.wait().await.map_err(failed)?;
        match status.success() {
            true => Ok(()),
            false => Err(SendError::Failed(format!("the command failed: {status}"))),
        }
    }
}

impl DeliveryTransport for NotifyCommand {
    fn send<'a>(&'a self, message: &'a Message) -> SendFuture<'a> {
        Box::pin(self.run(message))
    }

    fn timeout(&self) -> Duration {
        COMMAND_TIMEOUT
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::{env, fs};

    use outlive::deliveries::{DeliveryTransport, Message, SendError, TaskEvent};

    use super::NotifyCommand;

    fn command(script: &str) -> NotifyCommand {
        let words = ["/bin/sh", "-c", script].map(str::to_owned);
        NotifyCommand::new(&words, &env::temp_dir())
    }

    fn message() -> Message {
        Message::new("d-1", TaskEvent::TaskEnded, 1, "{\"type\":\"task.ended\"}".to_owned())
    }

    #[tokio::test]
    async fn command_reads_message_and_its_id() {
        let file = env::temp_dir().join(format!("outlive-notify-{}", std::process::id()));
        let script = format!(
            "read -r body; echo \"$OUTLIVE_DELIVERY_ID $OUTLIVE_EVENT $body\" > '{}'",
            file.display()
        );
        command(&script).send(&message()).await.unwrap();
        let written = fs::read_to_string(&file).unwrap();
        fs::remove_file(&file).unwrap();
        assert_eq!(written, "d-1 task.ended {\"type\":\"task.ended\"}\n");
    }

    #[tokio::test]
    async fn command_that_fails_or_is_missing_is_a_failed_attempt() {
        let failed = command("exit 3").send(&message()).await.unwrap_err();
        assert!(
            matches!(&failed, SendError::Failed(reason) if reason.contains("exit status: 3")),
            "{failed}"
        );
        let missing = NotifyCommand::new(&["./no-such-program".to_owned()], &env::temp_dir());
        let failed = missing.send(&message()).await.unwrap_err();
        assert!(failed.to_string().contains("cannot be run"), "{failed}");
    }

    #[tokio::test]
    async fn command_that_reads_nothing_succeeds_by_its_status() {
        command("exit 0").send(&message()).await.unwrap();
    }

    #[tokio::test]
    async fn command_does_not_inherit_other_variables() {
        // Cargo sets this variable for tests.
        assert!(env::var_os("CARGO_MANIFEST_DIR").is_some());
        command("test -z \"$CARGO_MANIFEST_DIR\"").send(&message()).await.unwrap();
    }
}
