//! `hotset.Trace`: opened, made of arrays, given as arrays.

use std::path::PathBuf;

use hotset_traces::{
    Codec, IdColumn, LayerShape, LentIds, LentWeights, Phase, Sequence, Shape, TraceBuilder,
    WeightColumn, write_hst,
};
use numpy::{PyArray1, PyArrayDyn, PyReadonlyArray1, ToPyArray};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::lend;
use crate::errors::refused;

/// A router trace: which experts each token used in each layer, in the order in which a model ran it.
///
/// Immutable, shared by reference, checked in full when it is made. Columns come as new arrays.
#[pyclass(frozen, module = "hotset._native", subclass, from_py_object)]
#[derive(Clone)]
pub struct Trace {
    inner: hotset_traces::Trace,
}

impl Trace {
    /// Of the library's.
    pub fn of(inner: hotset_traces::Trace) -> Self {
        Self { inner }
    }

    /// The library's, at no cost.
    pub fn shared(&self) -> hotset_traces::Trace {
        self.inner.clone()
    }
}

/// Id, label, prompt tokens, first row, row behind the last.
type SequenceOf = (u32, String, u32, usize, usize);

/// What a trace is made of beside its ids.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Columns<'py> {
    name: String,
    numbers: Vec<u32>,
    experts: Vec<u32>,
    top_k: Vec<u32>,
    expert_bytes: Vec<u64>,
    sequences: Option<Vec<SequenceOf>>,
    positions: Option<PyReadonlyArray1<'py, u32>>,
    phases: Option<PyReadonlyArray1<'py, u8>>,
    steps: Option<PyReadonlyArray1<'py, u32>>,
    token_ids: Option<PyReadonlyArray1<'py, u32>>,
    bf16: bool,
    provenance: String,
}

impl Columns<'_> {
    fn shape(&self) -> PyResult<Shape> {
        let layers = self.numbers.iter().enumerate().map(|(index, &number)| LayerShape {
            number,
            experts: self.experts[index],
            top_k: self.top_k[index],
            expert_bytes: self.expert_bytes[index],
        });
        let given = [self.experts.len(), self.top_k.len(), self.expert_bytes.len()];
        if given.iter().any(|&given| given != self.numbers.len()) {
            return Err(refused("experts, top_k and expert_bytes need one entry for each layer"));
        }
        Shape::new(layers.collect()).map_err(refused)
    }
}

fn lent_ids(ids: &Bound<'_, PyAny>) -> PyResult<LentIds> {
    if let Ok(array) = ids.cast::<PyArrayDyn<u8>>() {
        return Ok(LentIds::U8(lend(array)?));
    }
    match ids.cast::<PyArrayDyn<u16>>() {
        Ok(array) => Ok(LentIds::U16(lend(array)?)),
        Err(_) => Err(PyTypeError::new_err("ids: give an array of uint8 or uint16")),
    }
}

fn lent_weights(weights: &Bound<'_, PyAny>, bf16: bool) -> PyResult<LentWeights> {
    if let Ok(array) = weights.cast::<PyArrayDyn<f32>>() {
        return Ok(LentWeights::F32(lend(array)?));
    }
    if let Ok(array) = weights.cast::<PyArrayDyn<u8>>() {
        return Ok(LentWeights::U8(lend(array)?));
    }
    match weights.cast::<PyArrayDyn<u16>>() {
        Ok(array) if bf16 => Ok(LentWeights::Bf16(lend(array)?)),
        Ok(array) => Ok(LentWeights::F16(lend(array)?)),
        Err(_) => Err(PyTypeError::new_err(
            "weights: give an array of float32, float16 or uint8 (255 is 1.0)",
        )),
    }
}

#[pymethods]
impl Trace {
    /// An .hst file, read in place where it is large.
    #[staticmethod]
    fn _open(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| hotset_traces::Trace::open(&path)).map(Self::of).map_err(refused)
    }

    /// The trace that comes with the program.
    #[staticmethod]
    fn _bundled(py: Python<'_>) -> PyResult<Self> {
        py.detach(hotset_traces::bundled).map(Self::of).map_err(refused)
    }

    /// Of arrays that are read in place.
    #[staticmethod]
    fn _of_arrays(
        py: Python<'_>,
        ids: &Bound<'_, PyAny>,
        weights: Option<&Bound<'_, PyAny>>,
        columns: Columns<'_>,
    ) -> PyResult<Self> {
        let shape = columns.shape()?;
        let name = columns.name.clone();
        let mut builder = TraceBuilder::over(name, shape, lent_ids(ids)?).map_err(refused)?;
        if let Some(weights) = weights {
            builder =
                builder.weights_over(lent_weights(weights, columns.bf16)?).map_err(refused)?;
        }
        if let Some(sequences) = columns.sequences {
            let of = |(id, label, prompt_tokens, start, end)| Sequence {
                id,
                label,
                document: None,
                prompt_tokens,
                has_repetition: None,
                rows: start..end,
            };
            builder = builder.sequences(sequences.into_iter().map(of).collect());
        }
        if let Some(positions) = columns.positions {
            builder = builder.positions(positions.as_array().to_vec());
        }
        if let Some(phases) = columns.phases {
            builder = builder.phases(phases.as_array().to_vec());
        }
        if let Some(steps) = columns.steps {
            builder = builder.steps(steps.as_array().to_vec());
        }
        if let Some(token_ids) = columns.token_ids {
            builder = builder.token_ids(token_ids.as_array().to_vec());
        }
        let builder = builder.provenance(columns.provenance);
        py.detach(|| builder.build()).map(Self::of).map_err(refused)
    }

    /// Writes an .hst file, whole or not at all; zstd: a level from 1 to 19.
    #[pyo3(signature = (path, zstd = None))]
    fn _save(&self, py: Python<'_>, path: PathBuf, zstd: Option<i32>) -> PyResult<()> {
        let codec = zstd.map_or(Codec::Raw, Codec::Zstd);
        py.detach(|| write_hst(&self.inner, &path, codec)).map(|_| ()).map_err(refused)
    }

    /// Its name, for people.
    #[getter]
    fn name(&self) -> &str {
        self.inner.name()
    }

    /// The routing alone as 32 hexadecimal digits of BLAKE3.
    #[getter]
    fn digest(&self) -> &str {
        self.inner.digest()
    }

    /// Everything that a replay can see as 32 hexadecimal digits of BLAKE3.
    #[getter]
    fn content_digest(&self) -> &str {
        self.inner.content_digest()
    }

    /// How it was made, as JSON text.
    #[getter]
    fn provenance(&self) -> &str {
        self.inner.provenance()
    }

    /// How many tokens there are.
    #[getter]
    fn tokens(&self) -> usize {
        self.inner.tokens()
    }

    /// The MoE layers: a dict each, with number, experts, top_k and expert_bytes (0: not recorded).
    #[getter]
    fn layers<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let layers = self.inner.shape().layers().iter();
        let described = layers.map(|layer| {
            let described = PyDict::new(py);
            described.set_item("number", layer.number)?;
            described.set_item("experts", layer.experts)?;
            described.set_item("top_k", layer.top_k)?;
            described.set_item("expert_bytes", layer.expert_bytes)?;
            Ok(described)
        });
        described.collect()
    }

    /// The sequences: a dict each, with id, label, prompt_tokens, start and end (rows).
    #[getter]
    fn sequences<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let described = self.inner.sequences().iter().map(|sequence| {
            let described = PyDict::new(py);
            described.set_item("id", sequence.id)?;
            described.set_item("label", &sequence.label)?;
            described.set_item("prompt_tokens", sequence.prompt_tokens)?;
            described.set_item("start", sequence.rows.start)?;
            described.set_item("end", sequence.rows.end)?;
            Ok(described)
        });
        described.collect()
    }

    /// Expert ids of rows first to last, flat: uint8 or uint16.
    fn _ids<'py>(&self, py: Python<'py>, first: usize, last: usize) -> PyResult<Bound<'py, PyAny>> {
        if first > last || last > self.inner.tokens() {
            return Err(refused(format!("rows {first}..{last} of {}", self.inner.tokens())));
        }
        let row = self.inner.shape().row_len();
        Ok(match self.inner.ids().slice(first * row..last * row) {
            IdColumn::U8(ids) => ids.to_pyarray(py).into_any(),
            IdColumn::U16(ids) => ids.to_pyarray(py).into_any(),
        })
    }

    /// Router weights, flat: float32, or None where none were recorded.
    fn _weights<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<f32>>> {
        let weights = self.inner.weights()?;
        if let WeightColumn::F32(weights) = weights {
            return Some(weights.to_pyarray(py));
        }
        let widened: Vec<f32> = (0..weights.len()).map(|index| weights.get(index)).collect();
        Some(widened.to_pyarray(py))
    }

    /// The sequence of each token, uint32 [tokens], counted from 0.
    #[getter]
    fn sequence<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        self.inner.sequence_column().to_pyarray(py)
    }

    /// Each token's position in its sequence, uint32 [tokens].
    #[getter]
    fn position<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        self.inner.positions().to_pyarray(py)
    }

    /// Each token's phase, uint8 [tokens]: 0 prefill, 1 decode, 2 verify.
    #[getter]
    fn phase<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u8>> {
        self.inner.phases().to_pyarray(py)
    }

    /// The engine's step of each token, uint32 [tokens], or None.
    #[getter]
    fn step<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<u32>>> {
        self.inner.steps().map(|steps| steps.to_pyarray(py))
    }

    /// Vocabulary ids, uint32 [tokens], or None.
    #[getter]
    fn token_id<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<u32>>> {
        self.inner.token_ids().map(|ids| ids.to_pyarray(py))
    }

    /// validate(): checks every value and both digests again.
    fn validate(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.inner.validate()).map_err(refused)
    }

    /// Where the ids begin in memory: for tests that nothing was copied.
    fn _address(&self) -> usize {
        match self.inner.ids() {
            IdColumn::U8(ids) => ids.as_ptr() as usize,
            IdColumn::U16(ids) => ids.as_ptr() as usize,
        }
    }

    fn __len__(&self) -> usize {
        self.inner.tokens()
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.inner == other.inner
    }

    fn __hash__(&self) -> u64 {
        let digits = self.inner.content_digest().get(..16).unwrap_or_default();
        u64::from_str_radix(digits, 16).unwrap_or(0)
    }

    fn __repr__(&self) -> String {
        let (trace, layers) = (&self.inner, self.inner.shape().layers().len());
        let phases = Phase::ALL.iter().filter(|&&p| trace.phases().contains(&(p as u8)));
        let phases: Vec<&str> = phases.map(|phase| phase.name()).collect();
        format!(
            "Trace('{}', {} tokens, {layers} layers, {}, digest {})",
            trace.name(),
            trace.tokens(),
            phases.join("+"),
            trace.digest()
        )
    }
}
