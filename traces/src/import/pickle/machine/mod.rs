//! The machine that a pickle is a program for: a stack, marks in it, and a memo.

mod calls;

use super::contents::{Object, Pickle, Value};
use super::ops as op;

/// Values on the stack: Python writes at most a thousand of a list at a time.
const MAX_STACK: usize = 1 << 18;

/// The stack machine that a pickle is a program for.
pub(super) struct Machine {
    pickle: Pickle,
    at: usize,
    stack: Vec<Value>,
    marks: Vec<usize>,
    memo: Vec<Value>,
    budget: u64,
}

type Step<T> = Result<T, String>;

impl Machine {
    pub(super) fn new(pickle: Pickle, budget: u64) -> Self {
        Self { pickle, at: 0, stack: Vec::new(), marks: Vec::new(), memo: Vec::new(), budget }
    }

    pub(super) fn into_pickle(self) -> Pickle {
        self.pickle
    }

    /// The byte that comes next.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Runs to the end; answers the value that is left.
    pub(super) fn run(&mut self) -> Step<Value> {
        if self.byte()? != op::PROTO || !(2..=5).contains(&self.byte()?) {
            return Err("not a pickle of protocol 2 to 5".to_owned());
        }
        loop {
            let code = self.byte()?;
            if code == op::STOP {
                return self.pop();
            }
            self.step(code)?;
            if self.stack.len() > MAX_STACK || self.marks.len() > MAX_STACK {
                return Err(format!("over {MAX_STACK} values on the stack"));
            }
        }
    }

    fn step(&mut self, code: u8) -> Step<()> {
        match code {
            op::FRAME => drop(self.take(8)?),
            op::MARK => self.marks.push(self.stack.len()),
            op::POP => drop(self.pop()?),
            op::POP_MARK => drop(self.since_mark()?),
            op::DUP => {
                let top = self.top()?;
                self.push(top)?;
            }
            op::NONE => self.push(Value::None)?,
            op::NEWTRUE => self.push(Value::Bool(true))?,
            op::NEWFALSE => self.push(Value::Bool(false))?,
            op::BININT1 => {
                let int = self.byte()?;
                self.push(Value::Int(int.into()))?;
            }
            op::BININT2 => {
                let int = self.uint(2)?;
                self.push(Value::Int(int as i64))?;
            }
            op::BININT => {
                let int = self.uint(4)? as u32 as i32;
                self.push(Value::Int(int.into()))?;
            }
            op::LONG1 => self.long(1)?,
            op::LONG4 => self.long(4)?,
            op::BINFLOAT => {
                let bytes = self.uint(8)?;
                self.push(Value::Float(f64::from_bits(bytes.swap_bytes())))?;
            }
            op::SHORT_BINUNICODE | op::SHORT_BINSTRING => self.text(1)?,
            op::BINUNICODE | op::BINSTRING => self.text(4)?,
            op::BINUNICODE8 => self.text(8)?,
            op::SHORT_BINBYTES => self.blob(1)?,
            op::BINBYTES => self.blob(4)?,
            op::BINBYTES8 | op::BYTEARRAY8 => self.blob(8)?,
            op::EMPTY_LIST => self.make(Object::List(Vec::new()), 0)?,
            op::EMPTY_DICT => self.make(Object::Dict(Vec::new()), 0)?,
            op::EMPTY_TUPLE => self.make(Object::Tuple(Box::new([])), 0)?,
            op::APPEND => {
                let value = self.pop()?;
                self.append(&[value])?;
            }
            op::APPENDS => {
                let values = self.since_mark()?;
                self.append(&values)?;
            }
            op::SETITEM => {
                let value = self.pop()?;
                let key = self.pop()?;
                self.set(&[key, value])?;
            }
            op::SETITEMS => {
                let values = self.since_mark()?;
                self.set(&values)?;
            }
            op::BINPUT | op::LONG_BINPUT => {
                let index = self.uint(if code == op::BINPUT { 1 } else { 4 })? as usize;
                self.memoize(index)?;
            }
            op::MEMOIZE => self.memoize(self.memo.len())?,
            op::BINGET | op::LONG_BINGET => {
                let index = self.uint(if code == op::BINGET { 1 } else { 4 })? as usize;
                let value = self.memo.get(index).copied();
                self.push(value.ok_or_else(|| format!("memo {index} was never set"))?)?;
            }
            op::GLOBAL => {
                let module = self.line()?;
                let name = self.line()?;
                let name = calls::find(&module, &name)?;
                self.push(Value::Name(name))?;
            }
            op::STACK_GLOBAL => {
                let (name, module) = (self.pop()?, self.pop()?);
                let text = |value| self.pickle.name(value).map(str::to_owned);
                let (Some(module), Some(name)) = (text(module), text(name)) else {
                    return Err("a name that is no text".to_owned());
                };
                self.push(Value::Name(calls::find(&module, &name)?))?;
            }
            op::REDUCE => self.reduce()?,
            op::BUILD => self.build()?,
            op::BINPERSID => self.persistent()?,
            _ => return self.collect(code),
        }
        Ok(())
    }

    /// Opcodes that make a container of what lies on the stack.
    fn collect(&mut self, code: u8) -> Step<()> {
        match code {
            op::TUPLE => {
                let values = self.since_mark()?;
                self.make_tuple(values)?;
            }
            op::TUPLE1 | op::TUPLE2 | op::TUPLE3 => {
                let count = usize::from(code - op::TUPLE1) + 1;
                let from = self.stack.len().checked_sub(count).ok_or("the stack is empty")?;
                let values = self.stack.split_off(from);
                self.make_tuple(values)?;
            }
            op::LIST => {
                let values = self.since_mark()?;
                self.make(Object::List(Vec::new()), 0)?;
                self.append(&values)?;
            }
            op::DICT => {
                let values = self.since_mark()?;
                self.make(Object::Dict(Vec::new()), 0)?;
                self.set(&values)?;
            }
            other => return Err(format!("opcode {other:#04x}, which data never needs")),
        }
        Ok(())
    }

    fn byte(&mut self) -> Step<u8> {
        let byte = self.pickle.bytes.get(self.at).copied().ok_or("it ends too early")?;
        self.at += 1;
        Ok(byte)
    }

    /// The next so many bytes, as start and length.
    fn take(&mut self, len: u64) -> Step<(u32, u32)> {
        let end = (self.at as u64).checked_add(len);
        let end = end.filter(|&end| end <= self.pickle.bytes.len() as u64 && end < 1 << 32);
        let end = end.ok_or_else(|| format!("{len} bytes are stated, it ends before"))?;
        let start = std::mem::replace(&mut self.at, end as usize);
        Ok((start as u32, len as u32))
    }

    fn uint(&mut self, len: usize) -> Step<u64> {
        let (start, len) = self.take(len as u64)?;
        let mut bytes = [0; 8];
        bytes[..len as usize].copy_from_slice(self.pickle.slice(start, len));
        Ok(u64::from_le_bytes(bytes))
    }

    fn line(&mut self) -> Step<String> {
        let rest = &self.pickle.bytes[self.at..];
        let end = rest.iter().take(256).position(|&byte| byte == b'\n');
        let end = end.ok_or("a name without an end")?;
        let line = std::str::from_utf8(&rest[..end]).map_err(|_| "a name that is no text")?;
        let line = line.to_owned();
        self.at += end + 1;
        Ok(line)
    }

    fn long(&mut self, len: usize) -> Step<()> {
        let count = self.uint(len)?;
        if count > 8 {
            return Err(format!("a number of {count} bytes; 8 are enough for any count"));
        }
        let (start, count) = self.take(count)?;
        let bytes = self.pickle.slice(start, count);
        let sign = if bytes.last().is_some_and(|&top| top >= 0x80) { 0xff } else { 0 };
        let mut wide = [sign; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        self.push(Value::Int(i64::from_le_bytes(wide)))
    }

    fn text(&mut self, len: usize) -> Step<()> {
        let count = self.uint(len)?;
        let (start, count) = self.take(count)?;
        self.push(Value::Text(start, count))
    }

    fn blob(&mut self, len: usize) -> Step<()> {
        let count = self.uint(len)?;
        let (start, count) = self.take(count)?;
        self.push(Value::Bytes(start, count))
    }

    fn charge(&mut self, bytes: usize) -> Step<()> {
        self.budget = self
            .budget
            .checked_sub(bytes as u64)
            .ok_or("its objects take more memory than a file of this size explains")?;
        Ok(())
    }

    fn push(&mut self, value: Value) -> Step<()> {
        self.stack.push(value);
        Ok(())
    }

    fn top(&self) -> Step<Value> {
        self.stack.last().copied().ok_or_else(|| "the stack is empty".to_owned())
    }

    fn pop(&mut self) -> Step<Value> {
        if self.marks.last() == Some(&self.stack.len()) {
            return Err("a mark where a value was expected".to_owned());
        }
        self.stack.pop().ok_or_else(|| "the stack is empty".to_owned())
    }

    fn since_mark(&mut self) -> Step<Vec<Value>> {
        let mark = self.marks.pop().ok_or("no mark")?;
        if mark > self.stack.len() {
            return Err("the stack is shorter than its mark".to_owned());
        }
        Ok(self.stack.split_off(mark))
    }

    fn make(&mut self, object: Object, values: usize) -> Step<()> {
        self.charge(3 * size_of::<Object>() + values * size_of::<Value>())?;
        let index = self.pickle.objects.len() as u32;
        self.pickle.objects.push(object);
        self.push(Value::Object(index))
    }

    fn make_tuple(&mut self, values: Vec<Value>) -> Step<()> {
        let count = values.len();
        self.make(Object::Tuple(values.into()), count)
    }

    fn memoize(&mut self, index: usize) -> Step<()> {
        let value = self.top()?;
        match index.cmp(&self.memo.len()) {
            std::cmp::Ordering::Less => self.memo[index] = value,
            std::cmp::Ordering::Equal => {
                self.charge(3 * size_of::<Value>())?;
                self.memo.push(value);
            }
            std::cmp::Ordering::Greater => return Err(format!("memo {index} leaves a gap")),
        }
        Ok(())
    }

    fn target(&mut self) -> Step<usize> {
        match self.top()? {
            Value::Object(index) => Ok(index as usize),
            _ => Err("values are added to what holds none".to_owned()),
        }
    }

    fn append(&mut self, values: &[Value]) -> Step<()> {
        let target = self.target()?;
        let small = |value: &Value| match value {
            Value::Int(int) => i32::try_from(*int).ok(),
            _ => None,
        };
        let ints: Option<Vec<i32>> = values.iter().map(small).collect();
        let count = values.len();
        let list = &mut self.pickle.objects[target];
        match (&mut *list, ints) {
            (Object::Ints(all), Some(ints)) => {
                all.extend_from_slice(&ints);
                self.charge(3 * size_of::<i32>() * count)
            }
            (Object::List(all), Some(ints)) if all.is_empty() => {
                *list = Object::Ints(ints);
                self.charge(3 * size_of::<i32>() * count)
            }
            (Object::Ints(ints), None) => {
                let mut all: Vec<Value> = ints.iter().map(|&int| Value::Int(int.into())).collect();
                all.extend_from_slice(values);
                let count = all.len();
                *list = Object::List(all);
                self.charge(3 * size_of::<Value>() * count)
            }
            (Object::List(all), _) => {
                all.extend_from_slice(values);
                self.charge(3 * size_of::<Value>() * count)
            }
            _ => Err("values are appended to what is no list".to_owned()),
        }
    }

    fn set(&mut self, values: &[Value]) -> Step<()> {
        let target = self.target()?;
        let pairs = values.as_chunks::<2>();
        if !pairs.1.is_empty() {
            return Err("a key without a value".to_owned());
        }
        let Object::Dict(entries) = &mut self.pickle.objects[target] else {
            return Err("entries are set in what is no dict".to_owned());
        };
        entries.extend(pairs.0.iter().map(|[key, value]| (*key, *value)));
        self.charge(3 * size_of::<Value>() * values.len())
    }
}
