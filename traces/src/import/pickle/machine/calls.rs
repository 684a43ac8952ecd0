//! What a pickle calls: the few functions by which tensors and arrays are rebuilt. None is run;
//! each leaves a record of its arguments.

use super::{Machine, Step};
use crate::import::element::Element;
use crate::import::pickle::contents::{Name, Object, Value};

impl Machine {
    fn tuple(&self, value: Value) -> Step<Box<[Value]>> {
        match self.pickle.object(value) {
            // A call's arguments are few.
            Some(Object::Tuple(values)) if values.len() <= 64 => Ok(values.clone()),
            _ => Err("a tuple was expected".to_owned()),
        }
    }

    /// A tuple of sizes.
    fn extent(&self, value: Value) -> Step<Box<[u64]>> {
        let size = |value: &Value| match value {
            Value::Int(int) => u64::try_from(*int).ok(),
            _ => None,
        };
        let sizes: Option<Box<[u64]>> = self.tuple(value)?.iter().map(size).collect();
        sizes.ok_or_else(|| "a size that is no whole number".to_owned())
    }

    /// `("storage", type, key, location, count)`: the location (`cuda:0`) does not matter here.
    pub(super) fn persistent(&mut self) -> Step<()> {
        let id = self.pop()?;
        let id = self.tuple(id)?;
        let (Some(&Value::Name(Name::Storage(element))), Some(&Value::Text(start, len))) =
            (id.get(1), id.get(2))
        else {
            return Err("a persistent id that is no storage".to_owned());
        };
        self.make(Object::Storage { element, key: (start, len) }, 0)
    }

    pub(super) fn reduce(&mut self) -> Step<()> {
        let arguments = self.pop()?;
        let arguments = self.tuple(arguments)?;
        let Value::Name(name) = self.pop()? else {
            return Err("a call of what is no name".to_owned());
        };
        match (name, &arguments[..]) {
            (Name::OrderedDict, []) => self.make(Object::Dict(Vec::new()), 0),
            (Name::RebuildTensor, [storage, Value::Int(offset), shape, strides, ..]) => {
                let storage = match (storage, self.pickle.object(*storage)) {
                    (Value::Object(index), Some(Object::Storage { .. })) => *index,
                    _ => return Err("a tensor without a storage".to_owned()),
                };
                let offset = u64::try_from(*offset).map_err(|_| "a negative offset")?;
                let (shape, strides) = (self.extent(*shape)?, self.extent(*strides)?);
                if shape.len() != strides.len() {
                    return Err("a tensor with more or fewer strides than sizes".to_owned());
                }
                let values = 2 * shape.len();
                self.make(Object::Tensor { storage, offset, shape, strides }, values)
            }
            (Name::Reconstruct, [Value::Name(Name::NdArray), ..]) => {
                let shape = Box::new([]);
                self.make(Object::Array { element: Element::U8, shape, data: Value::None }, 0)
            }
            (Name::NumpyDtype, [code, ..]) => {
                let code = self.pickle.name(*code).unwrap_or_default();
                let element =
                    Element::of_numpy(code).ok_or_else(|| format!("an array of {code:?}"))?;
                self.make(Object::Dtype { element, little: true }, 0)
            }
            (Name::Encode, [Value::Text(start, len), ..]) => self.push(Value::Latin1(*start, *len)),
            _ => Err(format!("a call of {name:?} with other arguments than data have")),
        }
    }

    pub(super) fn build(&mut self) -> Step<()> {
        let state = self.pop()?;
        let state = self.tuple(state)?;
        let target = self.target()?;
        match (&self.pickle.objects[target], &state[..]) {
            (&Object::Dtype { element, .. }, [_, order, ..]) => {
                let little = self.pickle.name(*order) != Some(">");
                self.pickle.objects[target] = Object::Dtype { element, little };
                Ok(())
            }
            (Object::Array { .. }, [_, shape, dtype, fortran, data]) => {
                let element = match self.pickle.object(*dtype) {
                    Some(&Object::Dtype { element, little: true }) => element,
                    _ => return Err("an array that is not little-endian".to_owned()),
                };
                if *fortran != Value::Bool(false) {
                    return Err("an array in Fortran order".to_owned());
                }
                let (shape, data) = (self.extent(*shape)?, *data);
                self.charge(size_of_val(&*shape))?;
                self.pickle.objects[target] = Object::Array { element, shape, data };
                Ok(())
            }
            _ => Err("state is set of what has none".to_owned()),
        }
    }
}

/// The known names; all others are refused.
pub(super) fn find(module: &str, name: &str) -> Step<Name> {
    Ok(match (module, name) {
        ("collections", "OrderedDict") => Name::OrderedDict,
        ("torch", "ByteStorage") => Name::Storage(Element::U8),
        ("torch", "BoolStorage") => Name::Storage(Element::Bool),
        ("torch", "CharStorage") => Name::Storage(Element::I8),
        ("torch", "ShortStorage") => Name::Storage(Element::I16),
        ("torch", "IntStorage") => Name::Storage(Element::I32),
        ("torch", "LongStorage") => Name::Storage(Element::I64),
        ("torch", "HalfStorage") => Name::Storage(Element::F16),
        ("torch", "BFloat16Storage") => Name::Storage(Element::Bf16),
        ("torch", "FloatStorage") => Name::Storage(Element::F32),
        ("torch", "DoubleStorage") => Name::Storage(Element::F64),
        ("torch._utils", "_rebuild_tensor_v2") => Name::RebuildTensor,
        ("numpy", "ndarray") => Name::NdArray,
        ("numpy", "dtype") => Name::NumpyDtype,
        ("numpy._core.multiarray" | "numpy.core.multiarray", "_reconstruct") => Name::Reconstruct,
        ("_codecs", "encode") => Name::Encode,
        _ => {
            return Err(format!(
                "names {}.{}, which is not on the list of what data need; nothing in it is run",
                module.escape_debug(),
                name.escape_debug()
            ));
        }
    })
}
