//! `[auth]`: the server takes the tokens of an issuer, and tells others where to get one.

use std::process::Command;

use outlive::client::Reason;

use super::{Place, builder};
use crate::auth::world::{Authority, Ways, get};

const RESOURCE: &str = "https://mcp.test/mcp";

fn file(issuer: &str, more: &str) -> String {
    format!(
        "[tools.t]\ndescription = \"d\"\ncommand = [\"echo\", \"hello\"]\n\
         [auth]\nresource = \"{RESOURCE}\"\nissuer = \"{issuer}\"\nscopes = [\"mcp\"]\n{more}"
    )
}

/// Whether a caller with this token is let in.
async fn lets_in(place: &Place, token: &str) -> bool {
    match builder().token(token.to_owned()).connect(place.url()).await {
        Ok(client) => {
            let result = client.call_tool("t", serde_json::json!({})).await.unwrap();
            assert!(serde_json::to_string(&result).unwrap().contains("hello"));
            true
        }
        Err(error) => {
            let reason = error.reason();
            assert!(
                matches!(reason, Some(Reason::Unauthorized | Reason::Forbidden)),
                "{error}: {}",
                place.log()
            );
            false
        }
    }
}

#[tokio::test]
async fn tokens_of_the_issuer_are_taken_and_no_others() {
    let issuer = Authority::start(Ways::default());
    let place = Place::new(&file(&issuer.url, ""));
    assert!(lets_in(&place, &issuer.token(RESOURCE, "mcp")).await);
    assert!(!lets_in(&place, &issuer.token("https://other.test/mcp", "mcp")).await);
    assert!(!lets_in(&place, &issuer.token(RESOURCE, "other")).await);
    assert!(!lets_in(&place, "made-up").await);
    let other = Authority::start(Ways::default());
    assert!(!lets_in(&place, &other.token(RESOURCE, "mcp")).await);
    // Whoever comes without one learns where to go.
    let at = place.url().replace("/mcp", "/.well-known/oauth-protected-resource/mcp");
    let metadata = get(&at);
    assert!(metadata.contains(RESOURCE) && metadata.contains(&issuer.url), "{metadata}");
}

#[tokio::test]
async fn keys_are_found_where_the_file_says() {
    let issuer = Authority::start(Ways::default());
    let more = format!("jwks_url = \"{}/keys\"\naudiences = [\"by-name\"]\n", issuer.url);
    let place = Place::new(&file(&issuer.url, &more));
    assert!(lets_in(&place, &issuer.token("by-name", "mcp")).await);
    assert!(issuer.all("/.well-known/oauth-authorization-server").is_empty());
}

#[tokio::test]
async fn a_tenant_that_is_wanted_has_to_be_named() {
    let issuer = Authority::start(Ways::default());
    let place = Place::new(&file(&issuer.url, "tenant_claim = \"tid\"\n"));
    assert!(!lets_in(&place, &issuer.token(RESOURCE, "mcp")).await);
}

#[tokio::test]
async fn the_issuer_is_asked_if_the_file_says_so() {
    let issuer = Authority::start(Ways::default());
    let more = format!(
        "introspection_url = \"{}/introspect\"\nintrospection_client_id = \"us\"\n\
         introspection_secret_env = \"HOME\"\n",
        issuer.url
    );
    // Any variable that is there will do: the issuer of the tests does not look at it.
    let place = Place::new(&file(&issuer.url, &more));
    assert!(lets_in(&place, "opaque-and-good").await);
    assert!(!lets_in(&place, "opaque-and-bad").await);
}

#[test]
fn what_cannot_be_protected_is_not_served() {
    for (more, flags, says) in [
        ("", &["--token-file", "tokens"][..], "one kind of token"),
        (
            "introspection_url = \"https://id.test/i\"\nintrospection_client_id = \"us\"\n\
             introspection_secret_env = \"OUTLIVE_NOT_THERE\"\n",
            &[],
            "OUTLIVE_NOT_THERE has no secret",
        ),
        ("jwks_url = \"http://id.test/keys\"\n", &[], "[auth]: "),
    ] {
        let place = Place::unserved(&file("https://id.test", more));
        let mut command = Command::new(env!("CARGO_BIN_EXE_outlive"));
        command.current_dir(&place.folder).args(["serve", "--listen", "127.0.0.1:0"]);
        command.arg("--data").arg(place.folder.join("data")).args(flags);
        let ran = command.output().unwrap();
        let said = String::from_utf8(ran.stderr).unwrap();
        assert!(ran.status.code() == Some(2) && said.contains(says), "{said}");
    }
}
