//! Arms against another than LRU: hits, and time over each link, each with its interval and p.

use hotset_experiments::{Block, Comparison, LinkComparison, Tested};

use super::cells::{ends, estimate, name};
use crate::{Cell, Field, Sheet, one_line};

/// A sheet of hits and one a link for each arm, LRU aside, that the others were compared with.
pub(super) fn sheets(block: &Block) -> Vec<Sheet> {
    let mut against: Vec<&str> = Vec::new();
    for compared in &block.comparisons {
        if !against.contains(&compared.against.as_str()) {
            against.push(&compared.against);
        }
    }
    let others = against.into_iter().skip(1);
    others.flat_map(|arm| of_reference(block, arm)).collect()
}

fn of_reference(block: &Block, reference: &str) -> Vec<Sheet> {
    let compared: Vec<&Comparison> = block.against(reference).collect();
    let mut hits = Sheet::of(format!("hits against {reference}"), HITS, compared.iter().copied());
    hits.note = format!("p: after Holm's correction for {} arms", compared.len());
    let mut sheets = vec![hits];
    let links = compared.first().map_or(&[][..], |first| &first.links);
    for (index, link) in links.iter().enumerate() {
        let title = format!("ms a token against {reference} over {}", one_line(&link.link));
        let over = compared.iter().map(|compared| Over { compared, link: &compared.links[index] });
        sheets.push(Sheet::of(title, Over::COLUMNS, over));
    }
    sheets
}

fn p(tested: &Tested) -> Cell {
    Cell::number(tested.p_holm, 3)
}

const HITS: &[Field<Comparison>] = &[
    Field::left("arm", "arm", |compared| name(&compared.arm)),
    Field::right("points", "hit_points", |compared| {
        estimate(&compared.hit_points.interval, 1.0, 2)
    }),
    Field::right("95%", "hit_points_95", |compared| ends(&compared.hit_points.interval, 1.0, 2)),
    Field::right("p", "hit_points_p", |compared| p(&compared.hit_points)),
];

/// A comparison over one link.
struct Over<'a> {
    compared: &'a Comparison,
    link: &'a LinkComparison,
}

impl<'a> Over<'a> {
    const COLUMNS: &'a [Field<Self>] = &[
        Field::left("arm", "arm", |over| name(&over.compared.arm)),
        Field::right("%", "timeline_change", |over| {
            estimate(&over.link.timeline_change.interval, 100.0, 1)
        }),
        Field::right("95%", "timeline_change_95", |over| {
            ends(&over.link.timeline_change.interval, 100.0, 1)
        }),
        Field::right("p", "timeline_change_p", |over| p(&over.link.timeline_change)),
    ];
}
