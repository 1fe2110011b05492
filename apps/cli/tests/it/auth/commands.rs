//! `outlive login`, `outlive logout` and `outlive whoami`.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::fs::PermissionsExt,
};

use serde_json::Value;

use super::world::{Ways, World, agreed};
use crate::call::stage::Ran;

// ACL-33
#[test]
fn login_in_browser_then_logout_deletes_tokens() {
    let world = World::new();
    let url = world.url.as_str();
    let (code, said) = world.log_in(&[]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("Opening your browser") && said.contains("Logged in to"), "{said}");
    let file = world.credentials();
    let mode = fs::metadata(&file).unwrap().permissions().mode() & 0o777;
    let kept = fs::read_to_string(&file).unwrap();
    assert!(mode == 0o600 && kept.contains("secret-refresh-"), "{mode:o}");

    let who = world.outlive.json(&["whoami", url, "--json"]);
    assert_eq!(who["issuer"], world.issuer.url.as_str(), "{who}");
    assert_eq!((&who["clientId"], &who["renewable"]), (&"registered".into(), &true.into()));
    assert_eq!(who["scopes"], serde_json::json!(["mcp"]), "{who}");
    assert_eq!(world.outlive.json(&["whoami", "--json"]), Value::from(vec![who.clone()]));
    let page = world.outlive.run(&["whoami"]);
    assert!(page.code == 0 && page.out.contains(url) && page.out.contains("mcp"), "{page:?}");
    assert!(page.out.contains(&format!("stored  in {file}, which only you can read")), "{page:?}");
    assert_eq!(who["storedIn"], serde_json::json!({"file": file}));
    // No output contains a token.
    for shown in [said, who.to_string(), page.out] {
        assert!(!shown.contains("secret-") && !shown.contains("eyJ"), "{shown}");
    }

    let out = world.outlive.run(&["logout", url]);
    assert!(out.code == 0 && out.err.contains("Logged out"), "{out:?}");
    assert_eq!(world.issuer.all("/revoke").len(), 1);
    let kept = fs::read_to_string(&file).unwrap();
    assert!(!kept.contains("secret-refresh-"));
    let out = world.outlive.run(&["logout", url]);
    assert!(out.code == 0 && out.err.contains("You were not logged in to"), "{out:?}");
    let who = world.outlive.run(&["whoami", url]);
    assert!(who.code == 1 && who.err.contains(&format!("outlive login {url}")), "{who:?}");
    assert_eq!(world.outlive.json(&["whoami", "--json"]), serde_json::json!([]));
}

#[test]
fn login_without_browser_reads_pasted_url() {
    let world = World::new();
    let mut login = world.start(&["login", &world.url, "--no-browser", "--json"]);
    let mut said = BufReader::new(login.stderr.take().unwrap()).lines();
    let page = said.find_map(|line| {
        let line = line.unwrap();
        line.trim().starts_with("http://").then(|| line.trim().to_owned())
    });
    let back = agreed(&page.unwrap());
    writeln!(login.stdin.take().unwrap(), "{back}").unwrap();
    // Read to the end, so that the program never writes to a closed pipe.
    said.for_each(drop);
    let ended = login.wait_with_output().unwrap();
    assert!(ended.status.success());
    let shown: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(shown["server"], world.url.as_str());
    world.outlive.says(&["call", &world.url, "scopes"], "mcp\n");
    // The program opened no browser.
    assert!(fs::metadata(world.outlive.folder.file("page")).is_err());
}

#[test]
fn login_with_empty_paste_fails() {
    let world = World::new();
    let ran = world.outlive.run(&["login", &world.url, "--no-browser"]);
    assert!(ran.code == 3 && ran.err.contains("the pasted text is empty"), "{ran:?}");
    assert_eq!(world.outlive.run(&["whoami", &world.url]).code, 1);
}

#[test]
fn second_login_replaces_first() {
    let world = World::new();
    assert_eq!(world.log_in(&[]).0, 0);
    assert_eq!(world.log_in(&["--scope", "write"]).0, 0);
    let who = world.outlive.json(&["whoami", &world.url, "--json"]);
    assert_eq!(who["scopes"], serde_json::json!(["mcp", "write"]), "{who}");
    assert_eq!((world.logins(), world.issuer.all("/register").len()), (2, 1));
}

#[test]
fn client_id_named_at_login_is_remembered() {
    // So short that each use renews the token.
    let world = World::with(Ways { registers: false, expires_in: 10 });
    let ran = world.command(&["login", &world.url]).output().unwrap();
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(ran.status.code() == Some(3) && said.contains("--client-id"), "{said}");
    let (code, said) = world.log_in(&["--client-id", "by-hand"]);
    assert_eq!(code, 0, "{said}");
    world.outlive.says(&["call", &world.url, "scopes"], "mcp\n");
    let asked = world.issuer.all("/token");
    assert!(asked.len() > 1 && asked.iter().all(|seen| seen.field("client_id") == "by-hand"));
    assert_eq!(world.logins(), 1);
}

#[test]
fn login_commands_without_url_are_usage_errors() {
    let world = World::new();
    for command in ["login", "logout", "whoami"] {
        let ran = world.outlive.run(&[command, "my-server --stdio"]);
        assert!(ran.code == 2 && ran.err.contains("http://"), "{ran:?}");
    }
}

#[test]
fn invalid_keyring_variable_is_usage_error() {
    let world = World::new();
    let ran = Ran::of(world.command(&["whoami"]).env("OUTLIVE_KEYRING", "no").output().unwrap());
    assert!(ran.code == 2 && ran.err.contains("OUTLIVE_KEYRING=off"), "{ran:?}");
}
