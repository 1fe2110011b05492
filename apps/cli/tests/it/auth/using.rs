//! What `outlive call`, `inspect` and `tasks` do with a login, and where there is none.

use super::world::{Ways, World};
use crate::call::tmux::Terminal;

#[test]
fn without_a_terminal_nobody_is_sent_to_a_browser() {
    let world = World::new();
    let url = world.url.as_str();
    let login = format!("outlive login {url}");
    for arguments in
        [&["call", url, "scopes"][..], &["inspect", url], &["tasks", "list", "--server", url]]
    {
        let ran = world.command(arguments).output().unwrap();
        let said = String::from_utf8(ran.stderr).unwrap();
        assert!(ran.status.code() == Some(3) && said.contains(&login), "{arguments:?}: {said}");
        assert!(said.contains("--token-env"), "{said}");
    }
    assert_eq!((world.logins(), world.issuer.all("/register").len()), (0, 0));
}

// ACL-22
#[test]
fn a_login_is_used_and_renewed_in_silence() {
    // So short that each use renews it.
    let world = World::with(Ways { expires_in: 10, ..Ways::default() });
    let url = world.url.as_str();
    assert_eq!(world.log_in(&[]).0, 0);
    for _ in 0..2 {
        let ran = world.outlive.says(&["call", url, "scopes"], "mcp\n");
        assert_eq!(ran.err, "");
    }
    let found = world.outlive.json(&["inspect", url, "--json"]);
    assert_eq!(found["server"]["name"], "protected", "{found}");
    let grants = world.grants();
    assert_eq!(grants.iter().filter(|grant| *grant == "authorization_code").count(), 1);
    assert!(grants.iter().filter(|grant| *grant == "refresh_token").count() >= 3, "{grants:?}");
    assert_eq!(world.logins(), 1);
}

#[test]
fn a_token_of_the_user_comes_before_a_login() {
    let world = World::new();
    let url = world.url.as_str();
    assert_eq!(world.log_in(&[]).0, 0);
    let ran = world.outlive.run(&["call", url, "scopes", "--header", "Authorization: Bearer x"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    world.outlive.says(&["call", url, "scopes"], "mcp\n");
}

#[test]
fn at_a_terminal_a_call_logs_in_by_itself_and_for_more_when_it_needs_more() {
    let world = World::new();
    let before = format!("BROWSER='{}'", world.browser());
    let call =
        |tool: &str| Terminal::run_with(&world.outlive, &before, &["call", &world.url, tool], "");
    let terminal = call("scopes");
    assert!(world.browse().contains("You may close this page"));
    let screen = terminal.until("EXIT:0");
    assert!(screen.contains("Your browser opens") && screen.contains("mcp\n"), "{screen}");
    let terminal = call("scopes");
    let screen = terminal.until("EXIT:0");
    assert!(!screen.contains("browser"), "{screen}");
    let terminal = call("write");
    assert!(world.browse().contains("You may close this page"));
    terminal.until("EXIT:0");
    assert_eq!(world.logins(), 2);
    // What was added there is there for everybody.
    world.outlive.says(&["call", &world.url, "write"], "mcp write\n");
}
