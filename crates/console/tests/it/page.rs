//! The content of the answer page and its headers.

use serde_json::json;

use crate::support::{Reply, Site, target};

#[track_caller]
fn check_headers(reply: &Reply) {
    for (name, value) in [
        ("content-type", "text/html; charset=utf-8"),
        ("cache-control", "no-store"),
        ("referrer-policy", "no-referrer"),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        assert_eq!(reply.header(name), Some(value), "{name}");
    }
    let policy = reply.header("content-security-policy").expect("a policy");
    for part in [
        "default-src 'none'",
        "style-src 'sha256-",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    ] {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(reply.header("set-cookie"), None);
}

#[tokio::test]
async fn every_page_has_strict_headers_and_no_script() {
    let site = Site::start().await;
    let asked = site.ask("deploy", target()).await;
    let pages = [
        site.get(&asked.path).await,
        site.get("/answer/x").await,
        site.submit(&asked.path, "accept", "").await,
        site.send("PUT", &asked.path, "").await,
        site.submit(&asked.path, "cancel", "").await,
    ];
    assert_eq!(pages.each_ref().map(|page| page.status), [200, 404, 422, 405, 200]);
    for page in &pages {
        check_headers(page);
        assert!(!page.body.contains("<script") && !page.body.contains("src="), "{}", page.body);
        assert!(page.body.len() < 100 << 10);
        assert_eq!(page.body.matches("<h1>").count(), 1);
        assert_eq!(page.body.matches("<main ").count(), 1);
    }
}

#[tokio::test]
async fn page_shows_tool_arguments_message_and_form() {
    let site = Site::start().await;
    let asked = site.ask("deploy", target()).await;
    let page = site.get(&asked.path).await;
    for part in [
        "<h1>deploy requests input</h1>",
        "<dt>target</dt>",
        "&quot;shop:1&quot;",
        "<label for=\"field0\">Reason <span class=\"required\">(required)</span></label>",
        "What to write into the log.\n3 to 80 characters",
        "a whole number, 1 to 9",
        "inputmode=\"numeric\"",
        "share <span class=\"required\">(optional)</span>",
        "<legend>sure",
        "<option value=\"1\">Large</option>",
        "type=\"checkbox\" id=\"field5-1\"",
        "an e-mail address",
        "value=\"decline\">Decline</button>",
        "value=\"cancel\">Cancel</button>",
    ] {
        page.has(part);
    }
    assert!(!page.body.contains("checked") && !page.body.contains("selected"), "no choice is made");
}

#[tokio::test]
async fn hostile_text_is_shown_as_text() {
    let site = Site::start().await;
    let target = "</pre><script>alert(1)</script>\u{202e}\u{200b}\u{7}";
    let asked = site.ask("deploy", json!({"target": {"<img>": target}})).await;
    let page = site.get(&asked.path).await;
    page.has("Deploy &lt;b&gt;shop&lt;/b&gt;?\nNow \\u{202e}yes");
    page.has("&lt;/pre&gt;&lt;script&gt;alert(1)&lt;/script&gt;\\u202e\\u200b\\u0007");
    page.has("&quot;&lt;img&gt;&quot;");
    for raw in ["<script", "<img", "<b>", "\u{202e}", "\u{200b}", "\u{7}"] {
        assert!(!page.body.contains(raw), "{raw}");
    }
}

#[tokio::test]
async fn whole_address_of_url_request_is_shown() {
    let site = Site::start().await;
    let asked = site.ask("visit", json!({})).await;
    let page = site.get(&asked.path).await;
    page.has("href=\"https://pay.example/?order=1&amp;sum=&quot;2&quot;\"");
    page.has(">https://pay.example/?order=1&amp;sum=&quot;2&quot;</a>");
}
