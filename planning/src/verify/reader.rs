//! Reads reports: CSV whose header says which columns there are.
//!
//! Two sets of columns are known, of memory and of speeds; further columns are passed over. What a hand or a program
//! garbled is refused with its line, nothing is guessed.

use csv::StringRecord;
use thiserror::Error;

use super::row::{MemoryRow, SpeedRow};

/// More rows than this are no reports.
pub const MOST_ROWS: usize = 100_000;
/// No cell is longer.
const MOST_CELL: usize = 1 << 16;
/// No figure is larger.
const MOST_VALUE: f64 = 1e18;
/// No count is larger: floats hold every one below it.
const MOST_COUNT: f64 = 9e15;

/// Rows of one file or several.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reports {
    /// Reports of memory.
    pub memory: Vec<MemoryRow>,
    /// Reports of speed.
    pub speeds: Vec<SpeedRow>,
}

/// Why a file of reports cannot be read.
#[derive(Debug, Error)]
pub enum ReportError {
    /// Not CSV.
    #[error("{origin}: {reason}")]
    Csv {
        /// The file.
        origin: String,
        /// Where and why.
        reason: csv::Error,
    },
    /// Neither set of columns.
    #[error(
        "{origin}: no column `value` (reports of memory have id, engine, model, kind, value, unit) and none \
         `tg_tokens_s` (reports of speed have id, engine, model, mode, tg_tokens_s): its header has {found}"
    )]
    Unknown {
        /// The file.
        origin: String,
        /// The columns that it has.
        found: String,
    },
    /// Columns that a set needs.
    #[error("{origin}: the header lacks {missing}")]
    Missing {
        /// The file.
        origin: String,
        /// The columns.
        missing: String,
    },
    /// A cell that is not what its column holds.
    #[error("{origin}, line {line}, column {column}: {why}")]
    Cell {
        /// The file.
        origin: String,
        /// The line, from 1.
        line: u64,
        /// The column's name.
        column: String,
        /// What is wrong and what would be right.
        why: String,
    },
    /// Too many rows.
    #[error("{origin}: more than {MOST_ROWS} rows: these are no reports of people")]
    TooMany {
        /// The file.
        origin: String,
    },
}

const MEMORY: [&str; 6] = ["id", "engine", "model", "kind", "value", "unit"];
const SPEED: [&str; 5] = ["id", "engine", "model", "mode", "tg_tokens_s"];

impl Reports {
    /// Adds the rows of one file's bytes; `origin` names it in errors.
    ///
    /// # Errors
    /// [`ReportError`].
    pub fn add(&mut self, bytes: &[u8], origin: &str) -> Result<(), ReportError> {
        let told = |reason| ReportError::Csv { origin: origin.to_owned(), reason };
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let mut reader = csv::ReaderBuilder::new().flexible(false).from_reader(bytes);
        let header = reader.headers().map_err(told)?.clone();
        let has = |name: &str| header.iter().any(|column| column.trim() == name);
        let memory = has("value");
        if !memory && !has("tg_tokens_s") {
            let found: Vec<&str> = header.iter().take(12).collect();
            let found = found.join(", ").chars().take(200).collect();
            return Err(ReportError::Unknown { origin: origin.to_owned(), found });
        }
        let needed: &[&str] = if memory { &MEMORY } else { &SPEED };
        let missing: Vec<&str> = needed.iter().copied().filter(|name| !has(name)).collect();
        if !missing.is_empty() {
            let missing = missing.join(", ");
            return Err(ReportError::Missing { origin: origin.to_owned(), missing });
        }
        for record in reader.records() {
            let record = record.map_err(told)?;
            if self.memory.len() + self.speeds.len() >= MOST_ROWS {
                return Err(ReportError::TooMany { origin: origin.to_owned() });
            }
            let cells = Cells { header: &header, record: &record, origin };
            if memory {
                self.memory.push(cells.memory()?);
            } else {
                self.speeds.push(cells.speed()?);
            }
        }
        Ok(())
    }
}

/// One line under its header.
struct Cells<'a> {
    header: &'a StringRecord,
    record: &'a StringRecord,
    origin: &'a str,
}

impl Cells<'_> {
    fn text(&self, name: &str) -> Result<String, ReportError> {
        let index = self.header.iter().position(|column| column.trim() == name);
        let cell = index.and_then(|index| self.record.get(index)).unwrap_or_default().trim();
        if cell.len() > MOST_CELL {
            return Err(self.cell(name, format!("has {} bytes, at most {MOST_CELL}", cell.len())));
        }
        Ok(cell.to_owned())
    }

    fn cell(&self, column: &str, why: String) -> ReportError {
        ReportError::Cell {
            origin: self.origin.to_owned(),
            line: self.record.position().map_or(0, csv::Position::line),
            column: column.to_owned(),
            why,
        }
    }

    fn number(&self, name: &str) -> Result<Option<f64>, ReportError> {
        let text = self.text(name)?;
        if text.is_empty() {
            return Ok(None);
        }
        match text.parse::<f64>() {
            Ok(value) if (0.0..=MOST_VALUE).contains(&value) => Ok(Some(value)),
            _ => {
                let text: String = text.chars().take(40).collect();
                let why =
                    format!("'{text}' is no number from 0 to 1e18; leave it empty if unknown");
                Err(self.cell(name, why))
            }
        }
    }

    /// Of devices that differ (`32+24`), the least.
    fn least(&self, name: &str) -> Result<Option<f64>, ReportError> {
        let text = self.text(name)?;
        let parts: Option<Vec<f64>> =
            text.split('+').map(|part| part.trim().parse::<f64>().ok()).collect();
        match parts {
            Some(parts) if parts.len() > 1 && parts.iter().all(|part| *part >= 0.0) => {
                Ok(parts.into_iter().reduce(f64::min))
            }
            _ => self.number(name),
        }
    }

    fn count(&self, name: &str) -> Result<Option<u64>, ReportError> {
        match self.number(name)? {
            None => Ok(None),
            Some(value) if value.fract() == 0.0 && value <= MOST_COUNT => Ok(Some(value as u64)),
            Some(value) => Err(self.cell(name, format!("{value} is no count"))),
        }
    }

    fn flag(&self, name: &str) -> Result<bool, ReportError> {
        match self.text(name)?.as_str() {
            "" | "0" | "no" | "false" => Ok(false),
            "1" | "yes" | "true" => Ok(true),
            _ => Err(self.cell(name, "takes 1, 0 or nothing".to_owned())),
        }
    }

    fn memory(&self) -> Result<MemoryRow, ReportError> {
        let Some(value) = self.number("value")? else {
            return Err(self.cell("value", "is empty: a report of memory is its figure".to_owned()));
        };
        Ok(MemoryRow {
            id: self.text("id")?,
            source: self.text("source")?,
            engine: self.text("engine")?,
            engine_version: self.text("engine_version")?,
            model: self.text("model")?,
            kind: self.text("kind")?,
            format: self.text("format")?,
            context: self.count("context")?,
            ubatch: self.count("ubatch")?,
            batch: self.count("batch")?,
            parallel: self.count("parallel")?,
            kv_type: self.text("kv_type")?,
            spread: self.text("tp_ep_pp")?,
            gpu: self.text("gpu")?,
            gpu_mem_gib: self.least("gpu_mem_gib")?,
            settings: self.text("settings")?,
            value,
            unit: self.text("unit")?,
            notes: self.text("notes")?,
            faulty: self.flag("faulty")?,
        })
    }

    fn speed(&self) -> Result<SpeedRow, ReportError> {
        Ok(SpeedRow {
            id: self.text("id")?,
            engine: self.text("engine")?,
            engine_version: self.text("engine_version")?,
            model: self.text("model")?,
            quant: self.text("quant")?,
            file_gib: self.number("file_gib")?,
            params_b: self.number("params_b")?,
            gpu: self.text("gpu")?,
            gpu_count: self.count("gpu_count")?,
            gpu_mem_gib: self.least("gpu_mem_gib")?,
            pcie: self.text("pcie")?,
            cpu: self.text("cpu")?,
            cores_threads: self.text("cores_threads")?,
            ram_type: self.text("ram_type")?,
            ram_channels: self.text("ram_channels")?,
            ram_gb: self.number("ram_gb")?,
            ram_bandwidth_gb_s: self.number("ram_bandwidth_gb_s")?,
            ram_bandwidth_basis: self.text("ram_bandwidth_basis")?,
            disk: self.text("disk")?,
            mode: self.text("mode")?,
            moe_layers_on_cpu: self.count("moe_layers_on_cpu")?,
            settings: self.text("settings")?,
            context_depth: self.count("context_depth")?,
            batch: self.count("batch")?,
            tg_tokens_s: self.number("tg_tokens_s")?,
            pp_tokens_s: self.number("pp_tokens_s")?,
            pp_length: self.count("pp_length")?,
            ttft_s: self.number("ttft_s")?,
            gpu_mem_used_gib: self.number("gpu_mem_used_gib")?,
            hit_rate: self.number("hit_rate")?,
            notes: self.text("notes")?,
            assumed_config: self.text("assumed_config")?,
            assumed_gpu: self.text("assumed_gpu")?,
            assumed_context_depth: self.count("assumed_context_depth")?,
            assumed_gpu_bandwidth_gb_s: self.number("assumed_gpu_bandwidth_gb_s")?,
            assumed_ram_bandwidth_gb_s: self.number("assumed_ram_bandwidth_gb_s")?,
            assumed_cpu_expert_fraction: self.number("assumed_cpu_expert_fraction")?,
            assumed_active_params_b: self.number("assumed_active_params_b")?,
            faulty: self.flag("faulty")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::row::SpeedKind;
    use super::*;

    fn read(text: &str) -> Result<Reports, ReportError> {
        let mut reports = Reports::default();
        reports.add(text.as_bytes(), "x.csv").map(|()| reports)
    }

    #[test]
    fn columns_are_found_by_name() {
        let memory =
            "\u{feff}unit,own,id,engine,model,kind,value,faulty\nMiB,?,a,vLLM,M,kv,2.5,1\n";
        let row = read(memory).unwrap().memory.remove(0);
        assert_eq!((row.id.as_str(), row.value, row.faulty), ("a", 2.5, true));
        assert_eq!((row.unit.as_str(), row.context), ("MiB", None));
        let speeds = "id,engine,model,mode,tg_tokens_s,batch\nb,imp,M,gpu-cache,7,1\n";
        let row = read(speeds).unwrap().speeds.remove(0);
        assert_eq!(row.reported().collect::<Vec<_>>(), [(SpeedKind::Decode, 7.0)]);
        assert_eq!(row.batch, Some(1));
        let several = "id,engine,model,mode,tg_tokens_s,gpu_mem_gib\nb,imp,M,ot,7,32+24\n";
        assert_eq!(read(several).unwrap().speeds[0].gpu_mem_gib, Some(24.0));
    }

    #[test]
    fn what_cannot_be_read_says_where() {
        let told = |text: &str| read(text).unwrap_err().to_string();
        assert!(told("a,b\n1,2\n").contains("its header has a, b"));
        assert!(told("id,engine,value\n").contains("lacks model, kind, unit"));
        let head = "id,engine,model,kind,value,unit\n";
        assert!(told(&format!("{head}a,e,m,kv,NaN,MiB\n")).contains("line 2, column value"));
        assert!(told(&format!("{head}a,e,m,kv,-1,MiB\n")).contains("no number"));
        assert!(told(&format!("{head}a,e,m,kv,,MiB\n")).contains("is empty"));
        assert!(told(&format!("{head}a,e\n")).contains("x.csv"));
        let long = "x".repeat(MOST_CELL + 1);
        assert!(told(&format!("{head}{long},e,m,kv,1,MiB\n")).contains("column id"));
    }
}
