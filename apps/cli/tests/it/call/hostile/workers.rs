//! Tools of a hostile tool worker against their developer.

use std::fs;

use super::{Driver, HARM, INVISIBLE, Kind, LINES, WORKERS};

/// A tool worker with hostile text in every message. Without the file `starts`, it fails at its start.
const SCRIPT: &str = r#"
import json, os, sys

folder = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(folder, "harm"), encoding="utf-8", newline="") as file:
    text = file.read()

def harm(word):
    return f"<{word}>{text}"

sys.stderr.buffer.write(harm("printed").encode() + b"\n")
sys.stderr.flush()
if not os.path.exists(os.path.join(folder, "starts")):
    sys.exit(3)
nonce = json.loads(sys.stdin.readline())["welcome"]["nonce"]

def say(message):
    print(json.dumps({"nonce": nonce, **message}), flush=True)

tools = [{"name": name, "durable": True, "description": harm("description")}
         for name in ("good", "fail", "ask", "unreadable")]
say({"hello": {"protocol": 1, "sdk": harm("sdk"), "tools": tools}})
for line in sys.stdin:
    message = json.loads(line)
    call, tool = message.get("call"), message.get("tool")
    if tool == "good":
        say({"call": call, "return": harm("result")})
    elif tool == "fail":
        say({"call": call, "error": harm("error"), "kind": harm("kind"), "traceback": harm("traceback")})
    elif tool == "ask":
        say({"call": call, "input": harm("key"), "message": harm("message"),
             "fields": {"yes": {"type": "boolean"}}, "required": ["yes"]})
    elif tool == "unreadable":
        say({"call": call, "incompatible": "build", "message": harm("reason")})
    elif "drop" in message:
        say({"call": call, "dropped": True})
"#;

#[test]
fn hostile_tool_worker_does_not_control_terminal() {
    let driver = Driver::new(WORKERS);
    let script = driver.outlive.folder.file("tools.py");
    fs::write(&script, SCRIPT).unwrap();
    fs::write(driver.outlive.folder.file("harm"), format!("{HARM}{INVISIBLE}{LINES}")).unwrap();
    let test = |tool: &str| driver.run(&["test", &script, tool]);
    test("good").check(Kind::Talk, &["printed"]);
    driver.run(&["serve", &script]).check(Kind::Talk, &["printed"]);

    fs::write(driver.outlive.folder.file("starts"), "").unwrap();
    test("good").check(Kind::Data, &["result"]);
    driver.run(&["test", &script, "good", "--json"]).check(Kind::Talk, &["result"]);
    test("fail").check(Kind::Data, &["error", "kind", "traceback"]);
    test("ask").check(Kind::Talk, &["key"]);
    test("unreadable").check(Kind::Data, &["reason"]);
}
