//! Attacks on links, cursors, forms and pages: each must be rejected, or shown as text.

use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::bench::Bench;
use super::packages::browser;
use super::people::{ADA, ANN, BEN, BOB, CID, Person};
use super::sealed::{Sealed, now};
use super::site::Site;
use super::visitor::{API, APPROVAL, FORM, Reply, SAME_ORIGIN, Visitor, encode, form, text};
use crate::hosts::caller::Caller;
use crate::row::Row;

const CONFIG: &str = r#"
[tools.deploy]
description = "Deploys a version."
command = ["@RECORD@", "{key}"]
arguments = { key = { type = "string" } }
approve = { by = ["ada", "ben", "cid"], links = true, max_open = 500 }
"#;

/// Markup and characters that change the direction or are invisible.
const MARKUP: &str = "<script>alert(1)</script><img src=x onerror=alert(1)>";
const HIDDEN: [char; 3] = ['\u{202e}', '\u{2066}', '\u{200b}'];

/// The attempts of one attack.
struct Attack {
    name: &'static str,
    run: fn(&Field<'_>) -> Result<Attempts>,
}

/// The number of attempts, and those that were not rejected.
#[derive(Default)]
struct Attempts {
    count: usize,
    accepted: Vec<String>,
}

const ATTACKS: &[Attack] = &[
    Attack { name: "changed bytes of an answer link", run: changed_link },
    Attack { name: "answer link used twice, expired, of another server", run: stale_links },
    Attack { name: "answer link opened by GET and HEAD", run: opened_link },
    Attack { name: "changed bytes of a cursor, and foreign cursors", run: changed_cursor },
    Attack { name: "changed form token, of another session or path", run: changed_form_token },
    Attack { name: "expired form tokens and cursors", run: expired },
    Attack { name: "forms of another origin", run: cross_origin },
    Attack { name: "pages in a frame", run: framed },
    Attack { name: "stored markup, bidirectional and invisible characters", run: stored_markup },
    Attack {
        name: "votes of the caller, of strangers, repeated, with another digest",
        run: wrong_votes,
    },
    Attack { name: "session after its sign-out", run: ended_session },
    Attack { name: "large requests and too many changes", run: floods },
];

/// The servers under attack.
struct Field<'s> {
    bench: &'s Bench,
    site: &'s Site,
    /// A server with another key.
    other: &'s Site,
}

pub(super) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let site = Site::start(bench, "attacks", ("sqlite", 1), CONFIG)?;
    let other = Site::start(bench, "attacks-of-another-server", ("sqlite", 1), CONFIG)?;
    let field = Field { bench, site: &site, other: &other };
    let rows: Result<Vec<Row>> = ATTACKS.iter().map(|attack| attack.row(&field)).collect();
    let mut rows = rows?;
    rows.extend(in_browser(&field)?);
    Ok(rows)
}

/// Opens pages in frames of another origin, and submits forms from there, in Chromium.
fn in_browser(field: &Field<'_>) -> Result<Vec<Row>> {
    let Some(chromium) = browser()? else { return Ok(Vec::new()) };
    let server = field.site.address(0)?;
    let linked = field.request(field.site, "link in a frame")?;
    let link = field.link(field.site, &linked, &json!({}))?;
    let settings = json!({
        "chromium": chromium, "origin": format!("http://{server}"), "link": link,
        "sessions": {"ben": field.session(BEN)?.session()},
        "tokens": {"ann": ANN.token}, "deciding": {"ada": ADA.deciding},
        "short": field.bench.is_short,
    });
    field.bench.packages()?.rows("foreign.mjs", &settings)
}

impl Attack {
    /// Runs the attack.
    fn row(&self, field: &Field<'_>) -> Result<Row> {
        let Self { name, run } = self;
        let Attempts { count, accepted } = run(field).with_context(|| (*name).to_owned())?;
        ensure!(count > 0, "`{name}` made no attempt");
        let mut figure = format!("{count} attempts, {} accepted", accepted.len());
        if let Some(first) = accepted.first() {
            figure.push_str(&format!("; first: {first}"));
        }
        let case = format!("attack: {name}");
        Ok(Row::new(case, figure, "all rejected, or shown as text", accepted.is_empty()))
    }
}

impl Attempts {
    /// Counts an attempt. `is_rejected` tells whether the server behaved well.
    fn add(&mut self, name: impl Into<String>, is_rejected: bool) {
        self.count += 1;
        if !is_rejected {
            self.accepted.push(name.into());
        }
    }

    /// Counts an attempt that must get one of these statuses.
    fn expect(&mut self, name: impl Into<String>, reply: &Reply, statuses: &[u16]) {
        let name = format!("{} got {}", name.into(), reply.status);
        self.add(name, statuses.contains(&reply.status));
    }
}

impl Field<'_> {
    /// Makes a gated call and returns its approval request.
    fn request(&self, site: &Site, key: &str) -> Result<Value> {
        let caller = Caller::with_tasks(site.address(0)?, Some(ANN.token));
        let reply = caller.call("deploy", json!({"key": key}))?;
        let task = reply["result"]["taskId"].as_str();
        let task = task.with_context(|| format!("the call is not a task: {reply}"))?;
        site.visitor(0, BEN.deciding)?.read(&format!("inputs/{task}/{APPROVAL}"))
    }

    /// Creates an answer link of a person and returns its path.
    fn link(&self, site: &Site, request: &Value, body: &Value) -> Result<String> {
        let path = format!("inputs/{}/{APPROVAL}/link", text(&request["task"]));
        let reply = site.visitor(0, BEN.deciding)?.post(&path, body)?;
        let url = reply.json();
        let (_, token) = text(&url["url"])
            .split_once("/answer/")
            .with_context(|| format!("no link: {} {}", reply.status, reply.body))?;
        Ok(format!("/answer/{token}"))
    }

    /// The state of an approval request, with the number of its votes.
    fn state(&self, request: &Value) -> Result<(String, usize)> {
        let path = format!("inputs/{}/{APPROVAL}", text(&request["task"]));
        let now = self.site.visitor(0, ADA.deciding)?.read(&path)?;
        Ok((text(&now["state"]).to_owned(), now["votes"].as_array().map_or(0, Vec::len)))
    }

    fn anonymous(&self) -> Result<Visitor> {
        Ok(Visitor::anonymous(self.site.address(0)?))
    }

    fn session(&self, person: Person) -> Result<Visitor> {
        Visitor::sign_in(self.site.address(0)?, person.deciding)
    }
}

/// The form of a decision.
fn decision(request: &Value) -> String {
    form(&[("digest", text(&request["digest"])), ("action", "accept"), ("reason", "")])
}

/// Returns a text with one changed character.
fn changed(text: &str, at: usize) -> String {
    let other = if text.as_bytes()[at] == b'A' { "B" } else { "A" };
    format!("{}{other}{}", &text[..at], &text[at + 1..])
}

fn changed_link(field: &Field<'_>) -> Result<Attempts> {
    let request = field.request(field.site, "changed link")?;
    let path = field.link(field.site, &request, &json!({}))?;
    let (visitor, start) = (field.anonymous()?, "/answer/".len());
    let unknown = visitor.get("/answer/unknown")?;
    let mut attempts = Attempts::default();
    for at in start..path.len() {
        let changed = changed(&path, at);
        let reply = visitor.get(&changed)?;
        attempts.add(format!("byte {at}, GET"), reply == unknown);
        let reply = visitor.request("POST", &changed, &[SAME_ORIGIN, FORM], &decision(&request))?;
        attempts.expect(format!("byte {at}, POST"), &reply, &[404]);
    }
    attempts.add("a vote was counted", field.state(&request)? == ("open".to_owned(), 0));
    Ok(attempts)
}

fn stale_links(field: &Field<'_>) -> Result<Attempts> {
    let (visitor, mut attempts) = (field.anonymous()?, Attempts::default());
    let headers = [SAME_ORIGIN, FORM];
    let used = field.request(field.site, "used link")?;
    let path = field.link(field.site, &used, &json!({}))?;
    let first = visitor.request("POST", &path, &headers, &decision(&used))?;
    ensure!(first.status == 200, "the link decides nothing: {} {}", first.status, first.body);
    attempts.add("the vote of the link is missing", field.state(&used)?.1 == 1);
    let again = visitor.request("POST", &path, &headers, &decision(&used))?;
    attempts.expect("used link", &again, &[404, 409, 410]);
    let late = field.request(field.site, "expired link")?;
    let path = field.link(field.site, &late, &json!({"expires": "1s"}))?;
    thread::sleep(Duration::from_millis(1_500));
    attempts.expect("expired link, GET", &visitor.get(&path)?, &[404]);
    let reply = visitor.request("POST", &path, &headers, &decision(&late))?;
    attempts.expect("expired link, POST", &reply, &[404]);
    let foreign = field.request(field.other, "foreign link")?;
    let path = field.link(field.other, &foreign, &json!({}))?;
    attempts.expect("link of another server, GET", &visitor.get(&path)?, &[404]);
    let reply = visitor.request("POST", &path, &headers, &decision(&foreign))?;
    attempts.expect("link of another server, POST", &reply, &[404]);
    attempts.add("an expired link voted", field.state(&late)? == ("open".to_owned(), 0));
    Ok(attempts)
}

fn opened_link(field: &Field<'_>) -> Result<Attempts> {
    let request = field.request(field.site, "opened link")?;
    let path = field.link(field.site, &request, &json!({}))?;
    let (visitor, mut attempts) = (field.anonymous()?, Attempts::default());
    for number in 0..field.bench.choose(1_000, 50) {
        let method = if number % 2 == 0 { "GET" } else { "HEAD" };
        let reply = visitor.request(method, &path, &[], "")?;
        attempts.add("a cookie was set", reply.header("set-cookie").is_none());
    }
    attempts.add("a vote was counted", field.state(&request)? == ("open".to_owned(), 0));
    Ok(attempts)
}

fn changed_cursor(field: &Field<'_>) -> Result<Attempts> {
    for number in 0..3 {
        field.request(field.site, &format!("cursor {number}"))?;
    }
    let ada = field.site.visitor(0, ADA.deciding)?;
    let mut attempts = Attempts::default();
    for list in ["tasks", "inbox", "audit"] {
        let page = ada.read(&format!("{list}?limit=1"))?;
        let cursor = page["next"].as_str().with_context(|| format!("{list} has no cursor"))?;
        let path = |cursor: &str| format!("{API}/{list}?limit=1&after={}", encode(cursor));
        ensure!(ada.get(&path(cursor))?.status == 200, "the cursor of {list} does not work");
        for at in 0..cursor.len() {
            let reply = ada.get(&path(&changed(cursor, at)))?;
            attempts.expect(format!("{list}, byte {at}"), &reply, &[400, 422]);
        }
        let bob = field.site.visitor(0, BOB.deciding)?;
        attempts.expect(format!("{list} of ada, by bob"), &bob.get(&path(cursor))?, &[400, 422]);
        let other = if list == "tasks" { "audit" } else { "tasks" };
        let path = format!("{API}/{other}?after={}", encode(cursor));
        attempts.expect(format!("cursor of {list} in {other}"), &ada.get(&path)?, &[400, 422]);
    }
    Ok(attempts)
}

fn changed_form_token(field: &Field<'_>) -> Result<Attempts> {
    let request = field.request(field.site, "form token")?;
    let path = format!("/console/inputs/{}/{APPROVAL}", text(&request["task"]));
    let (ben, cid) = (field.session(BEN)?, field.session(CID)?);
    let token = ben.get(&path)?.field("form_token").context("the page has no form")?;
    let of_cid = cid.get(&path)?.field("form_token").context("the page has no form")?;
    let of_settings = ben.get("/console/settings")?.field("form_token");
    let of_settings = of_settings.context("the settings have no form")?;
    let send = |token: &str| {
        let digest = text(&request["digest"]);
        ben.submit(&path, &[("form_token", token), ("digest", digest), ("action", "accept")])
    };
    let mut attempts = Attempts::default();
    for at in 0..token.len() {
        attempts.expect(format!("byte {at}"), &send(&changed(&token, at))?, &[403]);
    }
    for (name, token) in
        [("no token", ""), ("cid's", of_cid.as_str()), ("of the settings", of_settings.as_str())]
    {
        attempts.expect(name, &send(token)?, &[403]);
    }
    attempts.add("a vote was counted", field.state(&request)? == ("open".to_owned(), 0));
    let reply = send(&token)?;
    ensure!(reply.status == 303, "the form does not work: {} {}", reply.status, reply.body);
    Ok(attempts)
}

fn expired(field: &Field<'_>) -> Result<Attempts> {
    let (sealed, mut attempts) = (Sealed::new(field.site), Attempts::default());
    let (past, future) = (now().saturating_sub(1_000), now() + 600_000);
    let request = field.request(field.site, "expired form")?;
    let below = format!("inputs/{}/{APPROVAL}", text(&request["task"]));
    let (ben, path) = (field.session(BEN)?, format!("/console/{below}"));
    let token = ben.get(&path)?.field("form_token").context("the page has no form")?;
    let session = ben.session().context("ben has a session")?;
    let expires = |at: u64| sealed.form_token(&token, session, &below, at);
    let send = |token: &str| {
        let digest = text(&request["digest"]);
        ben.submit(&path, &[("form_token", token), ("digest", digest), ("action", "accept")])
    };
    attempts.expect("form, a second ago", &send(&expires(past)?)?, &[403]);
    attempts.expect("form, in 1970", &send(&expires(0)?)?, &[403]);
    attempts.add("a vote was counted", field.state(&request)? == ("open".to_owned(), 0));
    let ada = field.site.visitor(0, ADA.deciding)?;
    for list in ["tasks", "inbox", "audit"] {
        let page = ada.read(&format!("{list}?limit=1"))?;
        let cursor = page["next"].as_str().with_context(|| format!("{list} has no cursor"))?;
        let send = |at: u64| {
            let cursor = sealed.cursor(cursor, ADA.name, list, at)?;
            anyhow::Ok(ada.get(&format!("{API}/{list}?limit=1&after={}", encode(&cursor)))?)
        };
        attempts.expect(format!("{list}, a second ago"), &send(past)?, &[422]);
        attempts.expect(format!("{list}, in 1970"), &send(0)?, &[422]);
        let reply = send(future)?;
        ensure!(reply.status == 200, "a valid cursor is rejected with {}", reply.status);
    }
    // The other values are those of the server, so only the time decides.
    let reply = send(&expires(future)?)?;
    ensure!(reply.status == 303, "a valid form is rejected with {}", reply.status);
    Ok(attempts)
}

fn cross_origin(field: &Field<'_>) -> Result<Attempts> {
    let request = field.request(field.site, "another origin")?;
    let path = format!("/console/inputs/{}/{APPROVAL}", text(&request["task"]));
    let ben = field.session(BEN)?;
    let token = ben.get(&path)?.field("form_token").context("the page has no form")?;
    let digest = text(&request["digest"]);
    let body = form(&[("form_token", &token), ("digest", digest), ("action", "accept")]);
    let mut attempts = Attempts::default();
    for header in [
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Site", "same-site"),
        ("Sec-Fetch-Site", "none"),
        ("Origin", "https://evil.example"),
        ("Origin", "null"),
        ("X-Nothing", "no origin"),
    ] {
        let reply = ben.request("POST", &path, &[header, FORM], &body)?;
        attempts.expect(format!("{}: {}", header.0, header.1), &reply, &[403]);
        let api = format!("{API}/inputs/{}/{APPROVAL}/answer", text(&request["task"]));
        let json = ("Content-Type", "application/json");
        let answer = json!({"digest": digest, "action": "accept"}).to_string();
        let reply = ben.request("POST", &api, &[header, json], &answer)?;
        attempts.expect(format!("API, {}: {}", header.0, header.1), &reply, &[403]);
    }
    let reply = ben.request("GET", &format!("{path}?action=accept&digest={digest}"), &[], "")?;
    attempts.expect("a decision by GET", &reply, &[200]);
    attempts.add("a vote was counted", field.state(&request)? == ("open".to_owned(), 0));
    Ok(attempts)
}

fn framed(field: &Field<'_>) -> Result<Attempts> {
    let (ada, mut attempts) = (field.session(ADA)?, Attempts::default());
    let pages = ["", "tasks", "overview", "audit", "settings", "in", "missing", "api/v1/me"];
    for page in pages {
        let reply = ada.get(&format!("/console/{page}"))?;
        let policy = reply.header("content-security-policy").unwrap_or_default();
        let is_closed = policy.contains("frame-ancestors 'none'")
            && policy.contains("default-src 'none'")
            && !policy.contains("unsafe")
            && reply.header("x-content-type-options") == Some("nosniff")
            && reply.header("referrer-policy") == Some("no-referrer");
        attempts.add(format!("/console/{page}: {policy}"), is_closed);
    }
    let answer = field.anonymous()?.get("/answer/unknown")?;
    let policy = answer.header("content-security-policy").unwrap_or_default();
    attempts.add("/answer", policy.contains("frame-ancestors 'none'"));
    Ok(attempts)
}

fn stored_markup(field: &Field<'_>) -> Result<Attempts> {
    let hidden: String = HIDDEN.iter().collect();
    let request = field.request(field.site, &format!("{MARKUP}{hidden}"))?;
    let task = text(&request["task"]);
    let deny = json!({
        "digest": request["digest"], "action": "decline", "reason": format!("{MARKUP}{hidden}"),
    });
    let (ada, mut attempts) = (field.session(ADA)?, Attempts::default());
    let pages = [
        String::new(),
        "tasks".to_owned(),
        "audit".to_owned(),
        format!("inputs/{task}/{APPROVAL}"),
        format!("tasks/{task}"),
        format!("tasks/{task}?view=arguments"),
        format!("tasks/{task}?view=journal"),
        format!("tasks/{task}?view=result"),
        format!("tasks/{task}?view=audit"),
        format!("tasks/{task}/rerun"),
        format!("tasks?tool={}", encode(&format!("\">{MARKUP}"))),
        format!("audit?actor={}", encode(&format!("\">{MARKUP}"))),
    ];
    let mut look = |state: &str| -> Result<()> {
        for page in &pages {
            let html = ada.get(&format!("/console/{page}"))?.body;
            let is_text = !html.contains("<script>alert")
                && !html.contains("<img")
                && !HIDDEN.iter().any(|hidden| html.contains(*hidden));
            attempts.add(format!("{state}: {page}"), is_text);
        }
        Ok(())
    };
    look("open")?;
    let ben = field.site.visitor(0, BEN.deciding)?;
    let reply = ben.post(&format!("inputs/{task}/{APPROVAL}/answer"), &deny)?;
    ensure!(reply.status == 200, "the denial was rejected with {}", reply.status);
    thread::sleep(Duration::from_secs(1));
    look("denied")?;
    Ok(attempts)
}

fn wrong_votes(field: &Field<'_>) -> Result<Attempts> {
    let request = field.request(field.site, "wrong votes")?;
    let path = format!("inputs/{}/{APPROVAL}/answer", text(&request["task"]));
    let vote = |person: Person, digest: &str| {
        let answer = json!({"digest": digest, "action": "accept"});
        anyhow::Ok(field.site.visitor(0, person.deciding)?.post(&path, &answer)?)
    };
    let digest = text(&request["digest"]);
    let mut attempts = Attempts::default();
    attempts.expect("the caller", &vote(ANN, digest)?, &[403]);
    attempts.expect("a stranger", &vote(BOB, digest)?, &[404]);
    attempts.expect("another digest", &vote(BEN, &changed(digest, 0))?, &[409]);
    attempts.expect("an empty digest", &vote(BEN, "")?, &[409]);
    attempts.add("a vote was counted", field.state(&request)? == ("open".to_owned(), 0));
    ensure!(vote(BEN, digest)?.status == 200, "the vote of an approver does not count");
    attempts.expect("after the decision", &vote(CID, digest)?, &[409, 410]);
    attempts.expect("the same person again", &vote(BEN, digest)?, &[409, 410]);
    attempts.add("two votes", field.state(&request)?.1 == 1);
    Ok(attempts)
}

fn ended_session(field: &Field<'_>) -> Result<Attempts> {
    let (ben, mut attempts) = (field.session(BEN)?, Attempts::default());
    let token = ben.get("/console/settings")?.field("form_token").context("no form")?;
    let reply =
        ben.submit("/console/settings", &[("form_token", &token), ("action", "sign-out")])?;
    ensure!(reply.status == 303, "the sign-out was rejected with {}", reply.status);
    attempts.expect("page", &ben.get("/console/tasks")?, &[303]);
    attempts.expect("API", &ben.get(&format!("{API}/me"))?, &[401]);
    let session = ben.session().unwrap_or_default();
    let made_up = Visitor::with_session(ben.server(), &changed(session, 0));
    attempts.expect("changed session", &made_up.get(&format!("{API}/me"))?, &[401]);
    Ok(attempts)
}

fn floods(field: &Field<'_>) -> Result<Attempts> {
    let (ben, mut attempts) = (field.site.visitor(0, BEN.deciding)?, Attempts::default());
    let (path, json) = (format!("{API}/tasks/0/cancel"), ("Content-Type", "application/json"));
    let large = format!("{{\"a\":\"{}\"}}", "x".repeat(70 << 10));
    // The server may close the connection before it has read the whole request.
    let reply = ben.request("POST", &path, &[json], &large);
    attempts.add("70 KiB", reply.is_err() || reply.is_ok_and(|reply| reply.status == 413));
    let mut limited = 0;
    for _ in 0..200 {
        limited += usize::from(ben.request("POST", &path, &[json], "{}")?.status == 429);
    }
    attempts.add(format!("{limited} of 200 changes limited"), limited >= 20);
    Ok(attempts)
}
