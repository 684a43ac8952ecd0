//! What moving an expert costs.
