//! Search over tools: BM25 over names, titles, descriptions and argument names.

mod bm25;

pub(crate) use bm25::Index;
