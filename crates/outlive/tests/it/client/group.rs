//! Groups of several servers.

use outlive::client::{group::ClientGroup, request::result_text};
use serde_json::json;

use super::{
    kit::{Place, Wire, builder},
    script::{discovered, line, pipe, said},
};

// TOOL-09
#[tokio::test]
async fn group_tools_with_same_name_get_distinct_names() {
    let peer = |name: &'static str, tools: &'static [&'static str]| {
        pipe(move |request| match request["method"].as_str() {
            Some("server/discover") => vec![line(request, &discovered())],
            Some("tools/list") => {
                let tools: Vec<_> =
                    tools.iter().map(|tool| json!({"name": tool, "inputSchema": {}})).collect();
                vec![line(request, &json!({"tools": tools}))]
            }
            _ => vec![line(request, &said(&format!("{name} {}", request["params"]["name"])))],
        })
        .0
    };
    let long = "x".repeat(70);
    let long: &'static [&'static str] = Box::leak(Box::new([&*long.leak()]));
    let group = ClientGroup::new()
        .with("a", builder().connect(peer("A", &["s", "b__s"])).await.unwrap())
        .with("a__b", builder().connect(peer("B", &["s"])).await.unwrap())
        .with("c", builder().connect(peer("C", long)).await.unwrap());
    let listed = group.list_tools().await;
    let names: Vec<&str> = listed.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names[..3], ["a__s", "a__b__s", "a__b__s_2"]);
    assert_eq!(names[3].len(), 64);
    for (name, said) in [("a__s", "A \"s\""), ("a__b__s", "A \"b__s\""), ("a__b__s_2", "B \"s\"")] {
        let result = group.call_tool(name, json!({})).unwrap().await.unwrap();
        assert_eq!(result_text(&result), said);
    }
    assert!(group.call_tool("d__s", json!({})).is_err());
}

#[tokio::test]
async fn group_with_unavailable_server_lists_tools_of_the_others() {
    let place = Place::of(&super::kit::server(), Wire::Memory).await;
    let away = place.connect(builder(), None).await;
    away.close().await;
    let group =
        ClientGroup::new().with("here", place.connect(builder(), None).await).with("away", away);
    let listed = group.list_tools().await;
    assert_eq!(listed.tools.len(), 4);
    assert_eq!(listed.missing[0].0, "away");
}
