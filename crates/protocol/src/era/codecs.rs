//! The codecs of each era. A new era is one folder and one arm in each of these functions.

use super::{
    client::ClientCodec,
    legacy::{LegacyClientCodec, LegacyCodec},
    modern::{ModernClientCodec, ModernCodec},
    server_codec::ServerCodec,
};
use crate::Era;

/// Returns the server-side codec of an era.
pub fn codec(era: Era) -> &'static dyn ServerCodec {
    match era {
        Era::Legacy => &LegacyCodec,
        Era::Modern => &ModernCodec,
    }
}

/// Returns the client-side codec of an era.
pub fn client_codec(era: Era) -> &'static dyn ClientCodec {
    match era {
        Era::Legacy => &LegacyClientCodec,
        Era::Modern => &ModernClientCodec,
    }
}
