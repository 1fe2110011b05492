//! `[notify]`: receivers of notifications.

use outlive::deliveries::{Contents, Format, NetworkPolicy, TaskEvent};

use super::{super::Receiver, Config, parse};

const TOOL: &str = "[tools.deploy]\ndescription = \"d\"\ncommand = [\"c\"]\n";

fn config(file: &str) -> Config {
    parse(&format!("{file}\n{TOOL}")).unwrap_or_else(|problem| panic!("{problem}: {file}"))
}

#[test]
fn receiver_gets_all_events_of_all_tools_without_contents_by_default() {
    assert!(config("").notify.is_empty());
    let file = "[notify.hook]\nurl = \"https://a.example/hook\"\nsecret_env = \"HOOK\"\n";
    let [hook] = <[_; 1]>::try_from(config(file).notify).unwrap();
    let network = NetworkPolicy::Public;
    let (url, secret_env) = ("https://a.example/hook".to_owned(), Some("HOOK".to_owned()));
    assert_eq!(hook.receiver, Receiver::Webhook { url, secret_env, network });
    assert_eq!((hook.name.as_str(), hook.events.len(), hook.tools), ("hook", 4, None));
    assert_eq!((hook.links, hook.contents, hook.format), (false, Contents::None, Format::Standard));
}

#[test]
fn keys_of_receivers_are_applied() {
    let file = "[notify.chat]\nurl = \"http://127.0.0.1:9/x\"\nnetwork = \"local\"\nformat = \"text\"\n\
         contents = \"summary\"\nlinks = true\nevents = [\"task.quarantined\", \"input_request.opened\"]\n\
         tools = [\"deploy\"]\n[notify.pager]\ncommand = [\"./page\", \"--now\"]\n";
    let [chat, pager] = <[_; 2]>::try_from(config(file).notify).unwrap();
    assert_eq!(chat.events, [TaskEvent::TaskQuarantined, TaskEvent::InputRequestOpened]);
    assert_eq!(chat.tools, Some(vec!["deploy".to_owned()]));
    assert_eq!((chat.links, chat.contents, chat.format), (true, Contents::Summary, Format::Text));
    assert!(matches!(chat.receiver, Receiver::Webhook { network: NetworkPolicy::Local, .. }));
    assert_eq!(pager.receiver, Receiver::Command(vec!["./page".to_owned(), "--now".to_owned()]));
}

#[test]
fn mistake_in_receiver_is_reported_with_line_and_no_address() {
    let hook = "url = \"https://a.example/T0/secret\"\nsecret_env = \"HOOK\"";
    let public = "[server]\nlisten = \"0.0.0.0:1\"\nallow_anonymous = true\n";
    for (file, says) in [
        ("[notify.a]".to_owned(), "line 1: [notify.a] has neither `url` nor `command`"),
        ("[notify.a]\nulr = \"x\"".to_owned(), "line 2: unknown key `ulr` in [notify.a]"),
        (
            format!("[notify.a]\n{hook}\ncommand = [\"c\"]"),
            "line 4: [notify.a] has both `url` and `command`",
        ),
        (
            "[notify.a]\nurl = \"https://a.example/secret\"".to_owned(),
            "line 1: [notify.a] has no `secret_env`, so its messages would have no signature",
        ),
        (
            "[notify.a]\nurl = \"http://a.example/secret\"\nsecret_env = \"S\"".to_owned(),
            "line 2: `url` must start with https:// to reach a public address",
        ),
        (
            "[notify.a]\nurl = \"https://ann:secret@a.example/\"\nsecret_env = \"S\"".to_owned(),
            "line 2: `url` is not a URL without user name, space and fragment",
        ),
        (
            "[notify.a]\nurl = \"secret\"\nsecret_env = \"S\"".to_owned(),
            "line 2: `url` is not a URL",
        ),
        ("[notify.a]\ncommand = []".to_owned(), "line 2: `command` names no program"),
        (
            "[notify.a]\ncommand = [\"c\"]\nsecret_env = \"S\"".to_owned(),
            "line 3: `secret_env` applies to a `url`, but this receiver is a command",
        ),
        (
            "[notify.a]\ncommand = [\"c\"]\nnetwork = \"local\"".to_owned(),
            "line 3: `network` applies to a `url`",
        ),
        (
            format!("[notify.a]\n{hook}\nevents = []"),
            "line 4: `events` is empty, so the receiver would get no message",
        ),
        (
            format!("[notify.a]\n{hook}\nevents = [\"task.started\"]"),
            "line 4: `notify.a.events` must be \"input_request.opened\" or",
        ),
        (
            format!("[notify.a]\n{hook}\ntools = [\n  \"deplyo\",\n]"),
            "line 5: the file has no tool `deplyo`",
        ),
        (format!("[notify.a]\n{hook}\ntools = []"), "line 4: `tools` is empty"),
        (
            format!("[notify.a]\n{hook}\nformat = \"slack\""),
            "line 4: `notify.a.format` must be \"standard\" or \"text\"",
        ),
        (
            format!("[notify.a]\n{hook}\ncontents = \"all\""),
            "line 4: `notify.a.contents` must be \"none\" or \"summary\"",
        ),
        (
            format!("{public}[notify.a]\n{hook}\nlinks = true"),
            "line 7: `links` is true, but links need the address of this server",
        ),
        (format!("[notify.\"a b\"]\n{hook}"), "line 1: `a b` is not a valid name for a receiver"),
    ] {
        let problems = parse(&format!("{file}\n{TOOL}")).expect_err(says).to_string();
        assert!(problems.starts_with(says) && problems.lines().count() == 1, "{says}: {problems}");
        assert!(!problems.contains("secret") || says.contains("secret_env"), "{problems}");
    }
}
