//! `known(x)`: a value that must be there for the answer to be right.

use datafusion::arrow::array::Array as _;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

/// The function.
pub(crate) fn udf() -> ScalarUDF {
    ScalarUDF::from(Known { signature: Signature::any(1, Volatility::Volatile) })
}

/// Gives back its argument, and fails where that is null. It is called volatile, so that it is asked of rows and of nothing
/// else: of a file that the other conditions leave out it need not be known what is deleted. Of the rows of one batch all
/// are asked, whatever the other conditions say of them.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Known {
    signature: Signature,
}

impl ScalarUDFImpl for Known {
    fn name(&self) -> &'static str {
        "known"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        let [argument] = arguments else { return exec_err!("known takes one argument") };
        Ok(argument.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Ok([value]) = <[ColumnarValue; 1]>::try_from(args.args) else {
            return exec_err!("known takes one argument");
        };
        let is_unknown = match &value {
            ColumnarValue::Array(array) => array.logical_null_count() > 0,
            ColumnarValue::Scalar(scalar) => scalar.is_null(),
        };
        if is_unknown {
            return exec_err!(
                "what the answer rests on is not known: a cursor, a manifest or a delete file cannot be read\n  hint: see \
                 cache.problems; schema raw shows what can be read"
            );
        }
        Ok(value)
    }
}
