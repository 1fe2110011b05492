//! The settings of a visitor: theme, keys, sign out.

use askama::Template;

use super::context::{Frame, PageContext, Section, Theme};
use crate::html::Html;

#[derive(Template)]
#[template(path = "settings.html")]
struct SettingsPage<'a> {
    frame: Frame<'a>,
    /// Name, label, and whether it is the current one.
    themes: [(&'static str, &'static str, bool); 3],
    keys: &'static [(&'static [&'static str], &'static str)],
}

/// The keys of the script, and their effect.
const KEYS: &[(&[&str], &str)] = &[
    (&["g", "i"], "open the inbox"),
    (&["g", "t"], "open the tasks"),
    (&["g", "o"], "open the overview"),
    (&["g", "a"], "open the audit log"),
    (&["j"], "go to the next row"),
    (&["k"], "go to the previous row"),
    (&["Enter"], "open the row"),
    (&["x"], "select the row"),
    (&["/"], "go to the filter"),
    (&["p"], "pause updates"),
    (&["?"], "list the keys"),
];

/// Returns the settings page. Its forms post to the page: `theme` and `keys`, or `action=sign-out`.
pub(crate) fn render(cx: &PageContext) -> Html {
    let themes = [(Theme::System, "System"), (Theme::Light, "Light"), (Theme::Dark, "Dark")];
    let themes = themes.map(|(theme, label)| (theme.as_str(), label, theme == cx.theme));
    Html::new(&SettingsPage { frame: Frame::new(cx, Section::Settings), themes, keys: KEYS })
}

#[cfg(test)]
mod tests {
    use super::{KEYS, render};
    use crate::{
        assets,
        pages::testing::{check_page, context},
    };

    #[test]
    fn settings_show_the_current_choice() {
        let page = render(&context());
        check_page(&page);
        assert!(page.as_str().contains("value=\"system\" checked"), "{}", page.as_str());
    }

    #[test]
    fn script_handles_every_listed_key() {
        let script = assets::ALL.iter().find(|asset| asset.name == "console.js").unwrap().body;
        let page = render(&context());
        for (keys, _) in KEYS {
            let in_script = match keys {
                [key] if key.len() == 1 && key.chars().all(char::is_alphabetic) => {
                    script.contains(&format!("    {key}: "))
                }
                [key] if key.len() == 1 => script.contains(&format!("\"{key}\": ")),
                // The focus is on the link of the row.
                ["Enter"] => true,
                [_, key] => page.as_str().contains(&format!("data-key=\"{key}\"")),
                _ => false,
            };
            assert!(in_script, "{keys:?}");
        }
    }
}
