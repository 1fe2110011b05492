//! Tests of the generated code and of the parsers.
//!
//! `tests/it/expand.rs` in `suite` tests its behavior, `tests/ui` the compile errors.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;

use crate::{description, prompt, resource, template, tool};

#[track_caller]
fn check(made: &TokenStream, expected: &TokenStream) {
    assert_eq!(made.to_string(), expected.to_string());
}

/// Type of the product, function that returns it, and name in the documentation.
type Product = (&'static str, &'static str, &'static str);

const TOOL: Product = ("Tool", "tool", "Tool");
const RESOURCE: Product = ("Resource", "resource", "Resource");

/// The type next to a function.
fn beside(
    visibility: &TokenStream,
    name: &TokenStream,
    (built, function, doc): Product,
    content: &TokenStream,
) -> TokenStream {
    let type_doc = format!("{doc} of the function [`{name}`](fn@{name}).");
    let function_doc = format!("Returns the {}, for the builder of a server.", doc.to_lowercase());
    let built = Ident::new(built, Span::call_site());
    let function = Ident::new(function, Span::call_site());
    quote! {
        #[doc = #type_doc]
        #[allow(non_camel_case_types)]
        #[derive(Debug)]
        #[non_exhaustive]
        #visibility enum #name {}
        #[allow(deprecated)]
        impl #name {
            #[doc = #function_doc]
            #visibility fn #function() -> ::outlive::server::#built { #content }
        }
    }
}

/// Asserts that the expansion contains a compile error with this text.
#[track_caller]
fn refused(made: &TokenStream, expected: &str) {
    let made = made.to_string();
    assert!(made.contains("compile_error"), "no compile error: {made}");
    assert!(made.contains(expected), "{made}\ndoes not contain: {expected}");
}

#[test]
fn tool_expands_to_builder_calls() {
    let made = tool::expand(
        quote!(title = "Addition", read_only, destructive = false),
        quote! {
            /// Adds two numbers.
            #[instrument]
            pub(crate) async fn add(
                cx: Cx,
                #[doc = " One."] mut a: i64,
                #[header("Region")] #[serde(default)] _b: i64,
            ) -> String { a += 1; a.to_string() }
        },
    );
    let product = beside(
        &quote!(pub(crate)),
        &quote!(add),
        TOOL,
        &quote! {
            #[derive(::outlive::__private::serde::Deserialize, ::outlive::__private::schemars::JsonSchema)]
            #[serde(crate = "::outlive::__private::serde")]
            #[schemars(crate = "::outlive::__private::schemars")]
            struct __Arguments {
                #[doc = " One."]
                a: i64,
                #[serde(default)]
                #[schemars(extend("x-mcp-header" = "Region"))]
                b: i64
            }
            ::outlive::server::Tool::new::<(::outlive::server::Args<__Arguments>, Cx,), _>(
                "add",
                |::outlive::server::Args(__Arguments { a: __value1, b: __value2 }): ::outlive::server::Args<__Arguments>,
                 __value0: Cx| add(__value0, __value1, __value2)
            )
                .description("Adds two numbers.")
                .title("Addition")
                .read_only()
                .destructive(false)
        },
    );
    let expected = quote! {
        /// Adds two numbers.
        #[instrument]
        #[doc = "\n# Arguments\n\n- `a`: One."]
        pub(crate) async fn add(cx: Cx, mut a: i64, _b: i64,) -> String { a += 1; a.to_string() }
        #product
    };
    check(&made, &expected);
}

#[test]
fn approve_expands_to_its_rule() {
    for (settings, rule) in [
        (quote!(approve = "caller"), quote!(caller())),
        (quote!(approve(scope = "ops")), quote!(scope("ops"))),
        (
            quote!(approve(by = ["ada", "ben"], count = 2, links = true)),
            quote!(by(["ada", "ben"]).count(2).links(true)),
        ),
        (quote!(approve(scope = "ops", by = ["ada"])), quote!(by(["ada"]).or_scope("ops"))),
    ] {
        let made = tool::expand(
            settings,
            quote!(
                async fn pay() {}
            ),
        )
        .to_string();
        let expected = quote!(.approve(::outlive::server::approve::Approve::#rule)).to_string();
        assert!(made.contains(&expected), "{made}\ndoes not contain: {expected}");
    }
}

#[test]
fn approve_without_approvers_is_rejected() {
    for settings in [
        quote!(approve),
        quote!(approve = "callers"),
        quote!(approve()),
        quote!(approve(count = 2)),
    ] {
        refused(
            &tool::expand(
                settings,
                quote!(
                    async fn pay() {}
                ),
            ),
            "must say who decides",
        );
    }
    for settings in [quote!(approve("ada")), quote!(approve(by("ada"))), quote!(approve(who = 1))] {
        refused(
            &tool::expand(
                settings,
                quote!(
                    async fn pay() {}
                ),
            ),
            "unknown setting",
        );
    }
}

#[test]
fn policy_word_expands_to_its_path() {
    for (settings, policy) in [
        (quote!(task = "auto"), quote!(.task(::outlive::server::tasks::TaskPolicy::auto()))),
        (quote!(task = "always"), quote!(.task(::outlive::server::tasks::TaskPolicy::Always))),
        (quote!(task = "never"), quote!(.task(::outlive::server::tasks::TaskPolicy::Never))),
        (
            quote!(resume_policy = "same-revision"),
            quote!(.resume_policy(::outlive::server::durable::ResumePolicy::SameRevision)),
        ),
    ] {
        let made = tool::expand(
            settings,
            quote!(
                async fn slow() {}
            ),
        );
        let content = quote!(::outlive::server::Tool::new::<(), _>("slow", slow) #policy);
        let product = beside(&quote!(), &quote!(slow), TOOL, &content);
        check(&made, &quote!(async fn slow() {} #product));
    }
}

#[test]
fn scopes_in_parentheses_expand_to_one_call() {
    let function = quote!(
        async fn wipe() {}
    );
    let scoped = quote!(.scopes(["files:write", ADMIN]).always_listed());
    let scopes = quote!(scopes("files:write", ADMIN), always_listed);
    let prompt = ("Prompt", "prompt", "Prompt");
    for (made, product, new) in [
        (tool::expand(scopes.clone(), function.clone()), TOOL, quote!("wipe")),
        (prompt::expand(scopes.clone(), function.clone()), prompt, quote!("wipe")),
        (
            resource::expand(quote!("a://b", #scopes), function.clone()),
            RESOURCE,
            quote!("a://b", "wipe"),
        ),
    ] {
        let built = Ident::new(product.0, Span::call_site());
        let content = quote!(::outlive::server::#built::new::<(), _>(#new, wipe) #scoped);
        let product = beside(&quote!(), &quote!(wipe), product, &content);
        check(&made, &quote!(#function #product));
    }
}

#[test]
fn parameter_named_args_takes_all_arguments() {
    let made = tool::expand(
        quote!(name = NAME, description = include_str!("search.md")),
        quote! {
            /// Not this.
            async fn search(args: Query, #[extract] session: Option<Session>) {}
        },
    );
    let content = quote! {
        ::outlive::server::Tool::new::<(::outlive::server::Args<Query>, Option<Session>,), _>(
            NAME,
            |::outlive::server::Args(__value0): ::outlive::server::Args<Query>, __value1: Option<Session>|
                search(__value0, __value1)
        )
            .description(include_str!("search.md"))
    };
    let product = beside(&quote!(), &quote!(search), TOOL, &content);
    let expected = quote! {
        /// Not this.
        async fn search(args: Query, session: Option<Session>) {}
        #product
    };
    check(&made, &expected);
}

#[test]
fn parameter_of_unknown_type_is_decided_by_the_compiler() {
    let made = tool::expand(
        quote!(),
        quote!(
            async fn pack(cx: Ctx, size: Size) {}
        ),
    )
    .to_string();
    assert!(made.contains("ExtractorProbe < Ctx >> :: IS_EXTRACTOR"), "{made}");
    assert!(made.contains("cx : < __Parameter0 as"), "{made}");
    assert!(made.contains("Choose < Size >> :: take (__value1 , __extracted1)"), "{made}");
    assert!(made.contains("without_extractors"), "{made}");
    let made = resource::expand(
        quote!("a://{size}"),
        quote!(
            async fn pack(cx: Ctx, size: Size) {}
        ),
    )
    .to_string();
    assert!(!made.contains("ExtractorProbe < Ctx >"), "a URI cannot fill it: {made}");
    assert!(made.contains("ExtractorProbe < Size >"), "{made}");
}

#[test]
fn resource_uri_with_braces_expands_to_template() {
    let plain = resource::expand(
        quote!("config://app"),
        quote!(
            async fn config() {}
        ),
    );
    let content =
        quote!(::outlive::server::Resource::new::<(), _>("config://app", "config", config));
    let product = beside(&quote!(), &quote!(config), RESOURCE, &content);
    check(&plain, &quote!(async fn config() {} #product));
    let template = resource::expand(
        quote!("users://{id}", name = "user"),
        quote!(
            async fn by_id(args: User) {}
        ),
    )
    .to_string();
    assert!(
        template.contains("fn resource_template () -> :: outlive :: server :: ResourceTemplate"),
        "{template}"
    );
    assert!(template.contains(r#"("users://{id}" , "user" , |"#), "{template}");
}

#[test]
fn raw_identifiers_lose_their_prefix() {
    let made = prompt::expand(
        quote!(),
        quote!(
            async fn r#match(r#type: String, _type_: String) {}
        ),
    )
    .to_string();
    assert!(made.contains(r#"("match" , |"#) && made.contains("enum r#match { }"), "{made}");
    assert!(made.contains("{ r#type : __value0 , type_ : __value1 }"), "{made}");
}

#[test]
fn leading_underscore_before_keyword_expands_to_raw_identifier() {
    let made = prompt::expand(
        quote!(),
        quote!(
            async fn f(_type: String, _1: u8, _: u8) {}
        ),
    )
    .to_string();
    refused(
        &prompt::expand(
            quote!(),
            quote!(
                async fn f(_: u8) {}
            ),
        ),
        "an argument needs a plain name",
    );
    assert!(!made.contains("__Arguments"), "an invalid function is not expanded: {made}");
    let made = prompt::expand(
        quote!(),
        quote!(
            async fn f(_type: String, _1: u8) {}
        ),
    )
    .to_string();
    assert!(made.contains("{ r#type : __value0 , _1 : __value1 }"), "{made}");
}

#[test]
fn invalid_settings_keep_the_rest_of_the_expansion() {
    let made = tool::expand(
        quote!(titel = "x", read_only),
        quote!(
            async fn f(a: u8) {}
        ),
    );
    refused(&made, "unknown key `titel`; did you mean `title`? known keys: `name`, `title`,");
    let made = made.to_string();
    assert!(made.contains("__Arguments") && made.contains("read_only ()"), "{made}");
}

#[test]
fn invalid_settings_report_a_remedy() {
    let with = |settings| {
        tool::expand(
            settings,
            quote!(
                async fn f() {}
            ),
        )
    };
    refused(&with(quote!(shape)), "unknown key `shape`; known keys:");
    refused(&with(quote!(title)), "`title` must be a string; write `title = \\\"…\\\"`");
    refused(&with(quote!(title = 5)), "`title` must be a string");
    refused(&with(quote!(read_only = true)), "`read_only` takes no value");
    refused(&with(quote!(destructive = "no")), "write `destructive` or `destructive = false`");
    refused(&with(quote!(read_only, read_only)), "duplicate key `read_only`");
    for wrong in [quote!(task), quote!(task = "sometimes"), quote!(task = true)] {
        refused(
            &with(wrong),
            "`task` has an unknown value; use `task = \\\"never\\\"`, `task = \\\"auto\\\"`,",
        );
    }
    refused(
        &resource::expand(
            quote!(name = "x"),
            quote!(
                async fn f() {}
            ),
        ),
        "the URI comes first",
    );
}

#[test]
fn invalid_functions_report_a_remedy() {
    let with = |function| tool::expand(quote!(), function);
    refused(
        &with(quote!(
            async fn f(a: &str) {}
        )),
        "arguments must be owned",
    );
    refused(
        &with(quote!(
            async fn f(a: impl Into<String>) {}
        )),
        "cannot be generic",
    );
    refused(
        &with(quote!(
            unsafe fn f() {}
        )),
        "plain async functions",
    );
    refused(
        &with(quote!(
            async fn f(a: u8, args: Query) {}
        )),
        "already taken",
    );
    refused(
        &with(quote!(
            async fn f(Args(a): Args<Query>, b: u8) {}
        )),
        "already taken",
    );
    refused(
        &with(quote!(
            async fn f(#[validate] a: u8) {}
        )),
        "an argument accepts only",
    );
    refused(
        &with(quote!(
            async fn f(#[serde(default)] a: State<u8>) {}
        )),
        "is an extractor",
    );
    refused(
        &with(quote!(
            async fn f(#[header] a: u8) {}
        )),
        "write `#[header(\\\"Name\\\")]`",
    );
    refused(
        &with(quote!(
            struct NotAFunction;
        )),
        "`#[tool]` needs an `async fn`",
    );
    refused(
        &prompt::expand(
            quote!(),
            quote!(
                async fn f(#[header("A")] a: u8) {}
            ),
        ),
        "remove `#[header]`",
    );
}

#[test]
fn template_variables_match_the_wire_names_of_arguments() {
    let with = |function| resource::expand(quote!("db://{user.id}{?limit,type}"), function);
    let fine = with(quote! {
        async fn f(#[serde(rename = "user.id", default)] id: u8, _limit: u8, r#type: u8, #[serde(flatten)] rest: Rest) {}
    });
    assert!(!fine.to_string().contains("compile_error"), "{fine}");
    refused(
        &with(quote!(
            async fn f(#[serde(default, rename = "user")] limit: u8) {}
        )),
        "has no variable `user`",
    );
}

#[test]
fn doc_comments_expand_to_text() {
    #[track_caller]
    fn check(comments: &TokenStream, expected: Option<&str>) {
        let function: syn::ItemFn = syn::parse_quote!(#comments fn f() {});
        let expected = expected.map(|text| quote!(#text).to_string());
        assert_eq!(description::of(&function.attrs).map(|text| text.to_string()), expected);
    }
    check(&quote!(), None);
    check(&quote!(#[doc = ""] #[doc(hidden)]), None);
    check(&quote!(#[doc = " One line."]), Some("One line."));
    check(
        &quote!(#[doc = ""] #[doc = " First."] #[doc = ""] #[doc = "   Indented. "] #[doc = ""] #[doc = " "]),
        Some("First.\n\n  Indented."),
    );
    check(&quote!(#[doc = " One\n    * two\n    *\n    *  three "]), Some("One\ntwo\n\n three"));
    check(&quote!(#[doc = "\n One\n two\n "]), Some("One\ntwo"));
}

#[test]
fn doc_comments_with_macros_expand_to_concat() {
    let function: syn::ItemFn = syn::parse_quote!(
        #[doc = " Before."]
        #[doc = include_str!("f.md")]
        fn f() {}
    );
    let made = description::of(&function.attrs).unwrap();
    check(&made, &quote!(::core::concat!("Before.", "\n", include_str!("f.md"))));
    check(&description::of(&function.attrs[1..]).unwrap(), &quote!(include_str!("f.md")));
}

#[test]
fn template_variables_of_every_expression_kind_are_found() {
    #[track_caller]
    fn check(template: &str, expected: Result<&[&str], &str>) {
        assert_eq!(template::variables(template).as_deref().map_err(String::as_str), expected);
    }
    check("config://app", Ok(&[]));
    check("a://{b}/{+c}{?d,e}{/f*}{g:3}{#h}", Ok(&["b", "c", "d", "e", "f", "g", "h"]));
    check("a://{b", Err("the `{` before `b` is never closed; add a `}`"));
    check("a://{?b,}", Err("`{?b,}` has no variable name; write `{name}`"));
}
