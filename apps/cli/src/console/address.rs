//! The console that a command means.

use std::path::{Path, PathBuf};

use outlive::{auth::fetch::is_loopback_host, server::SealKeys};

use crate::{
    error::{CliError, Result},
    paths,
    serve::{
        config::{self, Config},
        seal_key_file,
    },
};

/// Selection of a console.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Place {
    /// URL of the server [default: the server of ./outlive.toml, else http://127.0.0.1:8000/mcp]
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// Path of the console, beside that of the server [default: /console]
    #[arg(long, value_name = "PATH")]
    path: Option<String>,
    /// Data folder of the server, if it runs on this machine without tokens
    #[arg(long, value_name = "FOLDER")]
    data_dir: Option<PathBuf>,
}

/// The console of a server.
pub(crate) struct Address {
    /// URL of the console, without a slash at its end.
    pub(crate) console: String,
    /// URL of the MCP endpoint.
    pub(crate) server: String,
    /// Keys of a server on this machine without tokens. A process with these keys can sign in.
    pub(crate) keys: Option<SealKeys>,
}

impl Place {
    /// Finds the console.
    ///
    /// # Errors
    ///
    /// Returns an error if the URL or ./outlive.toml is not valid.
    pub(crate) fn find(&self) -> Result<Address> {
        let file = Some(PathBuf::from("outlive.toml")).filter(|file| file.exists());
        let config = match (&file, &self.server) {
            (Some(file), None) => config::load(file)?,
            // The file may belong to another server.
            (Some(file), Some(_)) => config::load(file).unwrap_or_else(|_| config::demo()),
            (None, _) => config::demo(),
        };
        let resource = config.auth.as_ref().map(|auth| auth.resource.clone());
        let (base, server, path) = match &self.server {
            Some(server) => (parent(server)?.to_owned(), server.clone(), "/console"),
            None => {
                let base = config.base_url().unwrap_or_else(|| local(&config.server.listen));
                let server = resource.unwrap_or_else(|| format!("{base}/mcp"));
                (base, server, config.console.path.as_str())
            }
        };
        let path = self.path.as_deref().unwrap_or(path).trim_matches('/');
        let keys = match is_local(&base) {
            true => self.keys(&config, file.as_deref())?,
            false => None,
        };
        Ok(Address { console: format!("{base}/{path}"), server, keys })
    }

    /// Returns the keys of the server of this folder, if it has no tokens and has run before.
    fn keys(&self, config: &Config, file: Option<&Path>) -> Result<Option<SealKeys>> {
        if config.auth.is_some() || config.server.token_file.is_some() {
            return Ok(None);
        }
        let data = match &self.data_dir {
            Some(data) => data.clone(),
            None => paths::of_server(file)?,
        };
        let file = seal_key_file(&config.server, &data);
        // Opening would create a missing file.
        match file.exists() {
            true => SealKeys::from_file(file).map(Some).map_err(CliError::usage),
            false => Ok(None),
        }
    }
}

/// Returns the URL without the last segment of its path, which is the MCP endpoint.
fn parent(url: &str) -> Result<&str> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let Some(rest) = rest.filter(|rest| !rest.is_empty() && !rest.starts_with('/')) else {
        return Err(CliError::usage(format!("`{url}` is not the URL of a server"))
            .remedy("write a URL that starts with http:// or https://"));
    };
    let start = url.len() - rest.len();
    let end = start + rest.find(['?', '#']).unwrap_or(rest.len());
    let url = url[..end].trim_end_matches('/');
    Ok(url[start..].rfind('/').map_or(url, |slash| &url[..start + slash]))
}

/// Returns the address on this machine of a server that listens on all addresses.
fn local(listen: &str) -> String {
    let port = listen.rsplit_once(':').map_or("8000", |(_, port)| port);
    format!("http://127.0.0.1:{port}")
}

/// Returns whether a URL is one of this machine.
fn is_local(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or(rest);
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    is_loopback_host(host)
}

#[cfg(test)]
mod tests {
    use super::{is_local, parent};

    #[test]
    fn console_is_beside_the_endpoint() {
        for (server, base) in [
            ("https://ops.example.com/mcp", "https://ops.example.com"),
            ("https://ops.example.com/outlive/mcp/", "https://ops.example.com/outlive"),
            ("http://127.0.0.1:8000/mcp?x=/y", "http://127.0.0.1:8000"),
            ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ] {
            assert_eq!(parent(server).unwrap(), base);
        }
        for server in ["ops.example.com/mcp", "http://", "https:///mcp"] {
            assert!(parent(server).is_err(), "{server}");
        }
    }

    #[test]
    fn only_addresses_of_this_machine_are_local() {
        for url in ["http://127.0.0.1:8000", "http://localhost/x", "http://[::1]:8000"] {
            assert!(is_local(url), "{url}");
        }
        for url in ["https://ops.example.com", "http://127.0.0.1.example.com:80"] {
            assert!(!is_local(url), "{url}");
        }
    }
}
