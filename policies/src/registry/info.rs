//! What people are told of a policy, a predictor, an admission or a miss handler.

use serde::{Serialize, Serializer, ser::SerializeStruct as _};

/// One parameter of something that is chosen by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Parameter {
    /// Its key in `name:key=value`.
    pub name: &'static str,
    /// Its value where none is given.
    pub default: &'static str,
    /// What it means, with its unit and range.
    pub meaning: &'static str,
}

/// The description of something that is chosen by name; `N` is what it needs of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Info<N> {
    /// The name on the command line and in results.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// The rule, exactly enough to be written again from it.
    pub definition: &'static str,
    /// Paper or system.
    pub source: &'static str,
    /// What it needs.
    pub needs: N,
    /// Its parameters.
    pub parameters: &'static [Parameter],
}

/// What something that is chosen by name may need beside the experts of each event.
pub trait Needs {
    /// Whether the kind has needs at all; a description without them leaves the field out.
    const STATED: bool = true;
}

/// The needs of a kind that has none: every event tells it enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct NoNeeds;

impl Needs for NoNeeds {
    const STATED: bool = false;
}

/// What a policy needs beside the experts that each event asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Need {
    /// Nothing.
    Nothing,
    /// The router's weights.
    Weights,
    /// The prompts' embeddings, for profiles that whoever drives the policy makes.
    Embeddings,
    /// The rest of the trace: a bound, not something that an engine could run.
    Future,
    /// Counts from a part of the trace that it is not tested on.
    Training,
}

impl Needs for Need {}

/// The description of an eviction policy.
pub type PolicyInfo = Info<Need>;

impl<N: Needs + Serialize> Serialize for Info<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = 5 + usize::from(N::STATED);
        let mut info = serializer.serialize_struct("Info", fields)?;
        info.serialize_field("name", self.name)?;
        info.serialize_field("summary", self.summary)?;
        info.serialize_field("definition", self.definition)?;
        info.serialize_field("source", self.source)?;
        if N::STATED {
            info.serialize_field("needs", &self.needs)?;
        }
        info.serialize_field("parameters", self.parameters)?;
        info.end()
    }
}
