//! What people are told of an admission.

use crate::registry::{Info, NoNeeds};

/// The description of an admission, which needs nothing but the events.
pub type AdmissionInfo = Info<NoNeeds>;
