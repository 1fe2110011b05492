//! Own methods, notifications, extensions, layers, transports.
