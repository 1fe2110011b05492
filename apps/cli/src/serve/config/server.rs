//! The section `[server]`.

use super::asked::Asked;
use super::limits::ServerLimits;
use super::public_url::PublicUrl;
use super::reader;
use super::reader::{At, Problem, Result as Read, Section, Value};
use serde_json::json;
use std::{net::IpAddr, path::PathBuf};

/// `[server]`.
#[derive(Clone, Debug)]
pub(crate) struct ServerConfig {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) title: Option<String>,
    pub(crate) instructions: Option<String>,
    /// Skills folder, relative to the folder of the file.
    pub(crate) skills: Option<PathBuf>,
    pub(crate) listen: String,
    /// Base URL of links to the server, if the file has one.
    pub(super) public_url: Option<String>,
    pub(crate) token_file: Option<PathBuf>,
    pub(crate) seal_key_file: Option<PathBuf>,
    pub(crate) allow_hosts: Vec<String>,
    pub(crate) allow_origins: Vec<String>,
    pub(crate) trusted_proxies: Vec<IpAddr>,
    pub(crate) allow_anonymous: bool,
    /// Separate address for the metrics.
    pub(crate) metrics_listen: Option<String>,
    /// File with the token for the metrics at `listen`.
    pub(crate) metrics_token_file: Option<PathBuf>,
    pub(crate) max_waiting_jobs_per_caller: u32,
    pub(crate) limits: ServerLimits,
}

pub(crate) const LISTEN: &str = "127.0.0.1:8000";

pub(crate) const MAX_WAITING_JOBS: u32 = 8;

pub(super) fn server(section: Option<Section<'_>>, asked: &mut Asked) -> Read<ServerConfig> {
    let mut section = section.unwrap_or_else(Section::empty);
    let read = ServerConfig {
        name: section.read("name")?.unwrap_or_else(|| "outlive".to_owned()),
        version: section.read("version")?.unwrap_or_else(|| "1".to_owned()),
        title: section.read("title")?,
        instructions: section.read("instructions")?,
        skills: section.read::<String>("skills")?.map(PathBuf::from),
        listen: section.read("listen")?.map_or_else(|| LISTEN.to_owned(), |Address(it)| it),
        public_url: section.read("public_url")?.map(|PublicUrl(url)| url),
        token_file: section.read::<String>("token_file")?.map(PathBuf::from),
        seal_key_file: section.read::<String>("seal_key_file")?.map(PathBuf::from),
        allow_hosts: section.read("allow_hosts")?.unwrap_or_default(),
        allow_origins: section.read("allow_origins")?.unwrap_or_default(),
        trusted_proxies: section.attempt(proxies).unwrap_or_default(),
        allow_anonymous: section.read("allow_anonymous")?.unwrap_or(false),
        metrics_listen: section.read("metrics_listen")?.map(|Address(it)| it),
        metrics_token_file: section.read::<String>("metrics_token_file")?.map(PathBuf::from),
        max_waiting_jobs_per_caller: section
            .read("max_waiting_jobs_per_caller")?
            .unwrap_or(MAX_WAITING_JOBS),
        limits: ServerLimits::read(&mut section)?,
    };
    asked.note("server", section.finish()?);
    Ok(read)
}

/// An address to listen on, with its port.
pub(super) struct Address(String);

impl reader::Read for Address {
    fn read(value: Value<'_>) -> Read<Self> {
        let unfit = value.unfit("an address and a port such as \"127.0.0.1:8000\"");
        let text = String::read(value)?;
        if is_address(&text) { Ok(Self(text)) } else { Err(unfit) }
    }

    fn schema() -> serde_json::Value {
        json!({"type": "string", "pattern": ":[0-9]+$"})
    }
}

/// Returns whether a text is an IP address or host name with a port.
pub(crate) fn is_address(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let is_six = host.starts_with('[') && host.ends_with(']');
    !host.is_empty() && (is_six || !host.contains(':')) && port.parse::<u16>().is_ok()
}

/// Returns whether only this machine can reach an address. Host names count as local here and are
/// checked when bound.
pub(crate) fn is_loopback(listen: &str) -> bool {
    let host = listen.rsplit_once(':').map_or(listen, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.parse::<IpAddr>().map_or(true, |address| address.to_canonical().is_loopback())
}

/// Returns whether a host is this machine: a loopback address, or `localhost`.
pub(super) fn is_local_host(host: &str) -> bool {
    let plain = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || (plain.parse::<IpAddr>().is_ok() && is_loopback(&format!("{host}:1")))
}

pub(super) fn proxies(section: &mut Section<'_>) -> Read<Vec<IpAddr>> {
    let written: Vec<At<String>> = section.read("trusted_proxies")?.unwrap_or_default();
    let mut read = Vec::new();
    for At { value, line } in written {
        match value.parse() {
            Ok(address) => read.push(address),
            Err(_) => section.report(
                Problem::at(line, format_args!("`{value}` is not an IP address"))
                    .remedy("write IP addresses, such as trusted_proxies = [\"10.0.0.7\"]"),
            ),
        }
    }
    Ok(read)
}
