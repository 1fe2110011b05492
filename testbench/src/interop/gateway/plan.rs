//! The legs: each runs one client, one upstream and the features that both have.

use super::peers::{CLIENTS, Peer, Transport, UPSTREAMS};
use super::rows::{Cell, ROWS};
use super::versions::Version;

/// Processes of one run, and the functions of the client script that it runs.
#[derive(Debug)]
pub(super) struct Leg {
    pub(super) versions: (Version, Version),
    pub(super) client: &'static Peer,
    pub(super) upstream: &'static Peer,
    /// Transports of the client and of the upstream.
    pub(super) transports: (Transport, Transport),
    pub(super) drivers: Vec<&'static str>,
}

impl Leg {
    /// Whether the gateway finds the protocol version of the upstream by itself, because it is the
    /// newest one that both speak.
    pub(super) fn is_detected(&self) -> bool {
        let version = self.versions.1;
        let newest = Version::ALL.into_iter().rfind(|it| self.upstream.speaks(*it));
        newest == Some(version)
    }
}

/// Which pairs and packages run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice<'a> {
    pub(super) short: bool,
    /// Parts of `CLIENT > UPSTREAM` versions, all of which a pair must contain.
    pub(super) pairs: &'a [String],
}

/// The pairs of a short run. Each version is once a client and once an upstream.
const SHORT: [(Version, Version); 5] = [
    (Version::V24, Version::V26),
    (Version::V503, Version::V511),
    (Version::V506, Version::V24),
    (Version::V511, Version::V506),
    (Version::V26, Version::V503),
];

/// Returns the legs of the chosen pairs.
pub(super) fn legs(choice: Choice<'_>) -> Vec<Leg> {
    let pairs = Version::ALL.iter().flat_map(|client| Version::ALL.map(|it| (*client, it)));
    let chosen = pairs.filter(|pair| {
        let name = format!("{} > {}", pair.0.name(), pair.1.name());
        (!choice.short || SHORT.contains(pair))
            && choice.pairs.iter().all(|part| name.contains(part.as_str()))
    });
    chosen.flat_map(|(client, upstream)| pair(client, upstream, choice.short)).collect()
}

/// The legs of a pair: one for each combination of packages, and one more with tasks.
fn pair(client: Version, upstream: Version, short: bool) -> Vec<Leg> {
    let mut legs: Vec<Leg> = Vec::new();
    let works = ROWS.iter().filter(|row| matches!(row.cell(client, upstream), Cell::Works(_)));
    for &driver in works.flat_map(|row| row.drivers(upstream)) {
        let of_client = player(CLIENTS, client, driver, upstream.index(), short);
        let of_upstream = player(UPSTREAMS, upstream, driver, client.index(), short);
        let (Some(of_client), Some(of_upstream)) = (of_client, of_upstream) else { continue };
        let is_same = |leg: &&mut Leg| {
            (leg.client.code, leg.upstream.code) == (of_client.code, of_upstream.code)
                && is_of_tasks(leg.drivers[0]) == is_of_tasks(driver)
        };
        let found = legs.iter_mut().find(is_same);
        match found {
            Some(leg) if leg.drivers.contains(&driver) => {}
            Some(leg) => leg.drivers.push(driver),
            None => legs.push(Leg {
                versions: (client, upstream),
                client: of_client,
                upstream: of_upstream,
                transports: (
                    nth(of_client.transports(client), upstream.index()),
                    nth(of_upstream.transports(upstream), client.index()),
                ),
                drivers: vec![driver],
            }),
        }
    }
    legs
}

/// Whether a client declares tasks for a function of its script. With tasks, its other calls may
/// become tasks too, so they have a leg of their own.
fn is_of_tasks(driver: &str) -> bool {
    ["task", "task_input", "partials", "hosted"].contains(&driver)
}

/// Returns the package that plays one side. The order of the packages differs between the pairs of
/// a version, so that each package meets several others.
fn player(
    peers: &'static [Peer],
    version: Version,
    driver: &str,
    offset: usize,
    short: bool,
) -> Option<&'static Peer> {
    let (outlive, others): (Vec<&Peer>, Vec<&Peer>) =
        peers.iter().filter(|peer| peer.speaks(version)).partition(|peer| peer.is_outlive());
    let mut others: Vec<&Peer> =
        others.into_iter().filter(|peer| !short || peer.is_short()).collect();
    if !others.is_empty() {
        let first = offset % others.len();
        others.rotate_left(first);
    }
    others.into_iter().chain(outlive).find(|peer| peer.has(driver, version))
}

fn nth(transports: &'static [Transport], number: usize) -> Transport {
    transports[number % transports.len()]
}

impl std::fmt::Display for Leg {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { versions, client, upstream, transports, .. } = self;
        let (of_client, of_upstream) = (versions.0.name(), versions.1.name());
        write!(f, "{of_client} > {of_upstream}: {} over {}", client.name, transports.0.name())?;
        write!(f, ", then {} over {}", upstream.name, transports.1.name())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{CLIENTS, Cell, Choice, ROWS, UPSTREAMS, Version, legs};

    #[test]
    fn every_working_cell_has_a_leg() {
        let legs = legs(Choice { short: false, pairs: &[] });
        for client in Version::ALL {
            for upstream in Version::ALL {
                let works = |row: &&super::super::rows::Row| {
                    matches!(row.cell(client, upstream), Cell::Works(_))
                };
                for driver in ROWS.iter().filter(works).flat_map(|row| row.drivers(upstream)) {
                    let mut of_pair = legs.iter().filter(|leg| leg.versions == (client, upstream));
                    assert!(
                        of_pair.any(|leg| leg.drivers.contains(driver)),
                        "{driver}, {} > {}",
                        client.name(),
                        upstream.name()
                    );
                }
            }
        }
    }

    #[test]
    fn every_package_plays_in_a_full_run() {
        let legs = legs(Choice { short: false, pairs: &[] });
        let clients: BTreeSet<&str> = legs.iter().map(|leg| leg.client.code).collect();
        let upstreams: BTreeSet<&str> = legs.iter().map(|leg| leg.upstream.code).collect();
        assert_eq!(clients.len(), CLIENTS.len(), "{clients:?}");
        assert_eq!(upstreams.len(), UPSTREAMS.len(), "{upstreams:?}");
    }

    #[test]
    fn short_run_has_every_version_on_both_sides() {
        let legs = legs(Choice { short: true, pairs: &[] });
        for version in Version::ALL {
            assert!(legs.iter().any(|leg| leg.versions.0 == version));
            assert!(legs.iter().any(|leg| leg.versions.1 == version));
        }
        assert!(legs.iter().all(|leg| leg.client.is_short() && leg.upstream.is_short()));
    }
}
