//! The codecs of each era. A new era is one folder and one arm in each of these functions.

use super::{
    client::ClientCodec,
    legacy::{LegacyClientCodec, LegacyCodec},
    modern::{ModernClientCodec, ModernCodec},
    server_codec::ServerCodec,
};
use crate::Era;

/// Returns the codec of an era, on the server's side.
pub fn codec(era: Era) -> &'static dyn ServerCodec {
    match era {
        Era::Legacy => &LegacyCodec,
        Era::Modern => &ModernCodec,
    }
}

/// Returns the codec of an era, on the client's side.
pub fn client_codec(era: Era) -> &'static dyn ClientCodec {
    match era {
        Era::Legacy => &LegacyClientCodec,
        Era::Modern => &ModernClientCodec,
    }
}
