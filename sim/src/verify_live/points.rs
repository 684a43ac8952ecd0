//! Live points as files: the settings that were run, and each token of each.

use std::path::{Path, PathBuf};

use hotset_traces::{Format, Ids, ImportOptions, Trace, TraceBuilder, import};

use super::error::LiveError;

/// One setting that was run.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Point {
    pub trace: String,
    pub link: String,
    pub expert_bytes: u64,
    pub dense_bytes_per_layer: u64,
    pub slots: u32,
    pub experts: u32,
    pub prefetch: String,
    pub tokens: usize,
    pub warmup_tokens: usize,
    pub misses_per_token: Printed,
    pub prefetches_per_token: Printed,
    pub wall_ms_per_token: f64,
}

/// A number with the digits in which it was printed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Printed {
    pub value: f64,
    text: String,
}

impl Printed {
    /// Whether `value` is printed so.
    pub fn prints(&self, value: f64) -> bool {
        let digits = self.text.split_once('.').map_or(0, |(_, digits)| digits.len());
        format!("{value:.digits$}") == self.text
    }
}

impl std::str::FromStr for Printed {
    type Err = std::num::ParseFloatError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self { value: text.parse()?, text: text.to_owned() })
    }
}

/// One token of a point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LiveToken {
    pub ms_wall: f64,
    pub misses: u64,
    pub prefetches: u64,
}

/// A CSV file whose columns are found by name.
struct Table {
    path: PathBuf,
    headers: csv::StringRecord,
    records: Vec<(u64, csv::StringRecord)>,
}

impl Table {
    fn read(path: &Path) -> Result<Self, LiveError> {
        let io = |source| LiveError::Read { path: path.into(), source };
        let file = std::fs::File::open(path).map_err(io)?;
        let mut reader = csv::Reader::from_reader(file);
        let bad = |error: csv::Error| {
            let line = error.position().map_or(1, csv::Position::line);
            LiveError::Row { path: path.into(), line, problem: error.to_string() }
        };
        let headers = reader.headers().map_err(bad)?.clone();
        let mut records = Vec::new();
        for record in reader.records() {
            let record = record.map_err(bad)?;
            records.push((record.position().map_or(0, csv::Position::line), record));
        }
        if records.is_empty() {
            let problem = "has no rows".to_owned();
            return Err(LiveError::Row { path: path.into(), line: 1, problem });
        }
        Ok(Self { path: path.into(), headers, records })
    }

    fn column(&self, name: &'static str) -> Result<usize, LiveError> {
        self.headers
            .iter()
            .position(|header| header.trim() == name)
            .ok_or_else(|| LiveError::Column { path: self.path.clone(), column: name })
    }

    fn row(&self, line: u64, problem: String) -> LiveError {
        LiveError::Row { path: self.path.clone(), line, problem }
    }

    fn parse<T: std::str::FromStr>(
        &self,
        (line, record): &(u64, csv::StringRecord),
        name: &'static str,
    ) -> Result<T, LiveError> {
        let text = record.get(self.column(name)?).unwrap_or("").trim();
        text.parse().map_err(|_| self.row(*line, format!("column {name}: '{text}' is not valid")))
    }
}

/// Reads `points.csv`.
pub(super) fn points(path: &Path) -> Result<Vec<Point>, LiveError> {
    let table = Table::read(path)?;
    let point = |record: &(u64, csv::StringRecord)| {
        let point = Point {
            trace: table.parse(record, "trace")?,
            link: table.parse(record, "link")?,
            expert_bytes: table.parse(record, "expert_bytes")?,
            dense_bytes_per_layer: table.parse(record, "dense_bytes_per_layer")?,
            slots: table.parse(record, "slots")?,
            experts: table.parse(record, "experts")?,
            prefetch: table.parse(record, "prefetch")?,
            tokens: table.parse(record, "tokens")?,
            warmup_tokens: table.parse(record, "warmup_tokens")?,
            misses_per_token: table.parse(record, "misses_per_token")?,
            prefetches_per_token: table.parse(record, "prefetches_per_token")?,
            wall_ms_per_token: table.parse(record, "wall_ms_per_token")?,
        };
        let problem = if point.expert_bytes == 0 {
            "expert_bytes is 0".to_owned()
        } else if point.warmup_tokens >= point.tokens {
            format!("{} warm-up tokens of {} leave none", point.warmup_tokens, point.tokens)
        } else if !(point.wall_ms_per_token > 0.0 && point.wall_ms_per_token.is_finite()) {
            format!("wall_ms_per_token is {}", point.wall_ms_per_token)
        } else if !matches!(point.prefetch.as_str(), "none" | "ahead") {
            format!("prefetch '{}' is neither none nor ahead", point.prefetch)
        } else if !matches!(point.link.as_str(), "host" | "peer") {
            format!("link '{}' is neither host nor peer", point.link)
        } else {
            return Ok(point);
        };
        Err(table.row(record.0, problem))
    };
    table.records.iter().map(point).collect()
}

impl Point {
    /// Its setting, for errors.
    pub fn name(&self) -> String {
        let Self { trace, link, expert_bytes, slots, prefetch, .. } = self;
        format!("{trace}_{expert_bytes}_{link}_{slots}_{prefetch}")
    }

    /// Reads `points/{trace}_{expert_bytes}_{link}_{slots}_{prefetch}.csv`, from token 0 on.
    pub fn tokens_of(&self, folder: &Path) -> Result<Vec<LiveToken>, LiveError> {
        let table = Table::read(&folder.join("points").join(format!("{}.csv", self.name())))?;
        let mut tokens = Vec::with_capacity(table.records.len());
        for record in &table.records {
            let number: usize = table.parse(record, "token")?;
            if number != tokens.len() {
                let problem = format!("token {number}, expected {}", tokens.len());
                return Err(table.row(record.0, problem));
            }
            let token = LiveToken {
                ms_wall: table.parse(record, "ms_wall")?,
                misses: table.parse(record, "misses")?,
                prefetches: table.parse(record, "prefetches")?,
            };
            if !(token.ms_wall > 0.0 && token.ms_wall.is_finite()) {
                return Err(table.row(record.0, format!("ms_wall is {}", token.ms_wall)));
            }
            tokens.push(token);
        }
        if tokens.len() != self.tokens {
            let problem = format!("{} tokens, the point has {}", tokens.len(), self.tokens);
            return Err(table.row(1, problem));
        }
        Ok(tokens)
    }

    /// Reads `{trace}_{tokens}.npy` and, for prefetch, `{trace}_{tokens}.ahead.npy` beside it, of
    /// which entry `l` predicts layer `l + 1`.
    pub fn trace(&self, folder: &Path) -> Result<Trace, LiveError> {
        let path = folder.join(format!("{}_{}.npy", self.trace, self.tokens));
        let whole = |problem: String| LiveError::Trace { path: path.clone(), problem };
        let routes = read(&path, None)?;
        let layers = routes.shape().layers().len();
        let experts = self.experts / layers as u32;
        if experts * layers as u32 != self.experts {
            return Err(whole(format!("{} experts over {layers} layers", self.experts)));
        }
        if routes.tokens() != self.tokens {
            let problem = format!("{} tokens, the point has {}", routes.tokens(), self.tokens);
            return Err(whole(problem));
        }
        let routes = read(&path, Some((experts, self.expert_bytes)))?;
        if self.prefetch == "none" {
            return Ok(routes);
        }
        let path = folder.join(format!("{}_{}.ahead.npy", self.trace, self.tokens));
        let ahead = read(&path, None)?;
        let shape = ahead.shape();
        let width = shape.layers()[0].top_k as usize;
        if ahead.tokens() != self.tokens || shape.layers().len() + 1 != layers {
            let (tokens, found) = (ahead.tokens(), shape.layers().len());
            let problem = format!(
                "predictions of {tokens} tokens for {found} layers, expected {} for {}",
                self.tokens,
                layers - 1
            );
            return Err(LiveError::Trace { path, problem });
        }
        // The first layer is predicted by nobody.
        let mut ids = Vec::with_capacity(self.tokens * layers * width);
        let recorded: Vec<u16> = ahead.ids().iter().map(|id| id as u16).collect();
        for token in recorded.chunks_exact((layers - 1) * width) {
            ids.extend(std::iter::repeat_n(u16::MAX, width));
            ids.extend_from_slice(token);
        }
        let routed = routes.ids().to_ids(0..routes.ids().len());
        TraceBuilder::new(routes.name(), routes.shape().clone(), routed)
            .predictions(1, width, Ids::U16(ids))
            .build()
            .map_err(|source| LiveError::Trace { path, problem: source.to_string() })
    }
}

fn read(path: &Path, known: Option<(u32, u64)>) -> Result<Trace, LiveError> {
    let options = ImportOptions {
        experts: known.map(|(experts, _)| experts),
        expert_bytes: known.map(|(_, bytes)| bytes),
        ..ImportOptions::default()
    };
    import(Format::Npy, path, &options)
        .map_err(|source| LiveError::Trace { path: path.into(), problem: source.to_string() })
}
