//! Addresses of the server for people.

/// Address of a server for people, and the path of its console.
#[derive(Debug, Default)]
pub(crate) struct PublicAddress {
    /// Address under which people reach the server, without a slash at its end.
    pub(crate) url: Option<String>,
    /// Path of the console, if the server has one.
    pub(crate) console: Option<String>,
}

impl PublicAddress {
    /// Returns the page of a task, or of one of its input requests, behind sign-in. Returns `None` if
    /// the server has no console or does not know its address.
    pub(crate) fn page(&self, task: &str, input_request: Option<&str>) -> Option<String> {
        let console = format!("{}{}", self.url.as_ref()?, self.console.as_ref()?);
        let task = encoded(task);
        Some(match input_request {
            Some(key) => format!("{console}/inputs/{task}/{}", encoded(key)),
            None => format!("{console}/tasks/{task}"),
        })
    }
}

/// Returns a text as one segment of a path.
fn encoded(segment: &str) -> String {
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    let encoded = segment.bytes().map(|byte| match is_plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    });
    encoded.collect()
}

#[cfg(test)]
mod tests {
    use super::PublicAddress;

    #[test]
    fn page_is_below_the_public_url_and_the_path_of_the_console() {
        let url = Some("https://a.example/tools".to_owned());
        let address = PublicAddress { url, console: Some("/console".to_owned()) };
        let page = |key| address.page("t1", key).unwrap();
        assert_eq!(page(None), "https://a.example/tools/console/tasks/t1");
        let key = Some("#approval/ü");
        assert_eq!(page(key), "https://a.example/tools/console/inputs/t1/%23approval%2F%C3%BC");
    }

    #[test]
    fn server_without_console_or_public_url_has_no_pages() {
        let url = Some("https://a.example".to_owned());
        let console = Some("/console".to_owned());
        let addresses = [(url, None), (None, console)];
        for (url, console) in addresses {
            assert_eq!(PublicAddress { url, console }.page("t1", None), None);
        }
    }
}
