//! Helpers of the tests of `outlive-auth` and `outlive-auth-proxy`.

pub(crate) mod clock; // a manual clock
pub(crate) mod site; // a scripted web server
