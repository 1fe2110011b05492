//! Answers to questions without a terminal.

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
fn a_form_is_answered_by_flags_before_a_task_and_inside_of_it() {
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
fn a_form_is_answered_by_a_file_and_flags_go_before_it() {
    let (outlive, stage) = (Outlive::new(), Stage::start(&[]));
    let file = outlive.folder.file("answers.json");
    let answers = json!({"name": "Bert", "size": "Large", "extras": ["Milk", "Sugar"], "gift": true, "other": 1});
    std::fs::write(&file, answers.to_string()).unwrap();
    check(&outlive, &["call", &stage.url, "order", "--answers", &file, "--answer", "name=Ada"]);
}

#[test]
fn an_answer_that_does_not_fit_is_refused() {
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
        assert!(outlive.written().is_empty(), "there is nothing to go on with");
    }
}

#[test]
fn a_question_that_nobody_answers_is_exit_code_5_and_a_task_keeps_it() {
    let (outlive, stage) = (Outlive::new(), Stage::start(&[]));
    for era in ERAS {
        let version = ["--protocol-version", era];
        let ran = outlive.run(&["call", "--protocol-version", era, &stage.url, "order"]);
        assert_eq!((ran.code, ran.out.as_str()), (5, ""), "{ran:?}");
        assert!(
            ran.err.contains("What would you like?") && ran.err.contains("--answer"),
            "{ran:?}"
        );
        assert!(outlive.written().is_empty(), "there is nothing to go on with");
        // Half of an answer is none.
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
        let [call] = &outlive.written()[..] else { panic!("its handle is there") };
        let handle = call["handle"].as_str().unwrap();
        let answering = [&["tasks", "answer", &handle[..6]][..], &version, &ANSWERS].concat();
        let ran = outlive.run(&answering);
        assert_eq!(ran.code, 0, "{ran:?}");
        check(&outlive, &[&["tasks", "result", handle][..], &version].concat());
        assert!(outlive.written().is_empty());
    }
}

#[test]
fn what_is_declined_is_declined() {
    let (outlive, stage) = (Outlive::new(), Stage::start(&[]));
    for tool in ["order", "visit"] {
        let ran = outlive.run(&["call", &stage.url, tool, "--decline"]);
        assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{ran:?}");
    }
    let ran = outlive.run(&["call", &stage.url, "visit"]);
    assert!(ran.code == 5 && ran.err.contains("https://shop.example/login"), "{ran:?}");
}
