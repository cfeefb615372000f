//! Reading of annotations as converters, which build the objects that the annotations name; see [`crate::bindings::typed`].
//!
//! The schema is read separately, in `annotation`: it describes what JSON can hold, and a converter names Python classes. A type that
//! cannot be read here keeps its JSON value.

use std::collections::HashMap;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple, PyType};

use super::annotation::{
    AnnotationReader, PydanticMode, ReadError, builtin_scalar, has_pydantic_hooks, is_forward_ref, type_name,
};
use super::field::Metadata;
use super::forward_refs::Scope;
use super::records::{RecordKind, all_annotations, is_class_variable, own_annotations};
use super::typing::{
    TypeVariables, arguments_of, form_name, is_sentinel, literal_values, origin_of, reference_of, variables_of,
};
use crate::bindings::imported::{import_module, loaded_module};
use crate::bindings::json::{MAX_DEPTH, entries_of};
use crate::bindings::once::intern;
use crate::bindings::typed::{
    Construct, Converter, Converters, Enumeration, External, ItemsClass, JsonShape, Library, MapClass, Moment,
    ParameterConverter, Record, RecordField, RecordForm, is_json_scalar,
};
use crate::schema::Type;

/// Reader of the converters of one signature.
pub(super) struct ConverterReader<'py> {
    reader: AnnotationReader<'py>,
    parameters: Vec<ParameterConverter>,
    definitions: Vec<Converter>,
    by_reference: HashMap<String, usize>,
    /// True if the current parameter has limits that its converter does not check.
    has_limits: bool,
}

const ANY: Converter = Converter::Json(JsonShape::Any);

impl<'py> ConverterReader<'py> {
    /// A reader of at most `count` parameters.
    pub(super) fn new(callable: &Bound<'py, PyAny>, count: usize) -> Self {
        let reader = AnnotationReader::new(callable, PydanticMode::EachType);
        let (parameters, definitions) = (Vec::with_capacity(count), Vec::new());
        Self { reader, parameters, definitions, by_reference: HashMap::new(), has_limits: false }
    }

    /// Reads a parameter. One whose type cannot be read keeps its JSON value: the schema has reported it, or is supplied.
    pub(super) fn read_parameter(
        &mut self,
        name: &Bound<'py, PyString>,
        annotation: &Bound<'py, PyAny>,
        wrap: impl FnOnce(Converter) -> Converter,
        has_limits: bool,
    ) {
        self.has_limits = has_limits;
        let Ok(converter) = self.read(annotation) else { return };
        let converter = wrap(converter);
        let effect = Effect::of(&converter, &self.definitions, &mut Vec::new());
        if effect != Effect::None {
            let is_complete = !self.has_limits && is_complete(&converter);
            let name = name.clone().unbind();
            let only_floats = effect == Effect::Floats;
            self.parameters.push(ParameterConverter { name, converter, is_complete, only_floats });
        }
    }

    pub(super) fn finish(self) -> Converters {
        Converters { parameters: self.parameters.into(), definitions: self.definitions.into() }
    }

    fn read(&mut self, annotation: &Bound<'py, PyAny>) -> PyResult<Converter> {
        if self.reader.depth >= MAX_DEPTH {
            return Ok(ANY);
        }
        self.reader.depth += 1;
        let read = self.read_any(annotation);
        self.reader.depth -= 1;
        read
    }

    fn read_any(&mut self, annotation: &Bound<'py, PyAny>) -> PyResult<Converter> {
        let py = self.reader.py;
        if annotation.is_none() {
            return Ok(Converter::Json(JsonShape::Null));
        }
        if let Ok(class) = annotation.cast::<PyType>()
            && origin_of(annotation)?.is_none()
        {
            return self.read_class(annotation, class, None);
        }
        if is_forward_ref(annotation)? {
            return match self.reader.resolve_forward_ref(annotation)? {
                Some(resolved) => self.read(&resolved),
                None => Ok(ANY),
            };
        }
        let Some(origin) = origin_of(annotation)? else { return self.read_object(annotation) };
        match form_name(&origin).as_deref() {
            Some("Union" | "UnionType") => return self.read_union(annotation),
            Some("Annotated") => return self.read_annotated(annotation),
            Some("Literal") => return read_literal(annotation),
            Some("Final" | "ClassVar" | "Required" | "NotRequired" | "ReadOnly") => {
                return arguments_of(annotation)?.first().map_or(Ok(ANY), |inner| self.read(inner));
            }
            _ => {}
        }
        if type_name(&origin) == "TypeAliasType" {
            let variables = variables_of(annotation, &origin)?;
            return self.read_alias(annotation, &origin, &variables);
        }
        match origin.cast::<PyType>() {
            Ok(class) => {
                let arguments = arguments_of(annotation)?;
                self.read_class(annotation, class, Some(&arguments))
            }
            Err(_) if has_pydantic_hooks(annotation)? => pydantic(py, annotation),
            Err(_) => Ok(ANY),
        }
    }

    /// Reads an object that is neither a class nor an alias.
    fn read_object(&mut self, annotation: &Bound<'py, PyAny>) -> PyResult<Converter> {
        let py = self.reader.py;
        match type_name(annotation).as_str() {
            "NewType" => self.read(&annotation.getattr(intern!(py, "__supertype__"))?),
            "InitVar" => self.read(&annotation.getattr(intern!(py, "type"))?),
            "TypeAliasType" => self.read_alias(annotation, annotation, &Vec::new()),
            "TypeVar" => {
                let bound = annotation.getattr(intern!(py, "__bound__"))?;
                if bound.is_none() { Ok(ANY) } else { self.read(&bound) }
            }
            _ if form_name(annotation).as_deref() == Some("Self") => match self.reader.records.last().cloned() {
                Some(record) => self.read(&record),
                None => Ok(ANY),
            },
            _ if has_pydantic_hooks(annotation)? => pydantic(py, annotation),
            _ => Ok(ANY),
        }
    }

    fn read_alias(
        &mut self,
        annotation: &Bound<'py, PyAny>,
        alias: &Bound<'py, PyAny>,
        variables: &TypeVariables<'py>,
    ) -> PyResult<Converter> {
        let py = self.reader.py;
        let name: String = alias.getattr(intern!(py, "__name__"))?.extract()?;
        let arguments = if annotation.is(alias) { Vec::new() } else { arguments_of(annotation)? };
        let reference = reference_of(alias, &name, &arguments)?;
        self.reader.kept.extend(arguments);
        self.define(reference, alias, |this| {
            let value = alias.getattr(intern!(py, "__value__"))?;
            let value = this.reader.substitute(&value, variables)?;
            this.read(&value)
        })
    }

    /// Reads a definition unless it is already there. One that is not part of itself is used in place.
    fn define(
        &mut self,
        reference: String,
        scope: &Bound<'py, PyAny>,
        body: impl FnOnce(&mut Self) -> PyResult<Converter>,
    ) -> PyResult<Converter> {
        if let Some(index) = self.by_reference.get(&reference) {
            return Ok(Converter::Definition(*index));
        }
        let index = self.definitions.len();
        self.by_reference.insert(reference, index);
        self.definitions.push(ANY);
        self.reader.scopes.push(Scope::of_type(scope.clone()));
        let read = body(self);
        self.reader.scopes.pop();
        let read = read?;
        if is_plain(&read) {
            return Ok(ANY);
        }
        self.definitions[index] = read;
        Ok(Converter::Definition(index))
    }

    fn read_union(&mut self, annotation: &Bound<'py, PyAny>) -> PyResult<Converter> {
        let arguments = arguments_of(annotation)?;
        let none = self.reader.py.None();
        let none = none.bind(self.reader.py).get_type();
        let is_null = |argument: &Bound<'py, PyAny>| argument.is_none() || argument.is(&none);
        let is_type = |argument: &&Bound<'py, PyAny>| !is_null(argument) && !is_sentinel(argument);
        let types: Vec<_> = arguments.iter().filter(is_type).collect();
        let mut members = types.iter().map(|member| self.read(member)).collect::<PyResult<Vec<_>>>()?;
        let is_pydantic = |member: &Converter| matches!(member, Converter::External(external) if external.library == Library::Pydantic);
        if members.len() > 1 && members.iter().all(is_pydantic) {
            // Pydantic itself chooses among its own types.
            return pydantic(self.reader.py, annotation);
        }
        let is_nullable = arguments.iter().any(is_null);
        let converter = match members.len() {
            0 => return Ok(Converter::Json(JsonShape::Null)),
            1 => members.remove(0),
            _ => Converter::Union(members.into()),
        };
        Ok(if is_nullable { Converter::Nullable(Box::new(converter)) } else { converter })
    }

    fn read_annotated(&mut self, annotation: &Bound<'py, PyAny>) -> PyResult<Converter> {
        let mut arguments = arguments_of(annotation)?;
        let inner = arguments.remove(0);
        match Metadata::read(arguments, PydanticMode::WholeSignature) {
            Ok(metadata) if metadata.has_hidden_check() => pydantic(self.reader.py, annotation),
            Ok(metadata) => {
                self.has_limits |= !metadata.is_unlimited();
                self.read(&inner)
            }
            Err(ReadError::NeedsPydantic) => pydantic(self.reader.py, annotation),
            Err(ReadError::Python(error)) => Err(error),
        }
    }

    fn read_class(
        &mut self,
        annotation: &Bound<'py, PyAny>,
        class: &Bound<'py, PyType>,
        arguments: Option<&[Bound<'py, PyAny>]>,
    ) -> PyResult<Converter> {
        let py = self.reader.py;
        if let Some(known) = self.read_stdlib(class, arguments.unwrap_or_default())? {
            return Ok(known);
        }
        if has_pydantic_hooks(class.as_any())? {
            return pydantic(py, annotation);
        }
        if class.hasattr(intern!(py, "__struct_config__"))? {
            return msgspec(py, annotation);
        }
        let kind = RecordKind::of(class)?;
        if kind == Some(RecordKind::Enumeration) {
            return Ok(Converter::Enumeration(Box::new(Enumeration::new(class)?)));
        }
        let Some(kind) = kind else { return Ok(ANY) };
        let arguments = arguments.unwrap_or_default();
        let variables = if arguments.is_empty() { Vec::new() } else { variables_of(annotation, class.as_any())? };
        let reference = reference_of(class.as_any(), class.qualname()?.to_str()?, arguments)?;
        self.reader.kept.extend(arguments.iter().cloned());
        self.define(reference, class.as_any(), |this| {
            this.reader.records.push(annotation.clone());
            let read = this.read_record(class, kind, &variables);
            this.reader.records.pop();
            Ok(Converter::Record(Box::new(read?)))
        })
    }

    fn read_record(
        &mut self,
        class: &Bound<'py, PyType>,
        kind: RecordKind,
        variables: &TypeVariables<'py>,
    ) -> PyResult<Record> {
        let py = self.reader.py;
        match kind {
            RecordKind::Dataclass => {
                let fields = class.getattr(intern!(py, "__dataclass_fields__"))?.cast_into::<PyDict>()?;
                let mut read = Vec::new();
                for (name, field) in entries_of(&fields) {
                    let annotation = field.getattr(intern!(py, "type"))?;
                    if field.getattr(intern!(py, "init"))?.is_truthy()? && !self.is_class_variable(&annotation)? {
                        let name = name.cast_into::<PyString>()?;
                        read.push(self.read_field(class, &name, &annotation, variables)?);
                    }
                }
                Record::new(class, RecordForm::Class, read)
            }
            RecordKind::Attrs => {
                let mut read = Vec::new();
                for field in class.getattr(intern!(py, "__attrs_attrs__"))?.try_iter()? {
                    let field = field?;
                    if field.getattr(intern!(py, "init"))?.is_truthy()? {
                        let alias = field.getattr(intern!(py, "alias"))?.cast_into::<PyString>()?;
                        let annotation = field.getattr(intern!(py, "type"))?;
                        read.push(self.read_field(class, &alias, &annotation, variables)?);
                    }
                }
                Record::new(class, RecordForm::Class, read)
            }
            RecordKind::TypedDict => {
                let mut read = Vec::new();
                for (name, annotation) in all_annotations(class)? {
                    let Ok((annotation, _)) = self.reader.unqualified(&annotation) else { continue };
                    let name = name.cast_into::<PyString>()?;
                    read.push(self.read_field(class, &name, &annotation, variables)?);
                }
                Record::new(class, RecordForm::Dict, read)
            }
            RecordKind::NamedTuple | RecordKind::Enumeration => {
                let annotations = all_annotations(class)?;
                let mut read = Vec::new();
                for name in class.getattr(intern!(py, "_fields"))?.try_iter()? {
                    let name = name?.cast_into::<PyString>()?;
                    let mut annotation = py.None().into_bound(py);
                    let mut is_annotated = false;
                    for (other, found) in &annotations {
                        if other.eq(&name)? {
                            (annotation, is_annotated) = (found.clone(), true);
                        }
                    }
                    read.push(if is_annotated {
                        self.read_field(class, &name, &annotation, variables)?
                    } else {
                        RecordField { name: name.unbind(), converter: None }
                    });
                }
                Record::new(class, RecordForm::Row, read)
            }
        }
    }

    /// Reads a field in the scope of the ancestor that declares it.
    fn read_field(
        &mut self,
        class: &Bound<'py, PyType>,
        name: &Bound<'py, PyString>,
        annotation: &Bound<'py, PyAny>,
        variables: &TypeVariables<'py>,
    ) -> PyResult<RecordField> {
        let mut owner = class.clone();
        for ancestor in class.mro().iter() {
            let ancestor = ancestor.cast_into::<PyType>()?;
            if own_annotations(&ancestor)?.is_some_and(|own| own.contains(name).unwrap_or(false)) {
                owner = ancestor;
                break;
            }
        }
        self.reader.scopes.push(Scope::of_type(owner.into_any()));
        let read = self.reader.substitute(annotation, variables).and_then(|annotation| self.read(&annotation));
        self.reader.scopes.pop();
        let converter = Some(read?).filter(|converter| !is_plain(converter));
        Ok(RecordField { name: name.clone().unbind(), converter })
    }

    fn is_class_variable(&mut self, annotation: &Bound<'py, PyAny>) -> PyResult<bool> {
        match self.reader.resolve_forward_ref(annotation) {
            Ok(Some(resolved)) => is_class_variable(&resolved),
            _ => is_class_variable(annotation),
        }
    }

    /// Reads a class of the standard library.
    fn read_stdlib(
        &mut self,
        class: &Bound<'py, PyType>,
        arguments: &[Bound<'py, PyAny>],
    ) -> PyResult<Option<Converter>> {
        let py = self.reader.py;
        match builtin_scalar(class) {
            Some(Type::Text) => return Ok(Some(Converter::Json(JsonShape::Text))),
            Some(Type::Boolean) => return Ok(Some(Converter::Json(JsonShape::Boolean))),
            Some(Type::Integer) => return Ok(Some(Converter::Integer)),
            Some(Type::Number) => return Ok(Some(Converter::Float)),
            _ => {}
        }
        let Ok(module) = class.module() else { return Ok(None) };
        let (module, name) = (module.to_str()?, class.qualname()?);
        let argument = |this: &mut Self, at: usize| arguments.get(at).map_or(Ok(ANY), |argument| this.read(argument));
        let items = |item, class| Ok(Some(Converter::Items(Box::new(item), class)));
        let construct = |function: &str, phrase: &str, takes_numbers| {
            let function = import_module(py, module)?.getattr(function)?;
            let (class, phrase) = (class.clone().unbind(), phrase.to_owned());
            let construct = Construct { class, function: function.unbind(), phrase, takes_numbers };
            Ok(Some(Converter::Construct(Box::new(construct))))
        };
        Ok(Some(match (module, name.to_str()?) {
            ("builtins", "NoneType") => Converter::Json(JsonShape::Null),
            ("builtins", "bytes") => Converter::Bytes,
            ("builtins", "complex") => return construct("complex", "a complex number such as 1+2j", true),
            ("builtins", "list")
            | ("collections.abc", "Sequence" | "MutableSequence" | "Iterable" | "Generator" | "Collection") => {
                return items(argument(self, 0)?, ItemsClass::List);
            }
            ("builtins", "set") | ("collections.abc", "Set" | "MutableSet") => {
                return items(argument(self, 0)?, ItemsClass::Set);
            }
            ("builtins", "frozenset") => return items(argument(self, 0)?, ItemsClass::FrozenSet),
            ("collections", "deque") => return items(argument(self, 0)?, ItemsClass::Deque),
            ("builtins", "tuple") => return self.read_tuple(arguments).map(Some),
            ("builtins", "dict") | ("collections.abc", "Mapping" | "MutableMapping") => {
                Converter::Map(Box::new((argument(self, 0)?, argument(self, 1)?)), MapClass::Dict)
            }
            ("collections", "OrderedDict") => {
                Converter::Map(Box::new((argument(self, 0)?, argument(self, 1)?)), MapClass::Of("OrderedDict"))
            }
            ("collections", "Counter") => {
                Converter::Map(Box::new((argument(self, 0)?, Converter::Integer)), MapClass::Of("Counter"))
            }
            ("collections", "defaultdict") => {
                let entry = Box::new((argument(self, 0)?, argument(self, 1)?));
                let factory = arguments.get(1).cloned().unwrap_or_else(|| py.None().into_bound(py));
                let factory = origin_of(&factory)?.unwrap_or(factory);
                let factory = if factory.is_callable() { factory } else { py.None().into_bound(py) };
                Converter::Map(entry, MapClass::Default(factory.unbind()))
            }
            ("datetime", "date") => Converter::Moment(Moment::Date),
            ("datetime", "time") => Converter::Moment(Moment::Time),
            ("datetime", "datetime") => Converter::Moment(Moment::DateTime),
            ("datetime", "timedelta") => Converter::Moment(Moment::Duration),
            ("decimal", "Decimal") => return construct("Decimal", "a decimal number", true),
            ("fractions", "Fraction") => return construct("Fraction", "a fraction such as 1/3", true),
            ("uuid", "UUID") => return construct("UUID", "a UUID", false),
            ("re", "Pattern") => return construct("compile", "a regular expression", false),
            ("zoneinfo", "ZoneInfo") => return construct("ZoneInfo", "a time zone such as Europe/Paris", false),
            ("ipaddress", name) => return construct(name, &format!("an address as of {name}"), false),
            ("os", "PathLike") => {
                let function = import_module(py, "pathlib")?.getattr(intern!(py, "Path"))?.unbind();
                let (class, phrase) = (class.clone().unbind(), "a path".to_owned());
                Converter::Construct(Box::new(Construct { class, function, phrase, takes_numbers: false }))
            }
            ("pathlib" | "pathlib._local", name) => return construct(name, "a path", false),
            _ => return Ok(None),
        }))
    }

    fn read_tuple(&mut self, arguments: &[Bound<'py, PyAny>]) -> PyResult<Converter> {
        let py = self.reader.py;
        Ok(match arguments {
            [] => Converter::Items(Box::new(ANY), ItemsClass::Tuple),
            [item, rest] if rest.is(py.Ellipsis()) => Converter::Items(Box::new(self.read(item)?), ItemsClass::Tuple),
            [empty] if empty.cast::<PyTuple>().is_ok_and(PyTupleMethods::is_empty) => Converter::Tuple(Box::default()),
            members => Converter::Tuple(members.iter().map(|member| self.read(member)).collect::<PyResult<_>>()?),
        })
    }
}

/// Reads `Literal[…]`: plain values stay as they are, and members of enumerations are built.
fn read_literal(annotation: &Bound<'_, PyAny>) -> PyResult<Converter> {
    let values = PyTuple::new(annotation.py(), literal_values(annotation)?)?;
    Ok(Converter::Json(JsonShape::Literal(values.unbind())))
}

/// True for `Literal[…]` of JSON values, which stay as they are.
pub(super) fn is_plain_literal(annotation: &Bound<'_, PyAny>) -> bool {
    if annotation.is_instance_of::<PyType>() || annotation.is_instance_of::<PyString>() {
        return false;
    }
    let is_literal = origin_of(annotation)
        .is_ok_and(|origin| origin.is_some_and(|origin| form_name(&origin).as_deref() == Some("Literal")));
    is_literal && arguments_of(annotation).is_ok_and(|values| values.iter().all(is_json_scalar))
}

/// The converter of a type that pydantic validates.
fn pydantic(py: Python<'_>, annotation: &Bound<'_, PyAny>) -> PyResult<Converter> {
    let adapter = import_module(py, "pydantic")?.call_method1(intern!(py, "TypeAdapter"), (annotation,))?;
    let validator = adapter.getattr(intern!(py, "validator"))?;
    let validate = validator.getattr(intern!(py, "validate_python"))?.unbind();
    let validate_text = if differs_in_json(&adapter.getattr(intern!(py, "core_schema"))?, 0)? {
        Some(validator.getattr(intern!(py, "validate_json"))?.unbind())
    } else {
        None
    };
    Ok(Converter::External(Box::new(External { library: Library::Pydantic, validate, validate_text })))
}

/// True if a core schema of pydantic accepts values as JSON text that it refuses as Python objects: in strict mode a date is a
/// text only there, and a type of the program may have a form in JSON alone.
fn differs_in_json(schema: &Bound<'_, PyAny>, depth: usize) -> PyResult<bool> {
    let py = schema.py();
    if depth > MAX_DEPTH {
        return Ok(true);
    }
    if let Ok(list) = schema.cast::<PyList>() {
        return list.iter().try_fold(false, |found, item| Ok(found || differs_in_json(&item, depth + 1)?));
    }
    let Ok(dict) = schema.cast::<PyDict>() else { return Ok(false) };
    if dict.get_item(intern!(py, "strict"))?.is_some_and(|strict| strict.is_truthy().unwrap_or(false)) {
        return Ok(true);
    }
    if let Some(python) = dict.get_item(intern!(py, "python_schema"))?
        && python.get_item(intern!(py, "type"))?.eq("is-instance")?
    {
        return Ok(true);
    }
    for (key, value) in entries_of(dict) {
        // The branch that is taken in strict mode only, of a type that has one.
        if !key.eq("strict_schema")? && differs_in_json(&value, depth + 1)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The converter of a type that msgspec validates.
fn msgspec(py: Python<'_>, annotation: &Bound<'_, PyAny>) -> PyResult<Converter> {
    let Some(module) = loaded_module(py, "msgspec")? else { return Ok(ANY) };
    let options = PyDict::new(py);
    options.set_item("type", annotation)?;
    let convert = module.getattr(intern!(py, "convert"))?;
    let partial = crate::bindings::imported::PARTIAL.get(py)?;
    let validate = partial.call((convert,), Some(&options))?.unbind();
    Ok(Converter::External(Box::new(External { library: Library::Msgspec, validate, validate_text: None })))
}

/// The effect of a converter on accepted JSON values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Effect {
    /// They stay as they are.
    None,
    /// Integers become floats.
    Floats,
    /// Objects are built.
    Objects,
}

impl Effect {
    /// The effect of a converter. `definitions` are those that are complete; `seen` are those that are being looked at.
    fn of(converter: &Converter, definitions: &[Converter], seen: &mut Vec<usize>) -> Self {
        let mut of = |converter: &Converter| Self::of(converter, definitions, seen);
        match converter {
            Converter::Json(JsonShape::Literal(values)) => {
                let is_json = Python::attach(|py| values.bind(py).iter().all(|value| is_json_scalar(&value)));
                if is_json { Self::None } else { Self::Objects }
            }
            Converter::Json(_) | Converter::Integer => Self::None,
            Converter::Float => Self::Floats,
            Converter::Items(inner, ItemsClass::List) | Converter::Nullable(inner) => of(inner),
            Converter::Map(entry, MapClass::Dict) if matches!(entry.0, Converter::Json(_)) => {
                if of(&entry.0) == Self::None { of(&entry.1) } else { Self::Objects }
            }
            // The member that a value is of decides about its numbers.
            Converter::Union(members) if members.iter().all(|member| of(member) == Self::None) => Self::None,
            Converter::Record(record) => {
                record.dict_converters().map_or(Self::Objects, |fields| fields.map(of).max().unwrap_or(Self::None))
            }
            Converter::Definition(index) if seen.contains(index) => Self::None,
            Converter::Definition(index) => {
                seen.push(*index);
                definitions.get(*index).map_or(Self::Objects, |target| Self::of(target, definitions, seen))
            }
            _ => Self::Objects,
        }
    }
}

/// True if accepted JSON values of this type stay as they are, as far as is known while definitions are being read.
fn is_plain(converter: &Converter) -> bool {
    Effect::of(converter, &[], &mut Vec::new()) == Effect::None
}

/// True if the conversion alone checks a value, so that checking it against the schema too would do the same twice.
fn is_complete(converter: &Converter) -> bool {
    match converter {
        Converter::External(_) => true,
        Converter::Nullable(inner) | Converter::Items(inner, ItemsClass::List) => is_complete(inner),
        _ => false,
    }
}
