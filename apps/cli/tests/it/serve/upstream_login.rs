//! `outlive login --upstream`: a login of the server at its upstream.

use std::{
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use outlive::client::request::result_text;
use serde_json::{Value, json};

use super::{Place, builder};
use crate::{
    auth::world::{Ways, World},
    call::stage::{GUARD, Ran},
};

/// Adds the options that name a server to arguments of the program.
fn of_server(place: &Place, arguments: &[&str]) -> Vec<String> {
    let file = place.folder.join("outlive.toml").display().to_string();
    let data = place.folder.join("data").display().to_string();
    let named = ["--file", &file, "--data-dir", &data];
    arguments.iter().chain(&named).map(|word| (*word).to_owned()).collect()
}

fn run(world: &World, place: &Place, arguments: &[&str]) -> Ran {
    let arguments = of_server(place, arguments);
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    world.outlive.run(&words)
}

/// Logs in with the browser script of a world.
fn log_in(world: &World, place: &Place) -> Ran {
    let arguments = of_server(place, &["login", "--upstream", "up"]);
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let login = world.command(&words).spawn().unwrap();
    let page = world.browse();
    assert!(page.contains("You may close this page"), "{page}");
    Ran::of(login.wait_with_output().unwrap())
}

/// Waits until `outlive upstreams` shows a state. Returns its standard error.
fn until_state(place: &Place, state: &str) -> String {
    let start = Instant::now();
    loop {
        let mut program = Command::new(env!("CARGO_BIN_EXE_outlive"));
        program.arg("upstreams").arg("--data-dir").arg(place.folder.join("data"));
        let ran = Ran::of(program.output().unwrap());
        if ran.out.contains(state) {
            return ran.err;
        }
        assert!(start.elapsed() < GUARD, "{state}: {ran:?} {}", place.log());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Calls a tool of the upstream. Returns its text, and whether it is an error.
fn call(runtime: &tokio::runtime::Runtime, place: &Place) -> (String, bool) {
    runtime.block_on(async {
        let client = place.client().await;
        match client.call_tool("up__scopes", json!({})).await {
            Ok(result) => (result_text(&result), result.is_error == Some(true)),
            Err(error) => (error.to_string(), true),
        }
    })
}

fn assert_without_secrets(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            assert_without_secrets(&path);
            continue;
        }
        let bytes = fs::read(&path).unwrap_or_default();
        let has = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
        // Refresh tokens start with the first text, and access tokens with one of the headers.
        for part in [&b"secret-refresh"[..], b"eyJ0eXAiOiJ", b"eyJhbGciOiJ"] {
            assert!(!has(part), "{} has {}", path.display(), String::from_utf8_lossy(part));
        }
    }
}

#[test]
fn upstream_login_is_used_by_running_server_and_sealed_in_its_store() {
    let world = World::with(Ways { expires_in: 20, ..Ways::default() });
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let file = format!("[upstreams.up]\nurl = {:?}\nauth = {{ kind = \"login\" }}\n", world.url);
    let place = Place::new(&file);
    let said = until_state(&place, "needs login");
    assert!(said.contains("run: outlive login --upstream up"), "{said}");
    let who = run(&world, &place, &["whoami", "--upstream", "up"]);
    assert!(who.code == 1 && who.err.contains("not logged in at `up`"), "{who:?}");

    let login = log_in(&world, &place);
    assert!(login.code == 0 && login.err.contains("Logged in to up."), "{login:?}");
    assert_eq!(call(&runtime, &place), ("mcp".to_owned(), false), "{}", place.log());
    assert_eq!(call(&runtime, &place), ("mcp".to_owned(), false), "{}", place.log());
    until_state(&place, "ready");
    assert_eq!(world.logins(), 1);
    assert!(world.grants().iter().any(|grant| grant == "refresh_token"), "{:?}", world.grants());
    let who = run(&world, &place, &["whoami", "--upstream", "up", "--json"]);
    let who: Value = serde_json::from_str(&who.out).unwrap();
    assert_eq!(who["issuer"], world.issuer.url.as_str());
    assert_eq!(who["storedIn"], "store of the server");
    let mut check = Command::new(env!("CARGO_BIN_EXE_outlive"));
    check.args(of_server(&place, &["upstreams", "check"]));
    let checked = Ran::of(check.output().unwrap());
    assert!(checked.code == 0 && checked.out.contains("up__scopes"), "{checked:?}");
    assert_without_secrets(&place.folder);

    let logout = run(&world, &place, &["logout", "--upstream", "up"]);
    assert!(logout.code == 0 && logout.err.contains("Logged out of up."), "{logout:?}");
    assert_eq!(world.issuer.all("/revoke").len(), 1);
    let (said, failed) = call(&runtime, &place);
    assert!(failed && said.contains("outlive login --upstream up"), "{said}");
}

#[test]
fn exchange_sends_the_token_of_the_caller_to_the_token_endpoint_alone() {
    const RESOURCE: &str = "https://mcp.test/mcp";
    let world = World::new();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (issuer, url) = (&world.issuer.url, &world.url);
    let place = Place::new(&format!(
        "[auth]\nresource = \"{RESOURCE}\"\nissuer = \"{issuer}\"\n[upstreams.up]\nurl = {url:?}\n\
         auth = {{ kind = \"exchange\", token_url = \"{issuer}/token\", resource = {url:?}, \
         scopes = [\"mcp\"], client_id = \"gateway\", client_secret_env = \"PATH\" }}\n"
    ));
    let token = world.issuer.token(RESOURCE, "");
    let said = runtime.block_on(async {
        let client = place.client_with(builder().token(token.clone())).await;
        let result = client.call_tool("up__scopes", json!({})).await;
        result_text(&result.unwrap_or_else(|error| panic!("{error}: {}", place.log())))
    });
    assert_eq!(said, "mcp", "{}", place.log());
    let exchanges = world.issuer.all("/token");
    let exchanges: Vec<_> =
        exchanges.iter().filter(|seen| !seen.field("subject_token").is_empty()).collect();
    assert_eq!(exchanges.len(), 1);
    assert_eq!(exchanges[0].field("subject_token"), token);
    assert_without_secrets(&place.folder);
}

#[test]
fn login_at_unsuitable_upstream_is_rejected_with_remedy() {
    let world = World::new();
    let place = Place::unserved(
        "[upstreams.files]\ncommand = [\"sh\"]\n\
         [upstreams.unset]\nurl = \"https://a.example/mcp\"\n\
         auth = { kind = \"login\", client_id = \"c\", client_secret_env = \"OUTLIVE_NOT_SET\" }\n",
    );
    for (name, says) in [
        ("files", "write auth = { kind = \"login\" } in [upstreams.files]"),
        ("unset", "OUTLIVE_NOT_SET is not set"),
        ("other", "use one of: files, unset"),
    ] {
        let ran = run(&world, &place, &["login", "--upstream", name]);
        assert!(ran.code == 2 && ran.err.contains(says), "{name}: {ran:?}");
    }
    let both = run(&world, &place, &["login", "https://a.example/mcp", "--upstream", "files"]);
    assert_eq!(both.code, 2, "{both:?}");
    let neither = world.outlive.run(&["login"]);
    assert!(neither.code == 2 && neither.err.contains("--upstream"), "{neither:?}");
}
