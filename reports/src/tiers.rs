//! What host memory and the disk under it did.

use hotset_sim::{HostMemory, Row, Settings, Tiered, Window};

use crate::{Cell, Columns, Field, Sheet};

/// A row over a cache in host memory.
struct Over<'a> {
    row: &'a Row,
    tiers: &'a Tiered,
}

fn per_token(count: u64, row: &Row) -> Cell {
    Cell::Number(count as f64 / row.tokens.max(1) as f64, 2)
}

impl<'a> Over<'a> {
    const COLUMNS: &'a [Field<Self>] = &[
        Field::left("policy", "policy", |of| of.row.policy.as_str().into()),
        Field::left("phase", "phase", |of| of.row.phase.name().into()),
        Field::right("slots", "capacity_slots", |of| Cell::Count(of.row.capacity_slots.into())),
        Field::right("host\nslots", "host_slots", |of| Cell::Count(of.tiers.host_slots.into())),
        Field::right("host\nhit %", "host_hit_percent", |of| Cell::percent(of.tiers.host_hit_rate)),
        Field::right("host hits\n/token", "host_hits_per_token", |of| {
            per_token(of.tiers.host_hits, of.row)
        }),
        Field::right("disk reads\n/token", "disk_reads_per_token", |of| {
            per_token(of.tiers.disk_reads, of.row)
        }),
        Field::right("ahead\n/token", "disk_reads_ahead_per_token", |of| {
            per_token(of.tiers.disk_reads_ahead, of.row)
        }),
        Field::right("disk MiB\n/token", "disk_mib_per_token", |of| {
            Cell::number(of.tiers.disk_mib_per_token, 1)
        }),
        Field::right("kept\n/token", "kept_per_token", |of| per_token(of.tiers.kept, of.row)),
    ];
}

/// A table of the rows over a cache in host memory; none where host memory holds everything.
pub(crate) fn sheet(settings: &Settings, rows: &[Row]) -> Option<Sheet> {
    let host = settings.serving.host.as_ref()?;
    let whole = rows.iter().filter(|row| row.window == Window::All);
    let over = whole.filter_map(|row| Some(Over { row, tiers: row.tiers.as_ref()? }));
    let mut sheet = Sheet::of(title(host, settings), Over::COLUMNS, over);
    sheet.note =
        "host hit: of what the cache above asks for, what lay in host memory; ahead: read for a\n\
                  prediction or behind another; kept: from the accelerator down to host memory"
            .to_owned();
    if settings.disk.is_none() {
        sheet.note.push_str("\nreads are not priced: `TimeModel::disk` does");
    }
    Some(sheet)
}

fn title(host: &HostMemory, settings: &Settings) -> String {
    let mut title = format!("host memory: {}, {}", host.policy.text, host.mode.name());
    if host.read_ahead > 0 {
        title.push_str(&format!(", {} experts read ahead", host.read_ahead));
    }
    if host.prefetches {
        title.push_str(", predictions come here");
    }
    if let Some(disk) = &settings.disk {
        title.push_str(&format!("; over disk {}", crate::one_line(disk)));
    }
    title
}

/// The columns of every row in CSV; none where host memory holds everything.
pub(crate) fn add_flat(columns: &mut Columns<'_, Row>, rows: &[Row]) {
    const FLAT: &[Field<Row>] = &[
        Field::flat("host_slots", |row| count(row, |tiers| tiers.host_slots.into())),
        Field::flat("host_hits", |row| count(row, |tiers| tiers.host_hits)),
        Field::flat("host_hit_rate", |row| {
            Cell::number(row.tiers.as_ref().and_then(|tiers| tiers.host_hit_rate), 6)
        }),
        Field::flat("disk_reads", |row| count(row, |tiers| tiers.disk_reads)),
        Field::flat("disk_reads_ahead", |row| count(row, |tiers| tiers.disk_reads_ahead)),
        Field::flat("disk_mib_per_token", |row| {
            Cell::number(row.tiers.as_ref().and_then(|tiers| tiers.disk_mib_per_token), 4)
        }),
        Field::flat("host_kept", |row| count(row, |tiers| tiers.kept)),
    ];
    if rows.iter().any(|row| row.tiers.is_some()) {
        columns.add_all(FLAT);
    }
}

fn count(row: &Row, of: fn(&Tiered) -> u64) -> Cell {
    Cell::Count(row.tiers.as_ref().map_or(0, of))
}
