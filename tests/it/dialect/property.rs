//! For any schema and any arguments that satisfy it: the dialect's schema is one that its provider takes, the encoded arguments satisfy
//! it, and they come back equal.

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use serde_json::Value;
use toolcrib::provider::Dialect;

use super::encode;
use super::provider::{as_validated, refuses};
use super::shape::{Dice, Shape, parameters};

const SAMPLES: usize = 5;

fn comes_back(dialect: Dialect, shape: &Shape, seed: u64) -> Result<(), TestCaseError> {
    let document = shape.document();
    let encoded = encode(dialect, &document);

    prop_assert_eq!(refuses(dialect, &encoded.schema), None, "{}", encoded.schema);
    let original = jsonschema::validator_for(&document).expect("a schema");
    let validator = jsonschema::validator_for(&as_validated(dialect, &encoded.schema)).expect("a schema");
    let mut dice = Dice(seed);
    for _ in 0..SAMPLES {
        let sample = shape.sample(&mut dice, 0);
        prop_assert!(original.is_valid(&sample), "the test itself is wrong: {document} and {sample}");

        let sent: Value = encoded.codec.encode_value(&sample);
        let back = encoded.codec.decode(sent.clone());

        let why = validator.validate(&sent).err().map(|error| format!("{error} at {}", error.instance_path()));
        prop_assert_eq!(why, None, "{} for {} of {} as {}", sent, sample, document, encoded.schema);
        prop_assert_eq!(back.as_ref().ok(), Some(&sample), "{:?} from {} of {}", back, sent, document);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn arguments_come_back_from_openai(shape in parameters(), seed in any::<u64>()) {
        comes_back(Dialect::OpenAi, &shape, seed)?;
    }

    #[test]
    fn arguments_come_back_from_openai_strict(shape in parameters(), seed in any::<u64>()) {
        comes_back(Dialect::OpenAiStrict, &shape, seed)?;
    }

    #[test]
    fn arguments_come_back_from_openai_responses(shape in parameters(), seed in any::<u64>()) {
        comes_back(Dialect::OpenAiResponses, &shape, seed)?;
    }

    #[test]
    fn arguments_come_back_from_openai_responses_strict(shape in parameters(), seed in any::<u64>()) {
        comes_back(Dialect::OpenAiResponsesStrict, &shape, seed)?;
    }

    #[test]
    fn arguments_come_back_from_anthropic(shape in parameters(), seed in any::<u64>()) {
        comes_back(Dialect::Anthropic, &shape, seed)?;
    }

    #[test]
    fn arguments_come_back_from_gemini(shape in parameters(), seed in any::<u64>()) {
        comes_back(Dialect::Gemini, &shape, seed)?;
    }

    #[test]
    fn arguments_come_back_from_mcp(shape in parameters(), seed in any::<u64>()) {
        comes_back(Dialect::Mcp, &shape, seed)?;
    }
}
