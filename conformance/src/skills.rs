//! The skills of the suite.

use outlive::server::{
    ServerBuilder,
    skills::{Skill, Skills},
};

const PDF: &str = "---
name: pdf-processing
description: Extract, fill, and assemble PDF documents
license: Apache-2.0
metadata:
  version: \"2.1.0\"
---

# PDF processing

Choose the matching template from `templates/`, and read `references/FORMS.md` before you fill a form.
";

const GIT: &str = "---
name: git-workflow
description: >-
  Follow this team's conventions
  for branches and commits
---

Name a branch after its ticket.
";

pub(crate) fn add(builder: ServerBuilder) -> ServerBuilder {
    let pdf = Skill::new(PDF)
        .file("references/FORMS.md", "# Forms\n\nAsk for every field that is required.\n")
        .file("templates/invoice.md", "# Invoice\n")
        .file("templates/regional/eu-invoice.md", "# Invoice with VAT\n")
        .file("assets/dot.bin", [0_u8, 159, 146, 150]);
    builder.skills(
        Skills::new().skill(pdf).skill(
            Skill::new(GIT)
                .file("references/names.md", "A ticket is two letters and a number.\n")
                .prefix("acme"),
        ),
    )
}
