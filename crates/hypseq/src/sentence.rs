//! Numbers with what they count.

/// A count with its noun: `1 row`, `2 rows`, `12,000 rows`.
pub fn count(number: u64, singular: &str) -> String {
    format!("{} {singular}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// Digits in groups of three.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let head = digits.len() % 3;
    let mut text = digits[..head].to_owned();
    for (index, digit) in digits[head..].chars().enumerate() {
        if index % 3 == 0 && !text.is_empty() {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Bytes in a unit that a person can hold on to.
pub fn bytes(number: u64) -> String {
    let units = [(1u64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.iter().find(|(size, _)| number >= *size) {
        Some((size, unit)) => {
            let tenths = u128::from(number) * 10 / u128::from(*size);
            format!("{}.{} {unit}", tenths / 10, tenths % 10)
        }
        None => count(number, "byte"),
    }
}

/// `1–482`, or a dash where there is nothing.
pub fn range<T: ToString + PartialEq>(ends: Option<(T, T)>) -> String {
    match ends {
        Some((from, to)) if from == to => from.to_string(),
        Some((from, to)) => format!("{}–{}", from.to_string(), to.to_string()),
        None => "–".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped() {
        let shown: Vec<String> = [0, 12, 999, 1000, 255_086, 1_234_567].into_iter().map(grouped).collect();
        assert_eq!(shown, ["0", "12", "999", "1,000", "255,086", "1,234,567"]);
        assert_eq!(count(1, "row"), "1 row");
        assert_eq!(count(0, "row"), "0 rows");
    }

    #[test]
    fn bytes_have_units() {
        let shown: Vec<String> = [1, 1023, 1536, 5 << 20, u64::MAX].into_iter().map(bytes).collect();
        assert_eq!(shown, ["1 byte", "1,023 bytes", "1.5 KiB", "5.0 MiB", "17179869183.9 GiB"]);
    }

    #[test]
    fn ranges_of_one_are_one() {
        assert_eq!(range(Some((3, 3))), "3");
        assert_eq!(range(Some((3, 9))), "3–9");
        assert_eq!(range::<i64>(None), "–");
    }
}
