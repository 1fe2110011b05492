//! The size limit of delivered results.

use crate::server::hosts::limits::HostLimits;

/// Bytes that count as one token. Text has about four; source code, numbers and base64 have fewer,
/// and a result over the host's limit is lost.
const BYTES_PER_TOKEN: usize = 2;

/// Size limit of delivered results. The server cuts a larger result and stores it whole.
///
/// The server cuts only results for clients without tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Results(Limit);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    ByHost,
    Bytes(usize),
    All,
}

impl Results {
    /// Limits results to the tokens of their host, at two bytes per token.
    pub const fn by_host() -> Self {
        Self(Limit::ByHost)
    }

    /// Limits results to this number of bytes, for every host.
    pub const fn bytes(bytes: usize) -> Self {
        Self(Limit::Bytes(bytes))
    }

    /// Never cuts a result.
    pub const fn all() -> Self {
        Self(Limit::All)
    }

    /// Returns the maximum bytes of a delivered result; `None` if it is never cut. `max_inline` is
    /// the limit of the tool and replaces every other limit, except [`Results::all`].
    pub(crate) fn max_bytes(self, host: &HostLimits, max_inline: Option<usize>) -> Option<usize> {
        match (self.0, max_inline) {
            (Limit::All, _) => None,
            (_, Some(bytes)) | (Limit::Bytes(bytes), None) => Some(bytes),
            (Limit::ByHost, None) => {
                host.result_tokens.map(|tokens| tokens.saturating_mul(BYTES_PER_TOKEN))
            }
        }
    }
}

impl Default for Results {
    fn default() -> Self {
        Self::by_host()
    }
}

#[cfg(test)]
mod tests {
    use super::Results;
    use crate::server::hosts::{
        Hosts,
        client::{Client, Transport},
    };

    #[test]
    fn limit_of_result_depends_on_setting_host_and_tool() {
        let limits = |name| Hosts::known().limits(&Client::new(name, "1", Transport::Stdio));
        let (other, outlive) = (limits("acme"), limits("outlive"));
        assert_eq!(Results::by_host().max_bytes(&other, None), Some(40_000));
        assert_eq!(Results::by_host().max_bytes(&outlive, None), None);
        assert_eq!(Results::by_host().max_bytes(&other, Some(200 << 10)), Some(200 << 10));
        assert_eq!(Results::bytes(64 << 10).max_bytes(&outlive, None), Some(64 << 10));
        assert_eq!(Results::bytes(64 << 10).max_bytes(&other, Some(7)), Some(7));
        assert_eq!(Results::all().max_bytes(&other, Some(7)), None);
    }
}
