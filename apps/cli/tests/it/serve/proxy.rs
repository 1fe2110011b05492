//! `[auth.proxy]`: logins with an identity provider without MCP support.

use std::{
    collections::BTreeMap,
    io::{Read, Write},
    net::TcpStream,
    process::Command,
};

use outlive::auth::fetch::form;
use serde_json::{Value, json};

use super::{Place, builder};
use crate::auth::world::{Authority, Ways, agreed};

const ORIGIN: &str = "https://mcp.test";
const BACK: &str = "http://127.0.0.1:9/callback";
const VERIFIER: &str = "a-verifier-that-is-long-enough-for-everybody-here";
const CHALLENGE: &str = "hcqoBrAUTrPOumzygCpIg3nHHeUojk2YH9Gke-D5Z9s";

/// Returns a file whose secrets are in variables that are always set.
fn file(provider: &str, allow: &str) -> String {
    format!(
        "[tools.t]\ndescription = \"d\"\ncommand = [\"echo\", \"hello\"]\n\
         [auth]\nresource = \"{ORIGIN}/mcp\"\nscopes = [\"mcp\"]\n\
         [auth.proxy]\nauthorize_url = \"{provider}/authorize\"\ntoken_url = \"{provider}/token\"\n\
         userinfo_url = \"{provider}/userinfo\"\nsubject = \"id\"\nclient_id = \"the-one\"\n\
         client_secret_env = \"HOME\"\nsigning_secret_env = \"PATH\"\n{allow}\n"
    )
}

/// A minimal browser with cookies.
#[derive(Default)]
struct Browser {
    cookies: BTreeMap<String, String>,
}

struct Got {
    location: Option<String>,
    body: String,
}

impl Browser {
    /// Sends a request to the server, as if it had the public origin.
    fn send(&mut self, place: &Place, verb: &str, target: &str, kind: &str, body: &str) -> Got {
        let host = place.url().trim_start_matches("http://").trim_end_matches("/mcp");
        let target = target.trim_start_matches(ORIGIN);
        let cookies: Vec<String> =
            self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut stream = TcpStream::connect(host).unwrap();
        write!(
            stream,
            "{verb} {target} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncookie: {}\r\n\
             content-type: {kind}\r\ncontent-length: {}\r\n\r\n{body}",
            cookies.join("; "),
            body.len()
        )
        .unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        for line in head.lines().filter_map(|line| line.strip_prefix("set-cookie: ")) {
            assert!(line.starts_with("__Host-") && line.contains("; Secure"), "{line}");
            let (name, rest) = line.split_once('=').unwrap();
            self.cookies.insert(name.to_owned(), rest.split(';').next().unwrap().to_owned());
        }
        let location = head.lines().find_map(|line| line.strip_prefix("location: "));
        Got { location: location.map(str::to_owned), body: body.to_owned() }
    }

    fn post(&mut self, place: &Place, target: &str, fields: &[(&str, &str)]) -> Got {
        let form = form::encode(fields.iter().copied());
        self.send(place, "POST", target, "application/x-www-form-urlencoded", &form)
    }

    /// Registers a client, and logs in for it. Returns the client ID and the final redirect.
    fn log_in(&mut self, place: &Place) -> (String, String) {
        self.log_in_for(place, &[])
    }

    /// Like `log_in`, with additional parameters.
    fn log_in_for(&mut self, place: &Place, more: &[(&str, &str)]) -> (String, String) {
        let asked = json!({"client_name": "App", "redirect_uris": [BACK]}).to_string();
        let got = self.send(place, "POST", "/register", "application/json", &asked);
        let registered: Value = serde_json::from_str(&got.body).unwrap();
        let id = registered["client_id"].as_str().unwrap().to_owned();
        let fields = [
            ("response_type", "code"),
            ("client_id", &id),
            ("redirect_uri", BACK),
            ("code_challenge", CHALLENGE),
            ("code_challenge_method", "S256"),
        ];
        let query = form::encode(fields.into_iter().chain(more.iter().copied()));
        let page = self.send(place, "GET", &format!("/authorize?{query}"), "text/html", "").body;
        assert!(page.contains("App") && page.contains("mcp"), "{page}");
        let (_, request) = page.split_once("name=\"request\" value=\"").unwrap();
        let request = request.split('"').next().unwrap();
        let fields = [("request", request), ("decision", "allow")];
        let provider = self.post(place, "/consent", &fields).location.unwrap();
        let callback = agreed(&provider);
        assert!(callback.starts_with("https://mcp.test/callback?"), "{callback}");
        (id, self.send(place, "GET", &callback, "text/html", "").location.unwrap())
    }
}

#[tokio::test]
async fn login_with_provider_survives_killed_server() {
    let provider = Authority::start(Ways::default());
    let allow = "allow_users = { email = [\"bob@example.com\", \"ann@example.com\"] }";
    let mut place = Place::new(&file(&provider.url, allow));
    let mut browser = Browser::default();
    let (id, back) = browser.log_in(&place);
    let query = form::decode(back.strip_prefix(BACK).unwrap().trim_start_matches('?'));
    let code = query.into_iter().find(|(name, _)| name == "code").unwrap().1;
    let ask = |place: &Place, browser: &mut Browser, fields: &[(&str, &str)]| -> Value {
        let got = browser.post(place, "/token", fields);
        serde_json::from_str(&got.body).unwrap()
    };
    let mut given = ask(
        &place,
        &mut browser,
        &[
            ("grant_type", "authorization_code"),
            ("code", &code),
            ("client_id", &id),
            ("code_verifier", VERIFIER),
        ],
    );
    for _ in 0..2 {
        let token = given["access_token"].as_str().unwrap_or_else(|| panic!("{given}"));
        let client = builder().token(token.to_owned()).connect(place.url()).await.unwrap();
        let result = client.call_tool("t", json!({})).await.unwrap();
        assert!(serde_json::to_string(&result).unwrap().contains("hello"));
        drop(client);
        place.kill();
        place.start();
        let refresh = given["refresh_token"].as_str().unwrap().to_owned();
        let fields =
            [("grant_type", "refresh_token"), ("refresh_token", &refresh), ("client_id", &id)];
        given = ask(&place, &mut browser, &fields);
    }
    assert_eq!(provider.all("/authorize").len(), 1);
    assert!(!place.log().contains("secret-refresh"), "{}", place.log());
}

#[test]
fn user_not_in_allow_users_is_rejected() {
    let provider = Authority::start(Ways::default());
    for allow in [
        "allow_users = { email = [\"bob@example.com\"] }",
        "allow_users = { email = [\"ann@example.com\"], team = [\"ops\"] }",
        "allow_users = { id = [\"8\"] }",
    ] {
        let place = Place::new(&file(&provider.url, allow));
        let (_, back) = Browser::default().log_in(&place);
        assert!(back.starts_with(&format!("{BACK}?error=access_denied")), "{back}");
    }
    let place = Place::new(&file(&provider.url, "allow_all_users = true"));
    let (_, back) = Browser::default().log_in(&place);
    assert!(back.starts_with(&format!("{BACK}?code=")), "{back}");
}

#[tokio::test]
async fn user_without_grant_cannot_call_tool_with_scope() {
    let provider = Authority::start(Ways::default());
    // All users may log in. The user of this provider has the ID 7.
    for (rule, granted) in [
        ("{ id = [\"8\"] }", "mcp"),
        ("{ id = [\"7\"] }", "mcp shop:operate"),
        ("[{ id = [\"8\"] }, { email = [\"ann@example.com\"] }]", "mcp shop:operate"),
        ("\"all\"", "mcp shop:operate"),
    ] {
        let allow = format!(
            "allow_all_users = true\ngrants = {{ \"shop:operate\" = {rule} }}\n\
             [tools.restart]\ndescription = \"d\"\ncommand = [\"echo\", \"restarted\"]\n\
             scopes = [\"shop:operate\"]\n"
        );
        let place = Place::new(&file(&provider.url, &allow));
        let mut browser = Browser::default();
        let (id, back) = browser.log_in_for(&place, &[("scope", "mcp shop:operate")]);
        let query = form::decode(back.strip_prefix(BACK).unwrap().trim_start_matches('?'));
        let code = query.into_iter().find(|(name, _)| name == "code").unwrap().1;
        let got = browser.post(
            &place,
            "/token",
            &[
                ("grant_type", "authorization_code"),
                ("code", &code),
                ("client_id", &id),
                ("code_verifier", VERIFIER),
            ],
        );
        let given: Value = serde_json::from_str(&got.body).unwrap();
        assert_eq!(given["scope"], granted, "{rule}");
        let token = given["access_token"].as_str().unwrap().to_owned();
        let client = builder().token(token).connect(place.url()).await.unwrap();
        let called = client.call_tool("restart", json!({})).await;
        let ran = called.is_ok_and(|it| serde_json::to_string(&it).unwrap().contains("restarted"));
        assert_eq!(ran, granted.contains("operate"), "{rule}");
    }
}

#[test]
fn proxy_without_secret_is_rejected() {
    let file =
        file("https://id.test", "allow_all_users = true").replace("PATH", "OUTLIVE_NOT_THERE");
    let place = Place::unserved(&file);
    let mut command = Command::new(env!("CARGO_BIN_EXE_outlive"));
    command.current_dir(&place.folder).args(["serve", "--listen", "127.0.0.1:0"]);
    let ran = command.arg("--data-dir").arg(place.folder.join("data")).output().unwrap();
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(
        ran.status.code() == Some(2) && said.contains("OUTLIVE_NOT_THERE is not set or empty"),
        "{said}"
    );
}
