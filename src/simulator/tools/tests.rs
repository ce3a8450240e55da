use super::*;

fn chosen(tools: Value) -> Option<ToolCall> {
    choose(tools.as_array().unwrap(), 3, false)
}

fn function(name: &str, arguments: Value) -> Option<ToolCall> {
    Some(ToolCall::Function {
        name: name.into(),
        arguments: arguments.to_string(),
    })
}

/// [SIM-13] A shell is preferred, and its required arguments are filled with something harmless.
#[test]
fn a_shell_is_called_with_echo() {
    let other = json!({"type": "function", "name": "update_plan", "parameters": {}});
    let shell = json!({"type": "function", "name": "shell", "parameters": {
        "properties": {"command": {"type": "array"}, "timeout_ms": {"type": "number"}}, "required": ["command"]}});
    assert_eq!(
        chosen(json!([other, shell])),
        function("shell", json!({"command": ["echo", "round 3"]}))
    );
    let exec = json!({"type": "function", "name": "exec_command", "parameters": {
        "properties": {"cmd": {"type": "string"}, "tty": {"type": "boolean"}}, "required": ["cmd", "tty"]}});
    assert_eq!(
        chosen(json!([other, exec])),
        function("exec_command", json!({"cmd": "echo round 3", "tty": false}))
    );
    assert_eq!(
        chosen(json!([other, {"type": "local_shell"}])),
        Some(ToolCall::LocalShell {
            command: ["echo".into(), "round 3".into()]
        })
    );
}

/// [SIM-13] Without a shell the first function is called, with arguments of the types that its schema requires.
#[test]
fn the_first_function_is_called() {
    let schema = json!({"properties": {
        "city": {"type": "string"}, "unit": {"enum": ["C", "F"]}, "days": {"type": ["integer", "null"], "minimum": 2},
        "place": {"type": "object", "properties": {"lat": {"type": "number"}}, "required": ["lat"]},
        "note": {"type": "string"}}, "required": ["city", "unit", "days", "place"]});
    let weather = json!({"type": "function", "name": "weather", "parameters": schema});
    let arguments = json!({"city": "round 3", "unit": "C", "days": 2, "place": {"lat": 1}});
    assert_eq!(
        chosen(json!([{"type": "web_search"}, weather])),
        function("weather", arguments)
    );
    assert_eq!(chosen(json!([{"type": "web_search"}])), None);
    let custom = chosen(json!([{"type": "custom", "name": "run"}]));
    assert_eq!(
        custom,
        Some(ToolCall::Custom {
            name: "run".into(),
            input: "echo round 3".into()
        })
    );
}

/// [SIM-13] Spaced arguments say the same in other bytes.
#[test]
fn spaced_arguments() {
    let tool = json!({"type": "function", "name": "exec", "parameters": {"properties": {
        "command": {"type": "array"}, "tty": {"type": "boolean"}}, "required": ["command", "tty"]}});
    let Some(ToolCall::Function { arguments, .. }) = choose(&[tool], 1, true) else {
        panic!("no call");
    };
    assert_eq!(arguments, r#"{"command": ["echo", "round 1"], "tty": false}"#);
}
