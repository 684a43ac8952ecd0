//! FLAME-MoE's traces: a folder with `actives/iter_<n>/layer_<l>.parquet` (`indices`, `scores`;
//! row i is token i) and `samples/<n>.parquet` (`token_id`). Routing of a training step, without
//! sequences: each iteration becomes one, all tokens as prefill. Needs the cargo feature `parquet`.

use super::collect::Collector;
use super::info::{Claim, FormatInfo, FuzzTarget, Importer};
use super::input::Input;
use super::sniff::{Contents, Sniff};
use crate::error::Result;

pub(super) const INFO: FormatInfo = FormatInfo {
    name: "flame-moe",
    description: "FLAME-MoE's traces, a folder of Parquet: actives/iter_<n>/layer_<l> and samples \
                  (builds with the feature parquet)",
    columns: &["ids", "positions", "phases", "token_ids", "weights"],
    extensions: &["parquet"],
    takes_prompt_tokens: false,
    recognise,
    fuzz: FuzzTarget::None,
    importer: Importer::Folder(import),
};

fn recognise(sniff: &Sniff<'_>) -> Result<Claim> {
    let folder = matches!(sniff.contents, Contents::Folder(_));
    Claim::Sure.when(folder && sniff.path().join("actives").is_dir())
}

#[cfg(not(feature = "parquet"))]
fn import(input: &Input<'_>, _: &mut Collector<'_>) -> Result<()> {
    Err(input.error("folder", super::info::NO_PARQUET))
}

#[cfg(feature = "parquet")]
use folder::import;

#[cfg(feature = "parquet")]
mod folder {
    use std::path::{Path, PathBuf};

    use super::{Collector, Input, Result};
    use crate::error::Error;
    use crate::import::layers::Numbering;
    use crate::import::lines::Rows;
    use crate::import::parquet::table::{Holds, Table, Wanted};
    use crate::sequence::Phase;

    const LAYER: &[Wanted] = &[("indices", Holds::Ids, true), ("scores", Holds::Weights, false)];
    const SAMPLES: &[Wanted] = &[("token_id", Holds::Number, true)];

    pub(super) fn import(input: &Input<'_>, into: &mut Collector<'_>) -> Result<()> {
        let samples = entries(&input.path().join("samples"), "", ".parquet")?;
        for (_, iteration) in entries(&input.path().join("actives"), "iter_", "")? {
            one(input, &iteration, &samples, into)?;
        }
        Ok(())
    }

    /// Entries of a folder named `<prefix><number><suffix>`, by their numbers.
    fn entries(folder: &Path, prefix: &str, suffix: &str) -> Result<Vec<(u32, PathBuf)>> {
        let io = |e| Error::io("read the folder", folder, e);
        let mut found = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(io)? {
            let path = entry.map_err(io)?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let number = name.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(suffix));
            if let Some(number) = number.and_then(|number| number.parse().ok()) {
                found.push((number, path));
            }
        }
        if found.is_empty() {
            let problem = format!("has nothing named {prefix}<number>{suffix}");
            return Err(Error::import(folder, "folder", problem));
        }
        found.sort();
        Ok(found)
    }

    /// All layers of one iteration, read side by side.
    fn one(
        input: &Input<'_>,
        folder: &Path,
        samples: &[(u32, PathBuf)],
        into: &mut Collector<'_>,
    ) -> Result<()> {
        let files = entries(folder, "layer_", ".parquet")?;
        let inputs: Vec<Input<'_>> = files.iter().map(|(_, path)| input.other(path)).collect();
        let mut tables = Vec::new();
        for layer in &inputs {
            tables.push(Table::open(layer, LAYER, inputs.len() + 1)?);
            into.read(layer.source()?);
        }
        let numbers: Vec<u32> = files.iter().map(|(number, _)| *number).collect();
        let tokens: Vec<Input<'_>> = samples.iter().map(|(_, path)| input.other(path)).collect();
        let mut tokens = Tokens { files: tokens.iter(), share: inputs.len() + 1, table: None };
        let mut rows = Rows::new(input, into);
        let (mut row, mut row_weights, mut counts) = (Vec::new(), Vec::new(), Vec::new());
        let mut position = 0u32;
        loop {
            row.clear();
            row_weights.clear();
            counts.clear();
            let mut ended = 0;
            for table in &mut tables {
                if !table.next()? {
                    ended += 1;
                    continue;
                }
                let count = table.ids(0, &mut row)?;
                table.weights(1, count, &mut row_weights)?;
                counts.push(count);
            }
            if ended == tables.len() {
                break;
            }
            if ended > 0 {
                let problem = format!("{ended} of {} layers end before it", tables.len());
                return Err(Error::import(folder, format!("row {position}"), problem));
            }
            if position == 0 {
                rows.collector().layers(input, Numbering::Numbered(&numbers), &counts)?;
                rows.sequence(None)?;
            }
            rows.push(&row, position, Phase::Prefill)?;
            rows.weights(&row_weights);
            if let Some(token) = tokens.next()? {
                rows.token_id(token);
            }
            position = position.saturating_add(1);
        }
        rows.flush()
    }

    /// The vocabulary ids of all samples, one after another.
    struct Tokens<'a> {
        files: std::slice::Iter<'a, Input<'a>>,
        /// Files that are open side by side.
        share: usize,
        table: Option<Table<'a>>,
    }

    impl Tokens<'_> {
        fn next(&mut self) -> Result<Option<u32>> {
            loop {
                if let Some(table) = &mut self.table
                    && table.next()?
                {
                    return table.number(0);
                }
                let Some(file) = self.files.next() else { return Ok(None) };
                self.table = Some(Table::open(file, SAMPLES, self.share)?);
            }
        }
    }
}
