//! What keys and lists mean, by values that were worked out by hand.

use crate::import::{Format, ImportOptions, import_bytes};
use crate::{Phase, Trace};

fn read(text: &str, layers: Option<u32>) -> Result<Trace, String> {
    let options = ImportOptions { layers, ..ImportOptions::default() };
    import_bytes(Format::NestedJson, "a.json", text.as_bytes(), &options).map_err(|e| e.to_string())
}

fn ids(trace: &Trace) -> Vec<u32> {
    trace.ids().iter().collect()
}

#[test]
fn numbers_in_keys_order_tokens_and_layers() {
    let text = r#"{"router_data": [{
        "token_10": {"layer_10": {"selected_experts": [7]}, "layer_2": {"selected_experts": [5]}},
        "token_9": {"layer_10": {"selected_experts": [3]}, "layer_2": {"selected_experts": [1]}}
    }]}"#;
    let trace = read(text, None).unwrap();
    assert_eq!((ids(&trace), trace.positions()), (vec![1, 3, 5, 7], &[9, 10][..]));
    let numbers: Vec<u32> = trace.shape().layers().iter().map(|layer| layer.number).collect();
    assert_eq!(numbers, [2, 10]);
}

#[test]
fn an_object_says_it_behind_its_cells_too() {
    let text = r#"{"forwards": [
        {"rows": [{"layers": [{"expert_ids": [4], "layer": 3}], "row": 0, "token_position": 5},
                  {"layers": [{"expert_ids": [6], "layer": 3}], "row": 1, "token_position": 6}],
         "phase": "prefill"},
        {"rows": [{"layers": [{"expert_ids": [2], "layer": 3}], "row": 0, "token_position": 7}],
         "phase": "decode"}]}"#;
    let trace = read(text, None).unwrap();
    assert_eq!((ids(&trace), trace.positions()), (vec![4, 6, 2], &[5, 6, 7][..]));
    assert_eq!(trace.steps().unwrap(), [0, 0, 1]);
    assert_eq!((trace.phase(1), trace.phase(2)), (Phase::Prefill, Phase::Decode));
}

#[test]
fn lists_are_read_where_something_settles_their_axes() {
    let lists = "[[[1,2],[3,4]],[[5,6],[7,8]],[[2,3],[4,5]]]";
    assert_eq!(ids(&read(lists, Some(2)).unwrap()), [1, 2, 3, 4, 5, 6, 7, 8, 2, 3, 4, 5]);
    assert_eq!(ids(&read(lists, Some(3)).unwrap()), [1, 2, 5, 6, 2, 3, 3, 4, 7, 8, 4, 5]);
    let open = read(lists, None).unwrap_err();
    assert!(
        open.contains("lists [3][2][2]") && open.contains("`ImportOptions::layers` 2"),
        "{open}"
    );
    let square = read("[[[1],[3]],[[5],[7]]]", Some(2)).unwrap_err();
    assert!(square.contains("lists [2][2][1]: nothing tells tokens from layers"), "{square}");
    let ragged = read("[[[1],[3]],[[5]]]", Some(2)).unwrap_err();
    assert!(ragged.contains("a list of 1 beside one of 2"), "{ragged}");
    let digits = r#"{"10": [[1],[2]], "9": [[3],[4]]}"#;
    assert_eq!(ids(&read(digits, None).unwrap()), [3, 1, 4, 2]);
    let tokens = r#"{"1": {"10": [1], "9": [2]}, "0": {"10": [3], "9": [4]}}"#;
    assert_eq!(ids(&read(tokens, None).unwrap()), [4, 3, 2, 1]);
    let named = r#"{"layer_10": [[1],[2]], "layer_9": [[3],[4]]}"#;
    assert_eq!(ids(&read(named, None).unwrap()), [3, 1, 4, 2]);
}

#[test]
fn copies_are_dropped_and_contradictions_refused() {
    let entry = |ids: &str| format!(r#"{{"layer_idx":0,"token_idx":4,"expert_ids":{ids}}}"#);
    let text = |second: &str| format!(r#"{{"rows":[{},{}]}}"#, entry("[1,2]"), entry(second));
    assert_eq!(ids(&read(&text("[1,2]"), None).unwrap()), [1, 2]);
    let refused = read(&text("[2,1]"), None).unwrap_err();
    assert!(refused.contains("token 4, layer 0: comes twice"), "{refused}");
    let pins = read(r#"{"layers": {"0": [3, 1, 2], "1": [0, 4, 5]}}"#, None).unwrap_err();
    assert!(pins.contains("no tokens: a ranking, pins or a placement"), "{pins}");
    let lines = "{\"layers\": {\"0\": [3], \"1\": [0]}}\n{\"layers\": {\"0\": [1], \"1\": [2]}}\n";
    assert_eq!(ids(&read(lines, None).unwrap()), [3, 0, 1, 2]);
}

#[test]
fn levels_without_end_are_refused_by_whoever_looks() {
    use crate::import::detect;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.json");
    let deep = |open: &str, close: &str| {
        let (before, behind) = (open.repeat(50_000), close.repeat(50_000));
        format!(
            "{{\"token_0\": {{\"layer_0\": {{\"selected_experts\": [1]}}}}, \"a\": {before}1{behind}}}"
        )
    };
    for text in [deep("[", "]"), deep("{\"layer_1\": ", "}")] {
        std::fs::write(&path, &text).unwrap();
        let _ = detect(&path);
        let refusal = read(&text, None).unwrap_err();
        assert!(refusal.contains("recursion limit exceeded"), "{refusal}");
    }
}

#[test]
fn a_reply_on_many_lines_is_its_server_s() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.json");
    let reply =
        "{\n \"choices\": [\n  {\"routed_experts\": [[[1, 2]], [[0, 3]], [[1, 0]]]}\n ]\n}\n";
    std::fs::write(&path, reply).unwrap();
    let told = crate::import::detect(&path);
    assert_eq!(told, Some(crate::import::Detected::Trace(Format::VllmJson)));
}
