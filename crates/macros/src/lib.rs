//! `#[tool]`, `#[resource]`, `#[prompt]` and `#[derive(Form)]`: less to type, nothing to hide.
//!
//! Each turns an async function into a function without arguments that returns what the builder
//! wants. What is written out is a call of the public builder and nothing else; whatever a macro
//! cannot say is said on what it returns: `.tool(add().max_concurrent(4))`.
//!
//! The path of one expansion: `function` reads the function, `params` sorts its parameters into
//! extractors and arguments, `settings` reads what stands in the attribute, and `tool`, `resource`
//! and `prompt` put the builder calls together.

mod description;
mod errors;
mod field;
mod form;
mod function;
mod params;
mod prompt;
mod resource;
mod settings;
mod template;
mod tool;

#[cfg(test)]
mod tests;

use proc_macro::TokenStream;

/// Makes a tool of an async function.
///
/// ```
/// use outlive::{server::Server, tool};
///
/// /// Adds two numbers.
/// #[tool(read_only)]
/// async fn add(
///     /// The first number.
///     a: i64,
///     /// The second number.
///     b: i64,
/// ) -> String {
///     (a + b).to_string()
/// }
///
/// let server = Server::builder("calculator", "1.0.0").tool(add()).build()?;
/// # Ok::<(), outlive::server::BuildError>(())
/// ```
///
/// The tool's name is the function's, its description the doc comment.
///
/// # Parameters
///
/// - A parameter whose type is called `Cx`, `State`, `Args`, `RawParams`, `Principal`, `Partial`,
///   `Durable` or `Task` is an extractor; so is one marked with `#[extract]`.
/// - A parameter called `args` is all arguments at once, of a type of yours that derives
///   `Deserialize` and `JsonSchema`.
/// - Every other parameter is one argument: its name is the argument's, less underscores in front;
///   its doc comment is the description; an `Option` may be left out. `#[serde(…)]` and
///   `#[schemars(…)]` mean what they mean on a field. `#[header("Region")]` has clients repeat the
///   argument in the header `Mcp-Param-Region`.
///
/// Your crate needs neither `serde` nor `schemars` for this, only for types of your own.
///
/// ```
/// use outlive::{server::{Cx, Server, State}, tool};
///
/// struct Forecasts;
///
/// #[tool(name = "forecast", title = "Weather forecast", open_world)]
/// async fn look_up_forecast(
///     forecasts: State<Forecasts>,
///     cx: Cx,
///     /// The city, in English.
///     city: String,
///     #[header("Region")] region: String,
///     #[serde(default = "a_week")] days: u8,
///     language: Option<String>,
/// ) -> String {
///     # let _ = (forecasts, cx, language);
///     format!("{days} days of rain in {city}, {region}")
/// }
///
/// fn a_week() -> u8 {
///     7
/// }
///
/// let server = Server::builder("weather", "1.0.0").state(Forecasts).tool(look_up_forecast()).build()?;
/// # Ok::<(), outlive::server::BuildError>(())
/// ```
///
/// # Keys
///
/// `name = "…"`, `title = "…"`, `description = "…"`, `read_only`, `idempotent`, `destructive` and
/// `open_world`; the last two also `= false`; `incremental`; and `task = "auto"`, `"always"` or
/// `"never"`, which says whether calls become tasks (`"auto"` is `TaskPolicy::auto()`); and
/// `resume = "any-revision"` or `"same-revision"`; `scopes("one", "two")`, all of which a caller
/// needs, and `listed_always`. Each is the method of that name of the builder.
///
/// # What it becomes
///
/// ```
/// # use outlive::server::{Args, Tool};
/// fn add() -> Tool {
///     #[derive(serde::Deserialize, schemars::JsonSchema)]
///     struct Arguments {
///         /// The first number.
///         a: i64,
///         /// The second number.
///         b: i64,
///     }
///     async fn add(Args(Arguments { a, b }): Args<Arguments>) -> String {
///         (a + b).to_string()
///     }
///     Tool::new("add", add).description("Adds two numbers.").read_only()
/// }
/// # let _ = add();
/// ```
#[proc_macro_attribute]
pub fn tool(settings: TokenStream, function: TokenStream) -> TokenStream {
    tool::expand(settings.into(), function.into()).into()
}

/// Makes a resource, or a template of resources, of an async function.
///
/// ```
/// use outlive::{resource, server::Server};
///
/// /// The settings of this application.
/// #[resource("config://app", mime_type = "application/json")]
/// async fn config() -> String {
///     r#"{"debug": false}"#.into()
/// }
///
/// /// A user, by number.
/// #[resource("users://{id}{?fields}", name = "user")]
/// async fn user_by_id(id: u64, fields: Option<String>) -> Option<String> {
///     (id == 1).then(|| format!("ada: {}", fields.as_deref().unwrap_or("all")))
/// }
///
/// let server = Server::builder("users", "1.0.0")
///     .resource(config())
///     .resource_template(user_by_id())
///     .build()?;
/// # Ok::<(), outlive::server::BuildError>(())
/// ```
///
/// A URI with a `{` in it makes a `ResourceTemplate`. The parameters that are not extractors are
/// its variables; one that the template does not have is an error. Parameters are otherwise read as
/// by [`macro@tool`]. Variables that a URI may leave out should be `Option`s.
///
/// # Keys
///
/// The URI first; then `name = "…"`, `title = "…"`, `description = "…"`, `mime_type = "…"`,
/// `scopes("…")` and `listed_always`.
#[proc_macro_attribute]
pub fn resource(settings: TokenStream, function: TokenStream) -> TokenStream {
    resource::expand(settings.into(), function.into()).into()
}

/// Makes a prompt of an async function.
///
/// ```
/// use outlive::{prompt, server::Server};
///
/// /// Asks for a review.
/// #[prompt(title = "Review code")]
/// async fn review(
///     /// The code.
///     code: String,
///     language: Option<String>,
/// ) -> String {
///     format!("Please review this {}:\n\n{code}", language.as_deref().unwrap_or("code"))
/// }
///
/// let server = Server::builder("reviews", "1.0.0").prompt(review()).build()?;
/// # Ok::<(), outlive::server::BuildError>(())
/// ```
///
/// Parameters are read as by [`macro@tool`]. Clients send texts; a parameter may be a number, a
/// boolean or an enum all the same.
///
/// # Keys
///
/// `name = "…"`, `title = "…"`, `description = "…"`, `scopes("…")` and `listed_always`.
#[proc_macro_attribute]
pub fn prompt(settings: TokenStream, function: TokenStream) -> TokenStream {
    prompt::expand(settings.into(), function.into()).into()
}

/// Makes a struct one that a user can be asked to fill in, or an enum one that can be chosen from.
///
/// ```
/// use outlive::Form;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema, Form)]
/// struct Order {
///     /// How many.
///     #[schemars(range(min = 1, max = 10))]
///     count: u32,
///     size: Size,
///     extras: Vec<Extra>,
///     note: Option<String>,
/// }
///
/// #[derive(serde::Deserialize, schemars::JsonSchema, Form)]
/// enum Size { Small, Large }
///
/// #[derive(serde::Deserialize, schemars::JsonSchema, Form)]
/// enum Extra {
///     /// With milk
///     Milk,
///     /// With sugar
///     Sugar,
/// }
/// ```
///
/// The fields of a form are texts, numbers, booleans, enums without data that derive `Form` too,
/// `Vec`s of such enums for several choices, and `Option`s of all these for what may stay empty.
/// Titles, descriptions, defaults, bounds and formats are those of the type's JSON schema.
#[proc_macro_derive(Form)]
pub fn derive_form(item: TokenStream) -> TokenStream {
    form::expand(item.into()).into()
}
