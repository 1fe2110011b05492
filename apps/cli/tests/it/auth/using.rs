//! `outlive call`, `inspect` and `tasks`, with and without a login.

use super::world::{Ways, World};
use crate::call::tmux::Terminal;

#[test]
fn commands_without_terminal_open_no_browser() {
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
fn expired_login_is_renewed_silently() {
    // So short that each use renews the token.
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
fn authorization_header_takes_precedence_over_login() {
    let world = World::new();
    let url = world.url.as_str();
    assert_eq!(world.log_in(&[]).0, 0);
    let ran = world.outlive.run(&["call", url, "scopes", "--header", "Authorization: Bearer x"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    world.outlive.says(&["call", url, "scopes"], "mcp\n");
}

#[test]
fn call_at_terminal_logs_in_and_steps_up_scopes() {
    let world = World::new();
    let before = format!("BROWSER='{}'", world.browser());
    let call =
        |tool: &str| Terminal::run_with(&world.outlive, &before, &["call", &world.url, tool], "");
    let terminal = call("scopes");
    assert!(world.browse().contains("You may close this page"));
    let screen = terminal.until("EXIT:0");
    assert!(screen.contains("Opening your browser") && screen.contains("mcp\n"), "{screen}");
    let terminal = call("scopes");
    let screen = terminal.until("EXIT:0");
    assert!(!screen.contains("browser"), "{screen}");
    let terminal = call("write");
    assert!(world.browse().contains("You may close this page"));
    terminal.until("EXIT:0");
    assert_eq!(world.logins(), 2);
    // The added scope is available to later commands.
    world.outlive.says(&["call", &world.url, "write"], "mcp write\n");
}
