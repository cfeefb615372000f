//! From types to the schema of parameters, as a Rust program sees it.

use serde_json::{Value, json};
use toolcrib::schema::{
    ArrayKind, Definition, Field, Limit, Node, Parameter, Presence, RecordType, Refusal, Type, build,
};

fn shown(field: Field) -> Parameter {
    Parameter { field, hidden: false }
}

fn built(parameters: &[Parameter], definitions: &Vec<Definition>) -> Value {
    build(parameters.to_vec(), definitions)
        .map_or_else(|(at, refusal)| panic!("{at}: {refusal:?}"), |built| Node::Object(built).into())
}

fn unsupported(mistake: bool) -> Type {
    Type::Unsupported(Refusal { annotation: "Service".to_owned(), reason: "because".to_owned(), mistake })
}

fn point(module: &str, accepts: Type) -> Definition {
    let body = Type::Record(RecordType { fields: vec![Field::required("x", accepts)], ..RecordType::default() });
    Definition { reference: format!("{module}.Point:1"), body }
}

#[test]
fn parameters_keep_their_order_and_keys_are_sorted() {
    let optional = Field { presence: Presence::Default(json!(3).into()), ..Field::required("a", Type::Integer) };
    let parameters = [shown(Field::required("b", Type::Text)), shown(optional)];

    let schema = built(&parameters, &Vec::new());

    assert_eq!(
        schema.to_string(),
        r#"{"properties":{"b":{"type":"string"},"a":{"default":3,"type":"integer"}},"required":["b"],"type":"object"}"#
    );
}

#[test]
fn a_definition_is_written_once() {
    let list = Type::Array { items: Box::new(Type::Reference(0)), kind: ArrayKind::List };
    let parameters = [shown(Field::required("a", Type::Reference(0))), shown(Field::required("b", list))];

    let schema = built(&parameters, &vec![point("m", Type::Integer)]);

    assert_eq!(schema["properties"]["a"], json!({"$ref": "#/$defs/Point"}));
    assert_eq!(schema["properties"]["b"]["items"], json!({"$ref": "#/$defs/Point"}));
    assert_eq!(schema["$defs"]["Point"]["required"], json!(["x"]));
}

#[test]
fn definitions_of_one_name_are_distinguished_by_their_modules() {
    let parameters = [shown(Field::required("a", Type::Reference(0))), shown(Field::required("b", Type::Reference(1)))];

    let schema = built(&parameters, &vec![point("m", Type::Integer), point("n", Type::Text)]);

    assert_eq!(schema["properties"]["b"], json!({"$ref": "#/$defs/n__Point"}));
    assert_eq!(schema["$defs"]["m__Point"]["properties"]["x"], json!({"type": "integer"}));
}

#[test]
fn a_hidden_parameter_leaves_its_definition_and_nothing_else() {
    let parameters = [
        Parameter { field: Field::required("a", Type::Reference(0)), hidden: true },
        Parameter { field: Field::required("b", unsupported(false)), hidden: true },
    ];

    let schema = built(&parameters, &vec![point("m", Type::Integer)]);

    assert_eq!(schema["properties"], json!({}));
    assert!(schema.get("required").is_none());
    assert!(schema["$defs"].get("Point").is_some());
}

#[test]
fn a_union_leaves_out_what_json_cannot_say_but_no_mistake() {
    let choice = |mistake| Type::Union(vec![Type::Integer, unsupported(mistake)]);

    let schema = built(&[shown(Field::required("a", choice(false)))], &Vec::new());
    let mistaken = build(vec![shown(Field::required("a", choice(true)))], &Vec::new());

    assert_eq!(schema["properties"]["a"], json!({"type": "integer"}));
    assert!(mistaken.is_err_and(|(at, refusal)| at == 0 && refusal.annotation == "Service"));
}

#[test]
fn limits_on_a_decimal_are_those_of_its_number() {
    let limited = Type::Decimal.limit(Limit::AtLeast, json!(1).into());

    let schema = built(&[shown(Field::required("a", limited))], &Vec::new());

    assert_eq!(schema["properties"]["a"], json!({"anyOf": [{"minimum": 1.0, "type": "number"}, {"type": "string"}]}));
}

#[test]
fn an_integer_keeps_all_its_digits() {
    let default = Node::Number(serde_json::Number::from_string_unchecked("1".repeat(40)));
    let field = Field { presence: Presence::Default(default), ..Field::required("a", Type::Integer) };

    let schema = built(&[shown(field)], &Vec::new());

    assert_eq!(schema["properties"]["a"]["default"].to_string(), "1".repeat(40));
}
