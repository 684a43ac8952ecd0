//! Arrays of every kind of file, axis and mishap, by values that were worked out by hand.

use std::path::{Path, PathBuf};

use crate::import::{Format, ImportOptions, Imported, detect, import_files, recognise};
use crate::testing::inputs::{npy, zipped};
use crate::{Detected, Result};

fn read(paths: &[PathBuf], options: &ImportOptions) -> Result<Imported> {
    import_files(Format::Arrays, paths, options, &())
}

fn read_one(name: &str, bytes: &[u8], options: &ImportOptions) -> Result<Imported> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    read(&[path], options)
}

fn ids(imported: &Imported) -> Vec<u32> {
    imported.trace.ids().iter().collect()
}

fn told(top_k: Option<u32>, layers: Option<u32>) -> ImportOptions {
    ImportOptions { top_k, layers, ..ImportOptions::default() }
}

fn fortran(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let at = bytes.windows(5).position(|window| window == b"False").unwrap();
    bytes[at..at + 5].copy_from_slice(b"True ");
    bytes
}

#[test]
fn arrays_without_a_token_may_not_claim_any_number_of_layers() {
    let none = ImportOptions::default();
    for (shape, layers) in [
        ("(0, 555555555555552, 1)", "555555555555552 layers"),
        ("(1, 0, 555555555555552, 8)", "555555555555552 layers"),
        ("(0, 4097, 8)", "4097 layers"),
    ] {
        for element in ["<f4", "|u1"] {
            let error = read_one("a.npy", &npy(element, shape, &[]), &none).unwrap_err();
            let error = error.to_string();
            assert!(error.contains(layers) && error.contains("at most 4096"), "{shape}: {error}");
        }
    }
}

#[test]
fn any_order_of_axes_and_bytes() {
    // Two tokens, two layers, top-2: 1 2 | 3 4, then 5 6 | 7 8.
    let c = npy(">u2", "(2, 2, 2)", &[0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8]);
    let none = ImportOptions::default();
    assert_eq!(ids(&read_one("a.npy", &c, &none).unwrap()), [1, 2, 3, 4, 5, 6, 7, 8]);
    let f = fortran(&npy("|i1", "(2, 2, 2)", &[1, 5, 3, 7, 2, 6, 4, 8]));
    assert_eq!(ids(&read_one("a.npy", &f, &none).unwrap()), [1, 2, 3, 4, 5, 6, 7, 8]);
    // [layers, tokens, top-k] where the caller says so: 3 layers of 2 tokens.
    let layered = npy("|u1", "(3, 2, 1)", &[1, 2, 3, 4, 5, 6]);
    let layers = read_one("a.npy", &layered, &told(None, Some(3))).unwrap();
    assert_eq!(ids(&layers), [1, 3, 5, 2, 4, 6]);
    assert_eq!(layers.trace.shape().layers().len(), 3);
    let documented = read_one("a.npy", &layered, &none).unwrap();
    assert_eq!((ids(&documented), documented.trace.tokens()), (vec![1, 2, 3, 4, 5, 6], 3));
    // A batch of sequences.
    let batch = npy("|u1", "(2, 1, 2, 1)", &[1, 2, 3, 4]);
    assert_eq!(read_one("a.npy", &batch, &none).unwrap().trace.sequences().len(), 2);
}

#[test]
fn floats_are_ids_only_where_they_can_only_be_ids() {
    let f64s = |values: &[f64]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    let whole = npy("<f8", "(2, 1, 2)", &f64s(&[3.0, 1.0, 7.0, f64::NAN]));
    let refused = read_one("a.npy", &whole, &ImportOptions::default()).unwrap();
    assert_eq!(ids(&refused), [3, 1], "a row that lacks an expert is left out");
    assert!(refused.notes.iter().any(|note| note.starts_with("1 rows are left out")));
    let scores = npy("<f8", "(1, 1, 4)", &f64s(&[0.1, 0.4, 0.1, 0.4]));
    let message = read_one("a.npy", &scores, &ImportOptions::default()).unwrap_err().to_string();
    assert!(message.contains("`ImportOptions::top_k`"), "{message}");
    assert!(message.contains("probabilities"), "{message}");
    let chosen = read_one("a.npy", &scores, &told(Some(3), None)).unwrap();
    assert_eq!(ids(&chosen), [1, 3, 0], "best first, of equals the lower id");
    assert_eq!(chosen.trace.shape().total_experts(), 4);
    assert!(chosen.notes.iter().any(|note| note.contains("selection bias")));
    let all = read_one("a.npy", &scores, &told(Some(4), None)).unwrap_err().to_string();
    assert!(all.contains("no top-4 of 4 experts"), "{all}");
}

#[test]
fn padding_and_what_was_never_filled() {
    let i16s = |values: &[i16]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    let array = npy("<i2", "(4, 1, 3)", &i16s(&[4, 2, -1, -1, -1, -1, 0, 3, -1, 0, 0, 0]));
    let imported = read_one("a.npy", &array, &ImportOptions::default()).unwrap();
    assert_eq!(ids(&imported), [4, 2, 0, 3]);
    let notes = imported.notes.join("; ");
    assert!(notes.contains("top-2: the other 1 of 3 columns hold -1"), "{notes}");
    assert!(notes.contains("1 rows are left out: zeros at the end"), "{notes}");
    assert!(notes.contains("1 rows are left out: they hold no experts (padding)"), "{notes}");
    let hidden = npy("<i2", "(2, 1, 3)", &i16s(&[4, -1, 2, 0, 3, 1]));
    let message = read_one("a.npy", &hidden, &ImportOptions::default()).unwrap_err().to_string();
    assert!(message.contains("token 0, layer 0: an id behind a -1"), "{message}");
}

#[test]
fn maps_of_flags_and_counts_are_told_apart() {
    let map = npy("|b1", "(2, 1, 4)", &[0, 1, 0, 1, 1, 1, 0, 0]);
    let imported = read_one("a.npy", &map, &ImportOptions::default()).unwrap();
    assert_eq!((ids(&imported), imported.trace.shape().total_experts()), (vec![1, 3, 0, 1], 4));
    let counts = npy("|u1", "(2, 1, 4)", &[9, 9, 0, 1, 7, 1, 0, 0]);
    let message = read_one("a.npy", &counts, &ImportOptions::default()).unwrap_err().to_string();
    assert!(message.contains("token 0, layer 0 has 9 twice"), "{message}");
    assert!(message.contains("[2 tokens, 1 layers, 4] of u8 from 0 to 9"), "{message}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("expert_counts.npy");
    std::fs::write(&path, npy("|u1", "(2, 4)", &[9, 9, 0, 1, 7, 1, 0, 0])).unwrap();
    assert!(matches!(detect(&path), Some(Detected::Histogram(_))));
}

fn layer_file(folder: &Path, name: &str, ids: &[u8]) {
    let shape = format!("({}, 2)", ids.len() / 2);
    std::fs::write(folder.join(name), npy("|u1", &shape, ids)).unwrap();
}

#[test]
fn one_file_a_layer() {
    let folder = tempfile::tempdir().unwrap();
    layer_file(folder.path(), "moe-10.npy", &[5, 6, 7, 8]);
    layer_file(folder.path(), "moe-9.npy", &[1, 2, 3, 4]);
    assert_eq!(detect(folder.path()), Some(Detected::Trace(Format::Arrays)));
    let none = ImportOptions::default();
    let imported = read(&[folder.path().to_owned()], &none).unwrap();
    assert_eq!(ids(&imported), [1, 2, 5, 6, 3, 4, 7, 8]);
    let numbers: Vec<u32> = imported.trace.shape().layers().iter().map(|l| l.number).collect();
    assert_eq!(numbers, [9, 10]);
    // What else lies there is said.
    layer_file(folder.path(), "gap.moe-9.npy", &[1, 2]);
    let imported = read(&[folder.path().to_owned()], &none).unwrap();
    assert!(imported.notes[0].starts_with("1 files are left out"), "{:?}", imported.notes);
    layer_file(folder.path(), "moe-11.npy", &[5, 6]);
    let message = read(&[folder.path().to_owned()], &none).unwrap_err().to_string();
    assert!(message.contains("layer 11 has 1 tokens"), "{message}");
}

#[test]
fn names_in_archives() {
    let layer = |ids: &[u8]| npy("|u1", "(1, 2)", ids);
    let entries = [
        ("model.layers.11.mlp.gate.npy".to_owned(), layer(&[5, 6])),
        ("model.layers.2.mlp.gate.npy".to_owned(), layer(&[1, 2])),
    ];
    let imported = read_one("a.npz", &zipped(&entries), &ImportOptions::default()).unwrap();
    assert_eq!(ids(&imported), [1, 2, 5, 6]);
    let unclear = [("a.npy".to_owned(), layer(&[1, 2])), ("b.npy".to_owned(), layer(&[3, 4]))];
    let message = read_one("a.npz", &zipped(&unclear), &ImportOptions::default()).unwrap_err();
    assert!(message.to_string().contains("a [1, 2] of u8, b [1, 2] of u8"), "{message}");
}

#[test]
fn objects_are_never_made() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    std::fs::write(&path, npy("|O", "(2, 2)", &[0; 16])).unwrap();
    let message = recognise(&path).unwrap_err().to_string();
    assert!(message.contains("Python objects") && message.contains("run code"), "{message}");
    let pickle = b"\x80\x02cos\nsystem\nX\x02\x00\x00\x00ls\x85R.".to_vec();
    let entries = [("x/data.pkl".to_owned(), pickle)];
    let path = folder.path().join("a.pt");
    std::fs::write(&path, zipped(&entries)).unwrap();
    let message = recognise(&path).unwrap_err().to_string();
    assert!(message.contains("os.system") && message.contains("nothing in it is run"), "{message}");
}
