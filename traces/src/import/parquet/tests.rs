//! Parquet files made by hand.

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
