//! Input responses without a terminal.

use serde_json::{Value, json};

use super::stage::{ERAS, Outlive, Stage};

const ANSWERS: [&str; 10] = [
    "--answer",
    "name=Ada",
    "--answer",
    "size=Large",
    "--answer",
    "extras=Milk",
    "--answer",
    "extras=Sugar",
    "--answer",
    "gift=yes",
];

fn ordered() -> Value {
    json!({"name": "Ada", "contact": null, "count": 3, "size": "Large", "extras": ["Milk", "Sugar"],
        "gift": true})
}

#[track_caller]
fn check(outlive: &Outlive, arguments: &[&str]) {
    let ran = outlive.run(arguments);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(serde_json::from_str::<Value>(&ran.out).unwrap(), ordered(), "{ran:?}");
}

#[test]
fn answer_options_fill_form_inline_and_in_task() {
    let (outlive, stage) = (Outlive::new(), Stage::start(&[]));
    for era in ERAS {
        for tool in ["order", "order_task"] {
            let call = ["call", "--protocol-version", era, &stage.url, tool];
            check(&outlive, &[&call[..], &ANSWERS].concat());
        }
    }
    assert!(outlive.written().is_empty());
}

#[test]
fn answer_options_take_precedence_over_answers_file() {
    let (outlive, stage) = (Outlive::new(), Stage::start(&[]));
    let file = outlive.folder.file("answers.json");
    let answers = json!({"name": "Bert", "size": "Large", "extras": ["Milk", "Sugar"], "gift": true, "other": 1});
    std::fs::write(&file, answers.to_string()).unwrap();
    check(&outlive, &["call", &stage.url, "order", "--answers", &file, "--answer", "name=Ada"]);
}

#[test]
fn invalid_answer_is_rejected() {
    let (outlive, stage) = (Outlive::new(), Stage::start(&[]));
    for (answer, why) in [
        ("name=A", "`name`"),
        ("count=11", "`count`"),
        ("count=many", "`count` must be an integer"),
        ("size=Huge", "one of Small, Large"),
        ("contact=ada", "`contact`"),
    ] {
        let ran = outlive.run(&["call", &stage.url, "order", "--answer", answer]);
        assert!(ran.code == 2 && ran.err.contains(why), "{answer}: {ran:?}");
        assert!(outlive.written().is_empty(), "no call is saved");
    }
}

#[test]
fn unanswered_request_exits_with_code_5_and_task_waits() {
    let (outlive, stage) = (Outlive::new(), Stage::start(&[]));
    for era in ERAS {
        let version = ["--protocol-version", era];
        let ran = outlive.run(&["call", "--protocol-version", era, &stage.url, "order"]);
        assert_eq!((ran.code, ran.out.as_str()), (5, ""), "{ran:?}");
        assert!(
            ran.err.contains("What would you like?") && ran.err.contains("--answer"),
            "{ran:?}"
        );
        assert!(outlive.written().is_empty(), "no call is saved");
        // An incomplete answer is not sent.
        let ran = outlive.run(&[
            "call",
            "--protocol-version",
            era,
            &stage.url,
            "order_task",
            "--answer",
            "name=Ada",
        ]);
        assert_eq!((ran.code, ran.out.as_str()), (5, ""), "{ran:?}");
        assert!(ran.err.contains("outlive tasks answer"), "{ran:?}");
        let [call] = &outlive.written()[..] else { panic!("the call is not saved") };
        let handle = call["handle"].as_str().unwrap();
        let answering = [&["tasks", "answer", &handle[..6]][..], &version, &ANSWERS].concat();
        let ran = outlive.run(&answering);
        assert_eq!(ran.code, 0, "{ran:?}");
        check(&outlive, &[&["tasks", "result", handle][..], &version].concat());
        assert!(outlive.written().is_empty());
    }
}

#[test]
fn decline_option_declines_form_and_url() {
    let (outlive, stage) = (Outlive::new(), Stage::start(&[]));
    for tool in ["order", "visit"] {
        let ran = outlive.run(&["call", &stage.url, tool, "--decline"]);
        assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{ran:?}");
    }
    let ran = outlive.run(&["call", &stage.url, "visit"]);
    assert!(ran.code == 5 && ran.err.contains("https://shop.example/login"), "{ran:?}");
}
