//! Why a policy or an admission could not be had by its name.

use thiserror::Error;

use super::suggestion;

/// Why a policy's name and parameters could not be read, or the policy not be built.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PolicyError {
    /// No policy has this name.
    #[error("there is no policy '{name}'{}", suggestion(*.near))]
    Unknown {
        /// The name given.
        name: String,
        /// The policy whose name is most like it.
        near: Option<&'static str>,
    },
    /// No admission has this name.
    #[error("there is no admission '{name}'{}", suggestion(*.near))]
    UnknownAdmission {
        /// The name given.
        name: String,
        /// The admission whose name is most like it.
        near: Option<&'static str>,
    },
    /// Its parameters are wrong.
    #[error("policy '{policy}': {reason}")]
    Parameters {
        /// The policy.
        policy: &'static str,
        /// Which parameter and why.
        reason: String,
    },
    /// Its state would take more memory than is allowed; nothing was allocated for it.
    #[error("policy '{policy}' would take {bytes} bytes of memory, but may take {limit}")]
    TooLarge {
        /// The policy.
        policy: &'static str,
        /// Bytes that its state would take.
        bytes: u64,
        /// Bytes that it may take.
        limit: u64,
    },
}
