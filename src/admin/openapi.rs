//! The OpenAPI document, made from the table (ADM-7).

use http::StatusCode;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::parameters::{Place, Shape};
use super::table::{self, Gives, Operation, Verb};
use crate::refusal::Kind;

/// What every operation may refuse.
const ALL: [Kind; 5] = [
    Kind::NotAdmin,
    Kind::OriginNotAllowed,
    Kind::BadParameter,
    Kind::TooManyAttempts,
    Kind::Internal,
];
/// And one with a body.
const BODY: [Kind; 3] = [Kind::InvalidBody, Kind::BodyTooLarge, Kind::BodyTimeout];

/// The document, OpenAPI 3.1.
pub fn document() -> Value {
    let settings = SchemaSettings::draft2020_12()
        .for_serialize()
        .with(|settings| settings.definitions_path = "/components/schemas".into());
    let mut schemas = settings.into_generator();
    let mut paths: Map<String, Value> = Map::new();
    for operation in table::operations() {
        let path = format!("{}{}", table::ROOT, operation.path);
        let of_path = paths.entry(path).or_insert_with(|| json!({}));
        of_path[operation.method.label()] = told(operation, &mut schemas);
    }
    let mut components = schemas.take_definitions(true);
    components.insert("Error".into(), error());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Responses Bridge: the admin API",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "What operators see of a running bridge, and do to it. Every answer in JSON has `at_ms` and `data`; \
                lists have `total` as well.",
        },
        "servers": [{ "url": "/" }],
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer", "description": "server.admin_token" },
            },
        },
    })
}

fn told(operation: &Operation, schemas: &mut SchemaGenerator) -> Value {
    let mut told = json!({
        "operationId": operation.id,
        "summary": operation.summary,
        "responses": answers(operation, schemas),
    });
    let mut parameters: Vec<_> = operation.parameters.iter().map(parameter).collect();
    if operation.method != Verb::Get {
        parameters.push(json!({
            "name": "x-operator",
            "in": "header",
            "required": false,
            "description": "Who does it, for the log: up to 64 letters, digits and . _ @ -; anything else counts as not said",
            "schema": { "type": "string" },
        }));
    }
    if !parameters.is_empty() {
        told["parameters"] = parameters.into();
    }
    if let Some((schema, like)) = operation.body {
        let example: Value = serde_json::from_str(like).unwrap_or_default();
        told["requestBody"] = json!({
            "required": true,
            "content": { "application/json": { "schema": schema(schemas), "example": example } },
        });
    }
    told
}

fn parameter(parameter: &super::parameters::Parameter) -> Value {
    let example = match parameter.shape {
        Shape::Whole { .. } => parameter.example.parse::<u64>().map_or(Value::Null, Value::from),
        _ => parameter.example.into(),
    };
    json!({
        "name": parameter.name,
        "in": parameter.place.label(),
        "required": parameter.place == Place::Path,
        "description": parameter.what,
        "schema": parameter.shape.schema(),
        "example": example,
    })
}

fn answers(operation: &Operation, schemas: &mut SchemaGenerator) -> Value {
    let content = match operation.gives {
        Gives::Json(schema) => json!({ "application/json": { "schema": schema(schemas) } }),
        Gives::Stream => json!({ "text/event-stream": { "schema": { "type": "string" } } }),
    };
    let mut answers = Map::new();
    answers.insert(
        "200".into(),
        json!({ "description": "As asked", "content": content }),
    );
    let of_body = BODY.iter().filter(|_| operation.body.is_some());
    for kind in ALL.iter().chain(of_body).chain(operation.refusals) {
        let status = kind.status();
        let answer = answers
            .entry(status.as_str())
            .or_insert_with(|| refused(status, kind.retry_after().is_some()));
        let known = answer["description"].as_str().unwrap_or_default();
        let codes = if known.is_empty() {
            kind.code().to_owned()
        } else {
            format!("{known}, {}", kind.code())
        };
        answer["description"] = codes.into();
    }
    answers.into()
}

fn refused(status: StatusCode, waits: bool) -> Value {
    let mut answer = json!({
        "description": "",
        "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Error" } } },
    });
    if waits {
        answer["headers"]["Retry-After"] =
            json!({ "description": "Seconds", "schema": { "type": "integer", "minimum": 1, "maximum": 60 } });
    }
    if status == StatusCode::UNAUTHORIZED {
        answer["headers"]["WWW-Authenticate"] = json!({ "schema": { "type": "string" } });
    }
    answer
}

fn error() -> Value {
    json!({
        "type": "object",
        "required": ["error"],
        "properties": {
            "error": {
                "type": "object",
                "required": ["message", "type", "code"],
                "properties": {
                    "message": { "type": "string" },
                    "type": { "type": "string" },
                    "param": { "type": ["string", "null"] },
                    "code": { "type": "string" },
                },
            },
        },
    })
}
