//! Lists, page by page.
