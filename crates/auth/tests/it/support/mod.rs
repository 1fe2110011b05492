//! Helpers of the tests of `outlive-auth` and `outlive-auth-proxy`.

pub(crate) mod clock; // a clock that stands until it is moved
pub(crate) mod site; // a web server that does what a function says
