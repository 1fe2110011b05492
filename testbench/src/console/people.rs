//! The people of the servers under test, with their tokens.

/// A person in the token file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Person {
    pub(super) name: &'static str,
    /// Token of the person's MCP clients.
    pub(super) token: &'static str,
    /// Token that decides, which the MCP endpoint rejects.
    pub(super) deciding: &'static str,
}

/// Two callers.
pub(super) const ANN: Person =
    Person { name: "ann", token: "ann-mcp-0123456789abcdef", deciding: "ann-dec-0123456789abcdef" };
pub(super) const BOB: Person =
    Person { name: "bob", token: "bob-mcp-0123456789abcdef", deciding: "bob-dec-0123456789abcdef" };
/// An operator and approver.
pub(super) const ADA: Person =
    Person { name: "ada", token: "ada-mcp-0123456789abcdef", deciding: "ada-dec-0123456789abcdef" };
/// Approvers.
pub(super) const BEN: Person =
    Person { name: "ben", token: "ben-mcp-0123456789abcdef", deciding: "ben-dec-0123456789abcdef" };
pub(super) const CID: Person =
    Person { name: "cid", token: "cid-mcp-0123456789abcdef", deciding: "cid-dec-0123456789abcdef" };
pub(super) const DAN: Person =
    Person { name: "dan", token: "dan-mcp-0123456789abcdef", deciding: "dan-dec-0123456789abcdef" };
/// A viewer.
pub(super) const EVA: Person =
    Person { name: "eva", token: "eva-mcp-0123456789abcdef", deciding: "eva-dec-0123456789abcdef" };

/// All people with an MCP token.
pub(super) const ALL: [Person; 7] = [ANN, BOB, ADA, BEN, CID, DAN, EVA];

/// Number of guests. They only sign in.
pub(super) const GUESTS: usize = 20;

/// The deciding token of a guest.
pub(super) fn guest_token(number: usize) -> String {
    format!("guest-{number}-0123456789abcdef")
}

/// The lines of the token file.
pub(super) fn token_file() -> String {
    let lines = ALL.iter().map(|Person { name, token, deciding }| {
        format!("{name} {token}\n{name} {deciding} decide\n")
    });
    let guests =
        (0..GUESTS).map(|number| format!("guest-{number} {} decide\n", guest_token(number)));
    lines.chain(guests).collect()
}
