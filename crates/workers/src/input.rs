//! Input requests of a call: forms, URLs and sampling.

use std::{collections::BTreeMap, time::Duration};

use outlive::{
    server::{
        Error, Result,
        durable::{Audience, ElicitOutcome, Key},
    },
    wire::{CreateMessageRequestParams, RawJson, RequestedSchema},
};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;

use crate::{
    line::from_worker::InputMessage,
    operations::{Reply, Work},
    requests::Caller,
};

/// Form of a request without fields.
const YES_OR_NO: &str = r#"{"yes":{"type":"boolean","title":"Yes"}}"#;

/// Time that an inline call waits for parallel requests, so that its client gets them together.
const TOGETHER: Duration = Duration::from_millis(2);

impl Caller {
    /// Returns the work of an input request.
    pub(crate) fn input(self, input: InputMessage, key: Key) -> Work {
        Box::pin(async move {
            if self.cx.task_id().is_none() {
                tokio::time::sleep(TOGETHER).await;
            }
            let text = input.key.clone();
            match self.respond(input, key).await {
                Ok(line) => Reply::Line(line),
                Err(error) => self.rejected(&text, error),
            }
        })
    }

    async fn respond(&self, input: InputMessage, key: Key) -> Result<String> {
        let timeout = input.timeout_ms.map(Duration::from_millis);
        if let Some(sample) = &input.sample {
            let params: CreateMessageRequestParams = serde_json::from_str(sample.get())
                .map_err(|error| Error::new(format!("`sample` of the input request: {error}")))?;
            let mut request = self.cx.sample(key, params);
            if let Some(timeout) = timeout {
                request = request.timeout(timeout);
            }
            let result = request.await?;
            return Ok(self.responses.sampled(&input.key, &result));
        }
        let audience = audience(input.audience.as_deref())?;
        let text = input.key.clone();
        if let Some(url) = input.url {
            let mut request = self.cx.elicit_url(key, input.message, url).audience(audience);
            if let Some(timeout) = timeout {
                request = request.timeout(timeout);
            }
            return Ok(self.line(&text, request.outcome().await?, |()| None));
        }
        let schema = form(input.fields.as_deref(), input.required.as_deref())?;
        let mut request = self.cx.elicit_with::<RawJson>(key, input.message, schema);
        if let Some(timeout) = timeout {
            request = request.timeout(timeout);
        }
        let outcome = request.audience(audience).outcome().await?;
        Ok(self.line(&text, outcome, Some))
    }

    fn line<T>(
        &self,
        key: &str,
        outcome: ElicitOutcome<T>,
        content: impl FnOnce(T) -> Option<RawJson>,
    ) -> String {
        match outcome {
            ElicitOutcome::Accepted(value) => {
                self.responses.response(key, "accept", content(value).as_deref())
            }
            ElicitOutcome::Declined => self.responses.response(key, "decline", None),
            ElicitOutcome::Cancelled => self.responses.response(key, "cancel", None),
        }
    }
}

/// Builds a form. Its fields keep their order. By default, fields without a default value are
/// required.
fn form(fields: Option<&RawValue>, required: Option<&[String]>) -> Result<RequestedSchema> {
    #[derive(Deserialize)]
    struct Field {
        #[serde(default)]
        default: Option<IgnoredAny>,
    }
    let invalid =
        |error: serde_json::Error| Error::new(format!("`fields` of the input request: {error}"));
    let fields = fields.map_or(YES_OR_NO, RawValue::get);
    let required = match required {
        Some(required) => required.to_vec(),
        None => {
            let fields: BTreeMap<String, Field> = serde_json::from_str(fields).map_err(invalid)?;
            let is_required =
                |(name, field): (String, Field)| field.default.is_none().then_some(name);
            fields.into_iter().filter_map(is_required).collect()
        }
    };
    let required = serde_json::to_string(&required).map_err(invalid)?;
    let schema = format!(r#"{{"type":"object","properties":{fields},"required":{required}}}"#);
    serde_json::from_str(&schema).map_err(invalid)
}

/// Reads the parties that may respond.
fn audience(raw: Option<&RawValue>) -> Result<Audience> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Word(String),
        Names(Vec<String>),
        Scope { scope: String },
    }
    let Some(raw) = raw else { return Ok(Audience::Client) };
    match serde_json::from_str(raw.get()) {
        Ok(Written::Word(word)) if word == "client" => Ok(Audience::Client),
        Ok(Written::Word(word)) if word == "caller" => Ok(Audience::Caller),
        Ok(Written::Names(names)) if !names.is_empty() => Ok(Audience::Names(names)),
        Ok(Written::Scope { scope }) => Ok(Audience::Scope(scope)),
        _ => Err(Error::new(
            "`audience` of the input request must be \"client\", \"caller\", a list of names, or {\"scope\":\"…\"}",
        )),
    }
}

#[cfg(test)]
mod tests {
    use outlive::server::durable::Audience;
    use serde_json::value::RawValue;

    use super::{audience, form};

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn form_without_fields_is_yes_or_no() {
        let form = form(None, None).unwrap();
        assert_eq!(form.required.as_deref(), Some(&["yes".to_owned()][..]));
    }

    #[test]
    fn form_field_with_default_is_optional_and_order_stays() {
        let fields = r#"{"z":{"type":"string"},"a":{"type":"integer","default":1}}"#;
        let form = form(Some(&raw(fields)), None).unwrap();
        assert_eq!(form.required.as_deref(), Some(&["z".to_owned()][..]));
        let text = serde_json::to_string(&form).unwrap();
        assert!(text.find("\"z\"").unwrap() < text.find("\"a\"").unwrap(), "{text}");
    }

    #[test]
    fn invalid_form_or_audience_is_rejected() {
        assert!(form(Some(&raw("[]")), None).is_err());
        for text in ["\"all\"", "[]", "5", "{}"] {
            assert!(audience(Some(&raw(text))).is_err(), "{text}");
        }
        assert!(matches!(audience(None), Ok(Audience::Client)));
        assert!(matches!(audience(Some(&raw("\"caller\""))), Ok(Audience::Caller)));
        assert!(matches!(audience(Some(&raw("[\"ada\"]"))), Ok(Audience::Names(_))));
        assert!(matches!(audience(Some(&raw("{\"scope\":\"a:b\"}"))), Ok(Audience::Scope(_))));
    }
}
