//! Arguments, results and schemas of tools.
