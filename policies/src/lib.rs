//! Expert-cache policies and the cache that an engine links.
