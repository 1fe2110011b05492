//! The filter of a list of tasks, as an address or a JSON object has it.

use outlive::store::{TaskQuery, TaskState, UnixMillis};

use crate::times;

/// Names of the conditions.
pub(crate) const NAMES: [&str; 6] = ["state", "tool", "caller", "tag", "since", "until"];

/// Reads a filter. `get` returns the value of a condition; an empty value adds no condition.
///
/// # Errors
///
/// Returns the reason if a value is not valid.
pub(crate) fn read<'v>(
    get: impl Fn(&'static str) -> Option<&'v str>,
    now: UnixMillis,
) -> Result<TaskQuery, String> {
    let given = |name| get(name).map(str::trim).filter(|value| !value.is_empty());
    let text = |name| given(name).map(str::to_owned);
    let time = |name| {
        let time = |value: &str| {
            let remedy = "use a time such as 2026-07-28T12:00:00Z, or a span such as 24h";
            times::parse(value, now).ok_or_else(|| format!("`{name}` is not a time; {remedy}"))
        };
        given(name).map(time).transpose()
    };
    let state = given("state").map(|name| {
        TaskState::from_name(name).ok_or_else(|| {
            let names = TaskState::ALL.map(TaskState::as_str).join("`, `");
            format!("`state` is unknown; use one of `{names}`")
        })
    });
    let mut query = TaskQuery::default()
        .state(state.transpose()?)
        .tool(text("tool"))
        .person(text("caller"))
        .tag(text("tag"));
    (query.since, query.until) = (time("since")?, time("until")?);
    Ok(query)
}

#[cfg(test)]
mod tests {
    use outlive::store::{TaskQuery, TaskState};

    use super::read;
    use crate::urlencoded::Values;

    fn query(text: &str) -> Result<TaskQuery, String> {
        let values = Values::decode(text.as_bytes());
        read(|name| values.get(name), 1_785_240_000_000)
    }

    #[test]
    fn conditions_are_read_by_name() {
        let expected = TaskQuery::default()
            .state(Some(TaskState::InputRequired))
            .tool(Some("deploy".to_owned()))
            .person(Some("ann".to_owned()))
            .tag(Some("order=1".to_owned()))
            .since(Some(1_785_153_600_000))
            .until(Some(1_785_196_800_000));
        let text = "state=input-required&tool=+deploy&caller=ann&tag=order%3D1&since=24h\
            &until=2026-07-28";
        assert_eq!(query(text), Ok(expected));
        assert_eq!(query("state=&tool=&x=1"), Ok(TaskQuery::default()));
    }

    #[test]
    fn invalid_condition_names_its_remedy() {
        assert!(query("state=done").unwrap_err().contains("`completed`"));
        assert!(query("since=yesterday").unwrap_err().contains("24h"));
    }
}
