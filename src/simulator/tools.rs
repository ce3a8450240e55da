//! Which of the offered tools a scripted model calls, and with what harmless arguments.

use serde_json::{Map, Value, json};

/// A call that the model makes.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolCall {
    /// `function_call` with its arguments as JSON text.
    Function {
        /// The function.
        name: String,
        /// JSON text.
        arguments: String,
    },
    /// `custom_tool_call` with free text.
    Custom {
        /// The tool.
        name: String,
        /// Free text.
        input: String,
    },
    /// `local_shell_call`
    LocalShell {
        /// The program and its arguments.
        command: [String; 2],
    },
}

/// Tools that run a command, best first: `echo round 1` is harmless in each.
const SHELLS: &[&str] = &[
    "shell",
    "exec_command",
    "shell_command",
    "local_shell",
    "bash",
    "exec",
];

/// The call for a round, counted from 1: a shell where there is one, else the first function, else a custom tool. Its
/// arguments name the round, so that no two rounds are alike; `spaced` ones have blanks after commas and colons, as
/// some models write them.
pub fn choose(tools: &[Value], round: u32, spaced: bool) -> Option<ToolCall> {
    let named = |wanted: &str| {
        tools
            .iter()
            .find(|tool| name(tool) == Some(wanted) && is_callable(tool))
    };
    let shell = SHELLS.iter().find_map(|wanted| named(wanted));
    let function = || tools.iter().find(|tool| kind(tool) == "function");
    let other = || tools.iter().find(|tool| is_callable(tool));
    let filling = Filling {
        words: format!("round {round}"),
        spaced,
    };
    filling.call(shell.or_else(function).or_else(other)?)
}

fn kind(tool: &Value) -> &str {
    tool.get("type").and_then(Value::as_str).unwrap_or("function")
}

fn is_callable(tool: &Value) -> bool {
    matches!(kind(tool), "function" | "custom" | "local_shell")
}

fn name(tool: &Value) -> Option<&str> {
    if kind(tool) == "local_shell" {
        Some("local_shell")
    } else {
        tool.get("name")?.as_str()
    }
}

/// What is filled in where a tool wants arguments.
struct Filling {
    words: String,
    spaced: bool,
}

impl Filling {
    fn call(&self, tool: &Value) -> Option<ToolCall> {
        Some(match kind(tool) {
            "local_shell" => ToolCall::LocalShell {
                command: ["echo".into(), self.words.clone()],
            },
            "custom" => ToolCall::Custom {
                name: name(tool)?.to_owned(),
                input: self.command(),
            },
            _ => {
                let schema = tool.get("parameters").or_else(|| tool.get("input_schema"));
                let arguments = schema.map_or_else(|| json!({}), |schema| self.object(schema));
                ToolCall::Function {
                    name: name(tool)?.to_owned(),
                    arguments: if self.spaced {
                        spaced(&arguments)
                    } else {
                        arguments.to_string()
                    },
                }
            }
        })
    }

    fn command(&self) -> String {
        format!("echo {}", self.words)
    }

    /// An object that satisfies the schema: every required property, with a value of its type.
    fn object(&self, schema: &Value) -> Value {
        let properties = schema.get("properties").and_then(Value::as_object);
        let required = schema.get("required").and_then(Value::as_array);
        let is_required = |name: &String| required.is_some_and(|list| list.iter().any(|entry| entry == name));
        let mut arguments = Map::new();
        for (name, schema) in properties
            .into_iter()
            .flatten()
            .filter(|(name, _)| is_required(name))
        {
            arguments.insert(name.clone(), self.value(name, schema));
        }
        Value::Object(arguments)
    }

    fn value(&self, name: &str, schema: &Value) -> Value {
        if let Some(first) = schema
            .get("enum")
            .and_then(Value::as_array)
            .and_then(|list| list.first())
        {
            return first.clone();
        }
        let kind = match schema.get("type") {
            Some(Value::String(kind)) => kind.as_str(),
            Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str).unwrap_or("string"),
            _ => "string",
        };
        let is_command = matches!(name, "command" | "cmd");
        match kind {
            "array" if is_command => json!(["echo", self.words]),
            "array" => json!([]),
            "object" => self.object(schema),
            "number" | "integer" => schema.get("minimum").cloned().unwrap_or_else(|| json!(1)),
            "boolean" => json!(false),
            "null" => Value::Null,
            _ if is_command => json!(self.command()),
            _ => json!(self.words),
        }
    }
}

/// JSON text with one blank after each comma and colon.
fn spaced(value: &Value) -> String {
    let list = |items: Vec<String>| items.join(", ");
    match value {
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| format!("{}: {}", json!(name), spaced(value));
            format!("{{{}}}", list(members.iter().map(member).collect()))
        }
        Value::Array(items) => format!("[{}]", list(items.iter().map(spaced).collect())),
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests;
