//! Tests of loopback and manual logins.

use std::sync::{Arc, Mutex};

use outlive_auth::client::{
    CredentialStore, CredentialStoreError, Login, LoopbackLogin, ManualLogin,
    MemoryCredentialStore, OAuth, OAuthError, RedirectParams, SecretString,
};
use tokio::sync::mpsc;

use super::kit::{World, link, location, post, refused};

/// Returns a login that sends the URL of its page to a channel, so that the test acts as the
/// browser.
fn loopback() -> (LoopbackLogin, mpsc::Receiver<String>) {
    let (show, pages) = mpsc::channel(4);
    let login = LoopbackLogin::new().without_browser().on_url(move |url| {
        show.try_send(url.to_owned()).unwrap();
    });
    (login, pages)
}

// ACL-21
#[tokio::test]
async fn loopback_login_accepts_only_its_own_redirect() {
    let (world, (login, mut pages)) = (World::new().await, loopback());
    let link = link(&world.url(), &world.oauth().login(login).build());
    let posting = tokio::spawn(async move { post(&link, "").await.unwrap() });
    let page = pages.recv().await.unwrap();
    let back = location(&page).await;
    assert!(back.starts_with("http://127.0.0.1:") && back.contains("/callback?"), "{back}");
    // Other local pages cannot end the login with a wrong state, without a state, or at another
    // path.
    let (place, _) = back.split_once('?').unwrap();
    for other in
        [format!("{place}?code=evil&state=x"), format!("{place}?code=evil"), place.to_owned()]
    {
        let said = location(&other).await;
        assert!(said.starts_with("HTTP/1.1 400 "), "{said}");
    }
    let said = location(&place.replace("/callback", "/favicon.ico")).await;
    assert!(said.starts_with("HTTP/1.1 404 "), "{said}");
    // An unused connection does not delay the login.
    let (host, _) = place.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let _idle = tokio::net::TcpStream::connect(host).await.unwrap();
    assert!(!posting.is_finished());
    let said = location(&back).await;
    assert!(
        said.starts_with("HTTP/1.1 200 ") && said.contains("You may close this page"),
        "{said}"
    );
    assert!(said.contains("default-src 'none'") && !said.contains("code-"), "{said}");
    assert_eq!(posting.await.unwrap(), 200);
    // The port is closed after the login.
    assert!(tokio::net::TcpStream::connect(host).await.is_err());
}

#[tokio::test]
async fn denied_login_reports_access_denied() {
    let (world, (login, mut pages)) = (World::new().await, loopback());
    let link = link(&world.url(), &world.oauth().login(login).build());
    let posting = tokio::spawn(async move { refused(&link, "").await });
    let back = location(&pages.recv().await.unwrap()).await;
    let back = back.replace("code=", "error=access_denied&x=");
    let said = location(&back).await;
    assert!(said.contains("not logged in"), "{said}");
    let error = posting.await.unwrap();
    assert!(
        matches!(&error, OAuthError::Refused { response, .. } if response.code == "access_denied")
    );
    assert!(error.to_string().ends_with("log in again and consent, or request access"), "{error}");
}

#[tokio::test]
async fn registered_port_is_reused_if_it_is_free() {
    let login = LoopbackLogin::new().without_browser();
    let shown = format!("{:?}", Login::prepare(&login, None).await.unwrap());
    let uri = shown.split('"').nth(1).unwrap().to_owned();
    let again = Login::prepare(&login, Some(&uri)).await.unwrap();
    assert!(format!("{again:?}").contains(&uri));
    let taken = Login::prepare(&login, Some(&uri)).await.unwrap();
    assert!(!format!("{taken:?}").contains(&uri));
    let port = uri.rsplit(':').next().unwrap().split('/').next().unwrap().parse().unwrap();
    let error = Login::prepare(&login.port(port), None).await.unwrap_err().to_string();
    assert!(error.contains("choose another port"), "{error}");
}

#[tokio::test]
async fn manual_login_accepts_a_pasted_url_or_code() {
    type Edit = fn(String) -> String;
    let code: Edit = |back| {
        let (_, code) = back.split_once("code=").unwrap();
        code.split('&').next().unwrap().to_owned()
    };
    let cases: [(Edit, Result<(), &str>); 4] = [
        (|back| format!("  {back}\n"), Ok(())),
        (code, Ok(())),
        (|_| String::new(), Err("the pasted text is empty")),
        (|back| back.replace("state=", "state=x"), Err("`state`")),
    ];
    for (edit, expect) in cases {
        let world = World::new().await;
        let shown = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&shown);
        let login = ManualLogin::new(move |page| {
            noted.lock().unwrap().push(page.clone());
            async move { Ok(edit(location(&page).await)) }
        });
        let link = link(&world.url(), &world.oauth().login(login).build());
        match expect {
            Ok(()) => assert_eq!(post(&link, "").await.unwrap(), 200),
            Err(part) => {
                let error = refused(&link, "").await.to_string();
                assert!(error.contains(part), "{error}");
            }
        }
        assert_eq!(shown.lock().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn web_login_is_finished_by_another_client_with_the_same_registration() {
    let world = World::new().await;
    let store = SharedStore::default();
    let client = || OAuth::builder(world.url()).store(store.clone()).build();
    let redirect_uri = "http://127.0.0.1:9/console/in/callback";
    let started = client().start_login(redirect_uri).await.unwrap();
    let back = location(&started.url).await;
    assert!(back.starts_with(redirect_uri), "{back}");
    let redirect = RedirectParams::from_url(&back);
    let info = client().finish_login(&started.pending, &redirect).await.unwrap();
    assert!(info.renewable);
    let link = link(&world.url(), &client());
    assert_eq!(post(&link, "").await.unwrap(), 200);
    assert_eq!(world.logins(), 1);
}

#[tokio::test]
async fn web_login_rejects_the_redirect_of_another_login() {
    let world = World::new().await;
    let store = SharedStore::default();
    let client = || OAuth::builder(world.url()).store(store.clone()).build();
    let redirect_uri = "http://127.0.0.1:9/console/in/callback";
    let one = client().start_login(redirect_uri).await.unwrap();
    let other = client().start_login(redirect_uri).await.unwrap();
    let redirect = RedirectParams::from_url(&location(&other.url).await);
    let error = client().finish_login(&one.pending, &redirect).await.unwrap_err();
    assert!(matches!(error, OAuthError::BadRedirect(_)), "{error}");
    assert!(client().login_info().await.unwrap().is_none());
    assert!(world.issuer.all("/token").is_empty());
}

/// Credentials that several clients share.
#[derive(Clone, Default)]
struct SharedStore(Arc<MemoryCredentialStore>);

impl CredentialStore for SharedStore {
    fn get(&self, name: &str) -> Result<Option<SecretString>, CredentialStoreError> {
        self.0.get(name)
    }

    fn put(&self, name: &str, value: &SecretString) -> Result<(), CredentialStoreError> {
        self.0.put(name, value)
    }

    fn remove(&self, name: &str) -> Result<(), CredentialStoreError> {
        self.0.remove(name)
    }
}
