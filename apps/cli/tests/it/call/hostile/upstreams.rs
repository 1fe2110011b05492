//! Hostile upstreams and hostile files of hosts against an operator.

use std::fs;

use serde_json::{Value, json};

use super::{Driver, Kind, Recorded, UPSTREAMS, harm, operator::toml};
use crate::{
    call::stage::example,
    serve::{Place, until},
};

#[tokio::test]
async fn hostile_upstreams_do_not_control_operator_terminal() {
    let driver = Driver::new(UPSTREAMS);
    let [evil, program] = [toml(&example("hostile")), toml(&harm("program"))];
    let file =
        format!("[upstreams.evil]\ncommand = [{evil}]\n[upstreams.gone]\ncommand = [{program}]\n");
    let place = Place::new(&file);
    let path = |name: &str| place.folder.join(name).display().to_string();
    let (file, data) = (path("outlive.toml"), path("data"));
    let server = ["--file", file.as_str(), "--data-dir", data.as_str()];
    let client = place.client().await;
    client.list_tools().collect().await.unwrap();
    until("the server has the output of the upstream", || {
        let status = fs::read_to_string(place.folder.join("data/status.json")).ok()?;
        let status: Value = serde_json::from_str(&status).ok()?;
        status["upstreams"][0]["last_lines"].as_array().filter(|lines| !lines.is_empty()).map(drop)
    })
    .await;
    let run = |words: &[&str]| driver.run(&[words, &server].concat());
    let check = ["upstreams", "check", "--file", &file];
    driver.run(&check).check(Kind::Talk, &["program"]);
    driver.run(&[&check[..], &["--json"]].concat()).check(Kind::Talk, &[]);
    run(&["upstreams", "log", "evil"]).check(Kind::Talk, &["stderr"]);
    run(&["upstreams", "log", "evil", "--json"]).check(Kind::Talk, &["stderr"]);
    run(&["upstreams", "log", &harm("unknown")]).check(Kind::Talk, &["unknown"]);
    run(&["upstreams", "restart", &harm("unknown")]).check(Kind::Talk, &["unknown"]);
    run(&["upstreams", "restart", "evil"]).check(Kind::Talk, &[]);
    run(&["upstreams", "accept", "evil", &harm("tool")]).check(Kind::Talk, &["tool"]);
    let show = ["upstreams", &file, "--data-dir", &data];
    Recorded::run(&driver.outlive, "", &show).check(Kind::Talk, &[]);

    let host = json!({"mcpServers": {
        harm("server"): {"command": harm("word"), "args": [harm("argument")], "env": {harm("key"): "plain"}},
        harm("remote"): {"url": "https://example.com", "headers": {harm("header"): "${NOT_SET_HERE}x"}},
        harm("disabled"): {"command": "x", "disabled": true},
    }});
    let written = path(&harm("host-file").replace('/', ""));
    fs::write(&written, host.to_string()).unwrap();
    let secrets = path("secrets");
    let import = ["upstreams", "import", &written, "--secrets", &secrets];
    let words = ["server", "word", "disabled", "host-file"];
    driver.run(&import).check(Kind::Talk, &words);
    driver.run(&[&import[..], &["--json"]].concat()).check(Kind::Talk, &words);
}
