//! Parquet, one row for each token and layer, tokens in order: `seq_id`, `position`, `layer`,
//! `experts` (a list, best first), and where recorded `is_decode` or `phase`, `token_id`, `step`,
//! `weights`. Reading it needs the cargo feature `parquet`.

#[cfg(feature = "parquet")]
mod guard;
#[cfg(feature = "parquet")]
mod pages;
#[cfg(feature = "parquet")]
pub(super) mod table;
#[cfg(feature = "parquet")]
mod thrift;

use super::collect::Collector;
use super::info::{Claim, FormatInfo, FuzzTarget, Importer};
use super::input::Input;
use super::sniff::Sniff;
use crate::error::Result;

pub(super) const INFO: FormatInfo = FormatInfo {
    name: "parquet",
    description: "Parquet, one row a token and layer: seq_id, position, token_id, is_decode, \
                  layer, experts, weights (builds with the feature parquet)",
    columns: &["ids", "positions", "phases", "steps", "token_ids", "weights"],
    extensions: &["parquet"],
    takes_prompt_tokens: false,
    recognise,
    fuzz: FuzzTarget::Binary,
    importer: Importer::Each(import),
};

fn recognise(sniff: &Sniff<'_>) -> Result<Claim> {
    Claim::Sure.when(sniff.start.starts_with(b"PAR1"))
}

#[cfg(not(feature = "parquet"))]
fn import(input: &Input<'_>, _: &mut Collector<'_>) -> Result<()> {
    Err(input.error("file", super::info::NO_PARQUET))
}

#[cfg(feature = "parquet")]
fn import(input: &Input<'_>, into: &mut Collector<'_>) -> Result<()> {
    rows::import(input, into)?;
    into.read(input.source()?);
    Ok(())
}

#[cfg(feature = "parquet")]
mod rows {
    use super::table::{Holds, Table, Wanted};
    use super::{Collector, Input, Result};
    use crate::import::layers::Numbering;
    use crate::import::lines::Rows;
    use crate::trace::Phase;

    const COLUMNS: &[Wanted] = &[
        ("seq_id", Holds::Number, true),
        ("position", Holds::Number, true),
        ("layer", Holds::Number, true),
        ("experts", Holds::Ids, true),
        ("weights", Holds::Weights, false),
        ("token_id", Holds::Number, false),
        ("step", Holds::Number, false),
        ("phase", Holds::Number, false),
        ("is_decode", Holds::Number, false),
    ];

    /// The rows of one token.
    #[derive(Default)]
    struct Token {
        sequence: u32,
        position: u32,
        phase: Option<Phase>,
        token_id: Option<u32>,
        step: Option<u32>,
        layers: Vec<(u32, u32)>,
        ids: Vec<u16>,
        weights: Vec<f32>,
    }

    pub(super) fn import(input: &Input<'_>, into: &mut Collector<'_>) -> Result<()> {
        let mut table = Table::open(input, COLUMNS, 1)?;
        if let Some(header) = table.noted(crate::export::parquet::NOTE) {
            let stated = super::super::jsonl::stated(header.as_bytes(), into);
            stated.map_err(|problem| input.error("its note of hotset", problem))?;
        }
        let mut rows = Rows::new(input, into);
        let mut token = Token::default();
        let mut layout: Vec<(u32, u32)> = Vec::new();
        let mut sequence = None;
        let mut row = 0u64;
        while table.next()? {
            let number = |column| table.number(column).map(Option::unwrap_or_default);
            let (of, position, layer) = (number(0)?, number(1)?, number(2)?);
            if !token.layers.is_empty() && (token.sequence, token.position) != (of, position) {
                end(input, &mut rows, &mut token, &mut layout, &mut sequence)?;
            }
            if token.layers.last().is_some_and(|last| last.0 >= layer) {
                let problem = format!("layer {layer} does not rise");
                return Err(input.error(format!("row {row}"), problem));
            }
            let decode = table.number(8)?.map(|decode| u32::from(decode != 0));
            let phase = table.number(7)?.or(decode);
            (token.sequence, token.position) = (of, position);
            token.phase = phase.map(|number| phase_of(input, row, number)).transpose()?;
            (token.token_id, token.step) = (table.number(5)?, table.number(6)?);
            let count = table.ids(3, &mut token.ids)?;
            table.weights(4, count, &mut token.weights)?;
            token.layers.push((layer, count));
            if token.ids.len() > 1 << 20 {
                return Err(input.error("rows", "over a million experts of one token"));
            }
            row += 1;
        }
        if !token.layers.is_empty() {
            end(input, &mut rows, &mut token, &mut layout, &mut sequence)?;
        }
        rows.flush()
    }

    fn phase_of(input: &Input<'_>, row: u64, number: u32) -> Result<Phase> {
        u8::try_from(number).ok().and_then(Phase::from_u8).ok_or_else(|| {
            let problem = format!("phase {number}: 0 is prefill, 1 is decode");
            input.error(format!("row {row}"), problem)
        })
    }

    fn end(
        input: &Input<'_>,
        rows: &mut Rows<'_, '_, '_>,
        token: &mut Token,
        layout: &mut Vec<(u32, u32)>,
        sequence: &mut Option<u32>,
    ) -> Result<()> {
        let place = || format!("sequence {}, position {}", token.sequence, token.position);
        if layout.is_empty() {
            layout.clone_from(&token.layers);
            let numbers: Vec<u32> = layout.iter().map(|layer| layer.0).collect();
            let top_ks: Vec<u32> = layout.iter().map(|layer| layer.1).collect();
            rows.collector().layers(input, Numbering::Numbered(&numbers), &top_ks)?;
        }
        if *layout != token.layers {
            let (found, before) = (token.layers.len(), layout.len());
            let problem =
                format!("has {found} layers, others than the {before} of the first token");
            return Err(input.error(place(), problem));
        }
        if *sequence != Some(token.sequence) {
            *sequence = Some(token.sequence);
            rows.sequence(*sequence)?;
        }
        rows.push(&token.ids, token.position, token.phase.unwrap_or(Phase::Decode))?;
        if let Some(id) = token.token_id {
            rows.token_id(id);
        }
        if let Some(step) = token.step {
            rows.step(step);
        }
        rows.weights(&token.weights);
        *token = Token::default();
        Ok(())
    }
}

#[cfg(all(test, feature = "parquet"))]
mod tests {
    use parquet::data_type::{FloatType, Int32Type};

    use crate::export::parquet::table::column;
    use crate::testing::inputs::parquet::file;
    use crate::{Format, ImportOptions, import_bytes};

    /// Two tokens of one layer with two experts each, and so many weights.
    fn trace(weights: [usize; 2]) -> crate::Result<crate::Trace> {
        let schema = "message trace { required int32 seq_id; required int32 position; required \
                      int32 layer; required group experts (LIST) { repeated group list { required \
                      int32 element; } } required group weights (LIST) { repeated group list { \
                      required float element; } } }";
        let repeats = |counts: [usize; 2]| -> Vec<i16> {
            counts.iter().flat_map(|&n| (0..n).map(|place| i16::from(place > 0))).collect()
        };
        let bytes = file(schema, |group| {
            column::<Int32Type, _>(group, &[0, 0], None)?;
            column::<Int32Type, _>(group, &[0, 1], None)?;
            column::<Int32Type, _>(group, &[7, 7], None)?;
            column::<Int32Type, _>(group, &[1, 2, 3, 4], Some(&repeats([2, 2])))?;
            let values = vec![0.5; weights.iter().sum()];
            column::<FloatType, _>(group, &values, Some(&repeats(weights)))
        });
        import_bytes(Format::Parquet, "x", &bytes.unwrap(), &ImportOptions::default())
    }

    #[test]
    fn weights_stay_with_their_experts() {
        assert_eq!(trace([2, 2]).unwrap().tokens(), 2);
        // As many in all, but of other experts.
        let refused = trace([1, 3]).unwrap_err().to_string();
        assert_eq!(refused, "x: row 0: column weights: 1 weights of 2 experts");
    }
}
