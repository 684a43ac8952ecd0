//! hotset: replay MoE router traces through a real expert cache and price every miss.
