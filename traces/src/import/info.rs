//! What an importer says of itself: its name, how to tell its files, and how to read them.

use serde::Serialize;

use super::collect::Collector;
use super::input::Input;
use super::sniff::Sniff;
use crate::error::Result;

/// What the registry knows of a format.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct FormatInfo {
    /// The name for `--from`.
    pub name: &'static str,
    /// What it is, in one line.
    pub description: &'static str,
    /// The trace columns that it gives, where its input has them.
    pub columns: &'static [&'static str],
    /// Endings of the files that are taken from a folder.
    #[serde(skip)]
    pub(super) extensions: &'static [&'static str],
    /// Whether it takes `ImportOptions::prompt_tokens`.
    #[serde(skip)]
    pub(super) takes_prompt_tokens: bool,
    /// Whether a file is of this format, by its beginning.
    #[serde(skip)]
    pub(super) recognise: Recognise,
    /// Who mutates its samples.
    #[serde(skip)]
    pub(crate) fuzz: FuzzTarget,
    #[serde(skip)]
    pub(super) importer: Importer,
}

/// How an importer takes its inputs.
#[derive(Debug, Clone, Copy)]
pub(super) enum Importer {
    /// One after another; a folder stands for the files in it.
    Each(fn(&Input<'_>, &mut Collector<'_>) -> Result<()>),
    /// All at once: they are parts of one recording.
    All(fn(&[Input<'_>], &mut Collector<'_>) -> Result<()>),
    /// All at once, folders as they are: the importer says which of their files it reads.
    Parts(fn(&[Input<'_>], &mut Collector<'_>) -> Result<()>),
    /// One after another, each a folder.
    Folder(fn(&Input<'_>, &mut Collector<'_>) -> Result<()>),
}

/// Whether a file is of a format. An error is given where the file is of the format's kind and
/// cannot be read: people are told it where no other format claims the file.
pub(super) type Recognise = fn(&Sniff<'_>) -> Result<Claim>;

/// How sure a format is of a file; the surest gets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Claim {
    /// It is another's.
    No,
    /// It can be read so, and nothing in it says that it is meant so.
    Possible,
    /// It has the form of a syntax that many programs write, and a format of one program's own may
    /// have it too.
    Form,
    /// It has the names or the form that this format has, and others have too.
    Likely,
    /// It has what this format alone has.
    Sure,
}

impl Claim {
    /// This claim where a condition holds.
    pub(super) fn when(self, condition: bool) -> Result<Self> {
        Ok(if condition { self } else { Self::No })
    }
}

/// The fuzzing target that mutates a format's samples: each has a list made from the registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FuzzTarget {
    /// JSON and JSON lines.
    Json,
    /// CSV and other text.
    Lines,
    /// Columns by their names, in JSON and in text.
    Columns,
    /// NumPy arrays.
    Npy,
    /// The pickle in a `.pt` file.
    Unpickler,
    /// safetensors.
    Safetensors,
    /// GGUF.
    Gguf,
    /// Any other single file.
    Binary,
    /// Folders: mutated by the test alone.
    None,
}

impl FuzzTarget {
    /// Every target that has a program in `fuzz/fuzz_targets`.
    pub const ALL: [Self; 8] = [
        Self::Json,
        Self::Lines,
        Self::Columns,
        Self::Npy,
        Self::Unpickler,
        Self::Safetensors,
        Self::Gguf,
        Self::Binary,
    ];

    /// The name of its program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Lines => "lines",
            Self::Columns => "columns",
            Self::Npy => "npy",
            Self::Unpickler => "unpickler",
            Self::Safetensors => "safetensors",
            Self::Gguf => "gguf",
            Self::Binary => "binary",
            Self::None => "none",
        }
    }
}

/// Why Parquet is not read.
#[cfg(not(feature = "parquet"))]
pub(super) const NO_PARQUET: &str =
    "this build reads no Parquet: build hotset with --features parquet";
