//! Contents, templates, subscriptions.
