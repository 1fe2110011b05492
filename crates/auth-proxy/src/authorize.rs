//! A client sends somebody here to log in.
//!
//! A mistake in the request is shown to the person, on a page. The browser is not redirected before the
//! person has consented: anybody can register a client with any place, so a redirect here would lead
//! wherever the author of the link wants (RFC 9700 section 4.11.2). If client and place fit together,
//! the page has a link that brings the error to the client.

use std::net::IpAddr;

use bytes::Bytes;
use http::{Request, StatusCode};
use outlive_protocol::Scopes;
use serde::{Deserialize, Serialize};

use super::{
    client::{self, Client},
    consent,
    keys::digest,
    params::Params,
    proxy::ProxyState,
    redirect_uri::RedirectUri,
    reply::{Fault, Reply, back, mistake, told},
    scope_list,
};

/// The longest word of a client's for its login. It stands in a cookie.
const LONGEST_STATE: usize = 1_024;

/// What a client wants, once it is known to be one. It travels in a form and in a cookie, sealed.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Login {
    /// What the client is called in tokens.
    pub(super) client: String,
    /// The hash of its id: what it gets is for nobody else.
    pub(super) client_digest: String,
    pub(super) redirect_uri: String,
    /// Its own word for this login.
    pub(super) state: Option<String>,
    /// The hash of what it will show for the code.
    pub(super) challenge: String,
    /// The scopes that the client asks for and that exist here. Which of them the user gets depends on
    /// who that is.
    #[serde(with = "scope_list")]
    pub(super) scopes: Scopes,
    /// Until when, in seconds since 1970.
    pub(super) until: i64,
}

impl Login {
    /// Sends the browser back to the client.
    pub(super) fn back<'a>(
        &'a self,
        office: &'a ProxyState,
        with: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Reply {
        match RedirectUri::parse(&self.redirect_uri) {
            Some(uri) => back(uri, self.state.as_deref(), &office.issuer, with),
            None => told(StatusCode::BAD_REQUEST, "There is no way back to the application."),
        }
    }

    pub(super) fn refused(&self, office: &ProxyState, fault: Fault) -> Reply {
        self.back(office, [("error", fault.error), ("error_description", fault.description)])
    }
}

pub(super) async fn authorize(office: &ProxyState, request: &Request<Bytes>) -> Reply {
    let params = Params::read(request.uri().query().unwrap_or_default());
    let caller = request.extensions().get::<IpAddr>().copied();
    let (id, client) = match known_client(office, &params, caller).await {
        Ok(known) => known,
        Err(why) => return told(StatusCode::BAD_REQUEST, why),
    };
    let Some(uri) = params.get("redirect_uri").and_then(|asked| client.redirect(asked)) else {
        let why = "The application wants the answer at a place that is not its own.";
        return told(StatusCode::BAD_REQUEST, why);
    };
    match wanted(office, &params, id, uri) {
        Ok(login) => consent::ask(office, request.headers(), id, &client, login).await,
        Err(fault) => {
            let state = params.get("state").filter(|_| !params.doubled(&["state"]));
            mistake(fault, uri, state, &office.issuer)
        }
    }
}

async fn known_client<'p>(
    office: &ProxyState,
    params: &'p Params,
    caller: Option<IpAddr>,
) -> Result<(&'p str, Client), &'static str> {
    let unknown = "The application is not known here. It has to register again.";
    if params.doubled(&["client_id", "redirect_uri"]) {
        return Err("The application asks for two things at once.");
    }
    let id = params.get("client_id").ok_or(unknown)?;
    let client = match client::is_document(id) {
        true => office.documents.read(id, caller).await?,
        false => Client::open(&office.keys, id).ok_or(unknown)?,
    };
    Ok((id, client))
}

/// Reads what is wanted of a client whose answers may go to `uri`.
fn wanted(
    office: &ProxyState,
    params: &Params,
    id: &str,
    uri: RedirectUri<'_>,
) -> Result<Login, Fault> {
    const ONCE: &[&str] = &[
        "response_type",
        "response_mode",
        "state",
        "scope",
        "code_challenge",
        "code_challenge_method",
        "request",
        "request_uri",
    ];
    let invalid = |why| Fault::new("invalid_request", why);
    if params.doubled(ONCE) {
        return Err(invalid("a parameter is there twice"));
    }
    if params.get("request").is_some() || params.get("request_uri").is_some() {
        return Err(Fault::new("request_not_supported", "send plain parameters"));
    }
    if params.get("response_type") != Some("code") {
        return Err(Fault::new("unsupported_response_type", "`response_type` must be `code`"));
    }
    if params.get("response_mode").is_some_and(|mode| mode != "query") {
        return Err(invalid("`response_mode` must be `query`"));
    }
    let state = params.get("state").map(str::to_owned);
    if state.as_ref().is_some_and(|state| state.len() > LONGEST_STATE) {
        return Err(invalid("`state` is too long"));
    }
    let challenge = params.get("code_challenge").filter(|challenge| is_hash(challenge));
    // Nothing said means `plain`, which protects nobody.
    let (Some(challenge), Some("S256")) = (challenge, params.get("code_challenge_method")) else {
        return Err(invalid("a `code_challenge` with the method S256 is needed"));
    };
    office.check_resource(params)?;
    Ok(Login {
        client: client::short_name(id),
        client_digest: digest(id),
        redirect_uri: uri.as_str().to_owned(),
        state,
        challenge: challenge.to_owned(),
        scopes: office.scopes.asked(params.get("scope"))?,
        until: office.after(office.spans.login),
    })
}

/// Whether a text is a SHA-256 hash in base64url.
fn is_hash(text: &str) -> bool {
    outlive_auth::jose::decode_base64url(text).is_some_and(|hash| hash.len() == 32)
}
