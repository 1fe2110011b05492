//! [`Receipt`]: a callback for the delivery of a call's response.

use std::fmt;

/// A callback for the delivery of a call's response.
///
/// The transport calls [`Receipt::delivered`] after it has written the response. A receipt that is
/// dropped means that the response was not written.
pub struct Receipt(Box<dyn FnOnce() + Send + Sync>);

impl Receipt {
    /// Creates a receipt that runs `callback` on delivery. The callback must not block.
    pub fn new(callback: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self(Box::new(callback))
    }

    /// Reports that the response was written to the connection of the client.
    pub fn delivered(self) {
        (self.0)();
    }
}

impl fmt::Debug for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Receipt")
    }
}
