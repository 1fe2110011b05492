//! `[auth]`: the server accepts tokens of its issuers, and publishes their URLs.

use std::process::Command;

use outlive::client::ServerErrorKind;

use super::{Place, builder};
use crate::auth::world::{Authority, Ways, get};

const RESOURCE: &str = "https://mcp.test/mcp";

fn file(issuer: &str, more: &str) -> String {
    format!(
        "[tools.t]\ndescription = \"d\"\ncommand = [\"echo\", \"hello\"]\n\
         [auth]\nresource = \"{RESOURCE}\"\nissuer = \"{issuer}\"\nscopes = [\"mcp\"]\n{more}"
    )
}

/// Returns whether the server accepts a token.
async fn lets_in(place: &Place, token: &str) -> bool {
    match builder().token(token.to_owned()).connect(place.url()).await {
        Ok(client) => {
            let result = client.call_tool("t", serde_json::json!({})).await.unwrap();
            assert!(serde_json::to_string(&result).unwrap().contains("hello"));
            true
        }
        Err(error) => {
            let reason = error.kind();
            assert!(
                matches!(reason, Some(ServerErrorKind::Unauthorized | ServerErrorKind::Forbidden)),
                "{error}: {}",
                place.log()
            );
            false
        }
    }
}

#[tokio::test]
async fn only_tokens_of_issuer_are_accepted() {
    let issuer = Authority::start(Ways::default());
    let place = Place::new(&file(&issuer.url, ""));
    assert!(lets_in(&place, &issuer.token(RESOURCE, "mcp")).await);
    assert!(!lets_in(&place, &issuer.token("https://other.test/mcp", "mcp")).await);
    assert!(!lets_in(&place, &issuer.token(RESOURCE, "other")).await);
    assert!(!lets_in(&place, "made-up").await);
    let other = Authority::start(Ways::default());
    assert!(!lets_in(&place, &other.token(RESOURCE, "mcp")).await);
    // The metadata names the issuer for clients without a token.
    let at = place.url().replace("/mcp", "/.well-known/oauth-protected-resource/mcp");
    let metadata = get(&at);
    assert!(metadata.contains(RESOURCE) && metadata.contains(&issuer.url), "{metadata}");
}

#[tokio::test]
async fn keys_are_read_from_jwks_url() {
    let issuer = Authority::start(Ways::default());
    let more = format!("jwks_url = \"{}/keys\"\naudiences = [\"by-name\"]\n", issuer.url);
    let place = Place::new(&file(&issuer.url, &more));
    assert!(lets_in(&place, &issuer.token("by-name", "mcp")).await);
    assert!(issuer.all("/.well-known/oauth-authorization-server").is_empty());
}

#[tokio::test]
async fn token_without_tenant_claim_is_rejected() {
    let issuer = Authority::start(Ways::default());
    let place = Place::new(&file(&issuer.url, "tenant_claim = \"tid\"\n"));
    assert!(!lets_in(&place, &issuer.token(RESOURCE, "mcp")).await);
}

#[tokio::test]
async fn opaque_token_is_verified_by_introspection() {
    let issuer = Authority::start(Ways::default());
    let more = format!(
        "introspection_url = \"{}/introspect\"\nintrospection_client_id = \"us\"\n\
         introspection_secret_env = \"HOME\"\n",
        issuer.url
    );
    // Any variable that is set works: the test issuer ignores the secret.
    let place = Place::new(&file(&issuer.url, &more));
    assert!(lets_in(&place, "opaque-and-good").await);
    assert!(!lets_in(&place, "opaque-and-bad").await);
}

#[tokio::test]
async fn tokens_of_several_issuers_are_accepted() {
    let all = [(); 3].map(|()| Authority::start(Ways::default()));
    let more = format!(
        "[auth.issuers.second]\nissuer = \"{}\"\n[auth.issuers.third]\nissuer = \"{}\"\naudiences = [\"by-name\"]\n",
        all[1].url, all[2].url
    );
    let place = Place::new(&file(&all[0].url, &more));
    for issuer in &all {
        assert!(lets_in(&place, &issuer.token(RESOURCE, "mcp")).await, "{}", issuer.url);
    }
    // The audience of one issuer does not apply to the others.
    assert!(lets_in(&place, &all[2].token("by-name", "mcp")).await);
    assert!(!lets_in(&place, &all[1].token("by-name", "mcp")).await);
    assert!(!lets_in(&place, &all[0].token("by-name", "mcp")).await);
    let at = place.url().replace("/mcp", "/.well-known/oauth-protected-resource/mcp");
    let metadata = get(&at);
    assert!(all.iter().all(|issuer| metadata.contains(&issuer.url)), "{metadata}");
}

#[tokio::test]
async fn token_without_proof_is_rejected_if_dpop_is_required() {
    let issuer = Authority::start(Ways::default());
    let place = Place::new(&file(&issuer.url, "dpop = \"required\"\n"));
    assert!(!lets_in(&place, &issuer.token(RESOURCE, "mcp")).await);
    let at = place.url().replace("/mcp", "/.well-known/oauth-protected-resource/mcp");
    assert!(get(&at).contains("\"dpop_bound_access_tokens_required\":true"));
    let place = Place::new(&file(&issuer.url, "dpop = \"allowed\"\n"));
    assert!(lets_in(&place, &issuer.token(RESOURCE, "mcp")).await);
}

#[tokio::test]
async fn tool_with_scopes_requires_them() {
    let issuer = Authority::start(Ways::default());
    let more = "[tools.wipe]\ndescription = \"d\"\ncommand = [\"echo\", \"wiped\"]\nscopes = [\"write\", \"admin\"]\n\
                [tools.show]\ndescription = \"d\"\ncommand = [\"echo\", \"shown\"]\nscopes = [\"write\"]\nalways_listed = true\n";
    let place = Place::new(&file(&issuer.url, more));
    let names = async |scope: &str| {
        let token = issuer.token(RESOURCE, scope);
        let client = builder().token(token).connect(place.url()).await.unwrap();
        let tools = client.list_tools().collect().await.unwrap();
        let mut names: Vec<String> = tools.iter().map(|tool| tool.name.clone()).collect();
        names.sort_unstable();
        (client, names)
    };
    let (client, listed) = names("mcp write").await;
    assert_eq!(listed, ["show", "t", "task_cancel", "task_result"]);
    let error = client.call_tool("wipe", serde_json::json!({})).await.unwrap_err();
    assert_eq!(error.kind(), Some(ServerErrorKind::Forbidden), "{error}");
    let shown = client.call_tool("show", serde_json::json!({})).await.unwrap();
    assert!(serde_json::to_string(&shown).unwrap().contains("shown"));
    assert_eq!(names("mcp").await.1, ["show", "t", "task_cancel", "task_result"]);
    let (client, listed) = names("mcp write admin").await;
    assert_eq!(listed, ["show", "t", "task_cancel", "task_result", "wipe"]);
    let wiped = client.call_tool("wipe", serde_json::json!({})).await.unwrap();
    assert!(serde_json::to_string(&wiped).unwrap().contains("wiped"));
}

#[test]
fn serve_with_invalid_auth_fails() {
    for (more, flags, says) in [
        ("", &["--token-file", "tokens"][..], "cannot be combined with [auth]"),
        (
            "introspection_url = \"https://id.test/i\"\nintrospection_client_id = \"us\"\n\
             introspection_secret_env = \"OUTLIVE_NOT_THERE\"\n",
            &[],
            "OUTLIVE_NOT_THERE is not set or empty",
        ),
        ("jwks_url = \"http://id.test/keys\"\n", &[], "[auth]: "),
    ] {
        let place = Place::unserved(&file("https://id.test", more));
        let mut command = Command::new(env!("CARGO_BIN_EXE_outlive"));
        command.current_dir(&place.folder).args(["serve", "--listen", "127.0.0.1:0"]);
        command.arg("--data-dir").arg(place.folder.join("data")).args(flags);
        let ran = command.output().unwrap();
        let said = String::from_utf8(ran.stderr).unwrap();
        assert!(ran.status.code() == Some(2) && said.contains(says), "{said}");
    }
}
