//! Skills: their files, their directories, invalid skills, and verification by the client.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
};

use outlive::{
    client::{Client, ClientError, Error, skills::SkillEntry},
    server::{
        Server,
        skills::{Skill, Skills},
    },
};
use serde_json::{Value, json};

use crate::support::pipe::{MODERN, Pipe, REVISIONS};

const GIT: &str = "---\nname: git-workflow\ndescription: How this team uses Git\nmetadata:\n  version: \"2.1\"\n---\n\nRead on.\n";

fn skill_md(name: &str) -> String {
    format!("---\nname: {name}\ndescription: Does {name}\n---\n\nBody.\n")
}

/// A temporary folder, deleted on drop.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("outlive-skills-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path.canonicalize().unwrap())
    }

    fn file(&self, path: &str, contents: impl AsRef<[u8]>) -> &Self {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
        self
    }

    fn refused(&self) -> String {
        Skills::from_folder(&self.0).expect_err("should be refused").to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn server(skills: Skills) -> Server {
    Server::builder("test", "1").skills(skills).build().unwrap()
}

fn uris(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|one| one["uri"].as_str().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn skill_is_listed_with_its_frontmatter_files_and_digests() {
    let skill = Skill::new(GIT)
        .file("references/a name.md", "# Names\n")
        .file("assets/logo.bin", [0xff, 0, 1])
        .prefix("acme");
    let server = server(Skills::new().skill(skill).skill(Skill::new(skill_md("other"))));
    for version in REVISIONS {
        let mut pipe = Pipe::speaking(&server, version).await;
        let listed = pipe.result("skills/list", json!({})).await;
        let uri = "skill://acme/git-workflow/SKILL.md";
        assert_eq!(uris(&listed["skills"]), [uri, "skill://other/SKILL.md"]);
        assert_eq!(listed.get("nextCursor"), None);
        let entry = &listed["skills"][0];
        let fields = json!({
            "name": "git-workflow", "description": "How this team uses Git", "metadata": {"version": "2.1"},
        });
        assert_eq!(entry["frontmatter"], fields);
        // `printf '\xff\x00\x01' | sha256sum`
        let blob = json!({
            "uri": "skill://acme/git-workflow/assets/logo.bin",
            "digest": "sha256:942e1e2a66a427b6551732f758bc314f22b9cdec9365a3425c9184de299392b5",
            "size": 3,
        });
        let files = entry["resources"].as_array().unwrap();
        assert_eq!(files.len(), 3);
        assert_eq!(files[1], blob);
        assert_eq!(files[0]["uri"], uri);
        assert_eq!(files[0]["size"], GIT.len());
        assert_eq!(files[2]["uri"], "skill://acme/git-workflow/references/a%20name.md");
        let got = pipe.result("skills/get", json!({"uri": uri})).await;
        assert_eq!(&got["skill"], entry);
        for result in [&listed, &got] {
            assert_eq!(result["cacheScope"], "private", "{version}");
            assert_eq!(result["ttlMs"], 0);
        }
        // A file that is not in the resource list can be read.
        let read = pipe.result("resources/read", json!({"uri": files[1]["uri"]})).await;
        assert_eq!(read["contents"][0]["blob"], "/wAB");
        let read = pipe.result("resources/read", json!({"uri": files[2]["uri"]})).await;
        assert_eq!(read["contents"][0]["text"], "# Names\n");
        assert_eq!(read["contents"][0]["mimeType"], "text/markdown");
        let resources = pipe.result("resources/list", json!({})).await;
        assert_eq!(uris(&resources["resources"]), [uri, "skill://other/SKILL.md"]);
        let listed = &resources["resources"][0];
        assert_eq!(listed["name"], "git-workflow");
        assert_eq!(listed["mimeType"], "text/markdown");
        if version == MODERN {
            assert_eq!(listed["description"], "How this team uses Git");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn skill_file_digest_is_sha256_of_its_bytes() {
    let server =
        server(Skills::new().skill(Skill::new(skill_md("x")).file("hello.txt", "hello\n")));
    let mut pipe = Pipe::speaking(&server, MODERN).await;
    let got = pipe.result("skills/get", json!({"uri": "skill://x/SKILL.md"})).await;
    // `printf 'hello\n' | sha256sum`
    let digest = "sha256:5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03";
    let file = &got["skill"]["resources"][1];
    assert_eq!((&file["digest"], &file["size"]), (&json!(digest), &json!(6)));
}

#[tokio::test(start_paused = true)]
async fn skills_extension_is_declared_only_with_skills() {
    let with = server(Skills::new().skill(Skill::new(GIT)));
    let mut pipe = Pipe::speaking(&with, MODERN).await;
    let said = pipe.result("server/discover", json!({})).await;
    let declared = &said["capabilities"]["extensions"]["io.modelcontextprotocol/skills"];
    assert_eq!(declared, &json!({"directoryRead": true}));
    assert!(said["capabilities"]["resources"].is_object());
    let empty = server(Skills::new());
    let mut pipe = Pipe::speaking(&empty, MODERN).await;
    assert_eq!(pipe.result("skills/list", json!({})).await["skills"], json!([]));
    let without = Server::builder("test", "1").build().unwrap();
    let mut pipe = Pipe::speaking(&without, MODERN).await;
    let said = pipe.result("server/discover", json!({})).await;
    assert_eq!(said["capabilities"].get("extensions"), None);
    for method in ["skills/list", "skills/get", "resources/directory/read"] {
        assert_eq!(pipe.error(method, json!({"uri": "skill://x"})).await["code"], -32601);
    }
}

#[tokio::test(start_paused = true)]
async fn skill_directory_lists_its_direct_children() {
    let skill = Skill::new(GIT).file("a/one.md", "1").file("a/deep/two.md", "2").file("z.py", "3");
    let server = server(Skills::new().skill(skill.prefix("acme")));
    let mut pipe = Pipe::speaking(&server, MODERN).await;
    let mut children = async |uri: &str| {
        let read = pipe.result("resources/directory/read", json!({"uri": uri})).await;
        let list = read["resources"].as_array().unwrap().clone();
        let shown = |one: &Value| {
            format!("{} {}", one["name"].as_str().unwrap(), one["mimeType"].as_str().unwrap())
        };
        list.iter().map(shown).collect::<Vec<_>>()
    };
    assert_eq!(children("skill://acme").await, ["git-workflow inode/directory"]);
    assert_eq!(
        children("skill://acme/git-workflow").await,
        ["git-workflow text/markdown", "a inode/directory", "z.py text/x-python"]
    );
    assert_eq!(
        children("skill://acme/git-workflow/a").await,
        ["deep inode/directory", "one.md text/markdown"]
    );
    for uri in [
        "skill://acme/git-workflow/SKILL.md",
        "skill://acme/git-workflow/",
        "skill://acme/git-workflow/a/..",
        "skill://nothing",
        "skill://",
        "skill:/",
        "file:///etc",
        "",
    ] {
        assert_eq!(
            pipe.error("resources/directory/read", json!({"uri": uri})).await["code"],
            -32602,
            "{uri}"
        );
    }
    for params in
        [json!({}), json!({"uri": 3}), json!({"uri": "skill://acme", "cursor": "made-up"})]
    {
        assert_eq!(pipe.error("resources/directory/read", params).await["code"], -32602);
    }
}

#[tokio::test(start_paused = true)]
async fn skill_and_directory_lists_are_paginated() {
    let many =
        (0..5).fold(Skills::new(), |all, at| all.skill(Skill::new(skill_md(&format!("s{at}")))));
    let files =
        (0..4).fold(Skill::new(skill_md("many")), |skill, at| skill.file(format!("{at}.md"), "x"));
    let builder = Server::builder("test", "1").skills(many).skills(Skills::new().skill(files));
    let server = builder.limits(|limits| limits.page_size = 2).build().unwrap();
    let mut pipe = Pipe::speaking(&server, MODERN).await;
    for (method, params, member, expected) in [
        ("skills/list", json!({}), "skills", 6),
        ("resources/directory/read", json!({"uri": "skill://many"}), "resources", 5),
    ] {
        let (mut seen, mut params) = (Vec::new(), params);
        loop {
            let page = pipe.result(method, params.clone()).await;
            assert!(page[member].as_array().unwrap().len() <= 2);
            seen.extend(uris(&page[member]).into_iter().map(str::to_owned));
            let Some(cursor) = page.get("nextCursor") else { break };
            params["cursor"] = cursor.clone();
        }
        let count = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!((count, seen.len()), (expected, expected), "{method}");
        params["cursor"] = json!("made-up");
        assert_eq!(pipe.error(method, params).await["code"], -32602);
    }
}

#[tokio::test(start_paused = true)]
async fn uri_outside_skill_files_is_rejected() {
    let folder = Folder::new();
    folder.file("skills/git-workflow/SKILL.md", GIT).file("secret.txt", "hush");
    folder.file("skills/secret.txt", "hush").file("skills/git-workflow/.hidden", "hush");
    let server = server(Skills::from_folder(folder.0.join("skills")).unwrap());
    let mut pipe = Pipe::speaking(&server, MODERN).await;
    let listed = pipe.result("skills/list", json!({})).await;
    assert_eq!(uris(&listed["skills"][0]["resources"]), ["skill://git-workflow/SKILL.md"]);
    for uri in [
        "skill://git-workflow/../secret.txt",
        "skill://git-workflow/../../secret.txt",
        "skill://git-workflow/%2e%2e/secret.txt",
        "skill://git-workflow/..%2fsecret.txt",
        "skill://git-workflow/..\\secret.txt",
        "skill://git-workflow/.hidden",
        "skill://git-workflow//SKILL.md",
        "skill://git-workflow/SKILL.md/",
        "skill://GIT-WORKFLOW/SKILL.md",
        "skill://secret.txt",
        "skill:///etc/passwd",
        "skill://git-workflow",
        &format!("skill://{}", "x".repeat(100_000)),
    ] {
        for method in ["resources/read", "skills/get"] {
            let error = pipe.error(method, json!({"uri": uri})).await;
            assert_eq!(error["code"], -32602, "{method} {uri}");
        }
    }
    // The server does not see later changes of the folder.
    folder
        .file("skills/git-workflow/SKILL.md", "changed")
        .file("skills/git-workflow/new.md", "new");
    let read = pipe.result("resources/read", json!({"uri": "skill://git-workflow/SKILL.md"})).await;
    assert_eq!(read["contents"][0]["text"], GIT);
}

#[test]
fn nested_skill_folders_are_separate_skills() {
    let folder = Folder::new();
    folder.file("acme/billing/refunds/SKILL.md", skill_md("refunds"));
    folder.file("acme/billing/refunds/deep/inner/SKILL.md", skill_md("inner"));
    folder.file("README.md", "no part of a skill").file(".git/SKILL.md", "no skill");
    assert_eq!(Skills::from_folder(&folder.0).unwrap().len(), 2);
    assert!(Skills::from_folder(Folder::new().0.as_path()).is_ok_and(|skills| skills.is_empty()));
}

#[cfg(unix)]
#[test]
fn symlink_out_of_skill_folder_is_rejected_and_inner_one_followed() {
    use std::os::unix::fs::symlink;
    let outside = Folder::new();
    outside.file("secret.txt", "hush").file("other/SKILL.md", skill_md("other"));
    let link = |from: &Path, to: &Path| symlink(from, to).unwrap();
    for (target, at) in [
        (outside.0.join("secret.txt"), "git-workflow/notes.md"),
        (outside.0.join("other"), "other"),
        (outside.0.clone(), "git-workflow/more"),
        (PathBuf::from("../../../../../../../../etc/passwd"), "git-workflow/notes.md"),
    ] {
        let folder = Folder::new();
        folder.file("git-workflow/SKILL.md", GIT);
        link(&target, &folder.0.join(at));
        let error = folder.refused();
        assert!(
            error.contains("link that points outside the folder") && error.contains(at),
            "{error}"
        );
    }
    let folder = Folder::new();
    folder.file("git-workflow/SKILL.md", GIT).file(".data/notes.md", "mounted");
    link(&folder.0.join(".data/notes.md"), &folder.0.join("git-workflow/notes.md"));
    let skills = Skills::from_folder(&folder.0).unwrap();
    assert_eq!(skills.len(), 1);
    // A link to a parent folder is a cycle.
    link(&folder.0.join("git-workflow"), &folder.0.join("git-workflow/again"));
    assert!(folder.refused().contains("nested deeper"), "{}", folder.refused());
    let dangling = Folder::new();
    link(Path::new("nowhere"), &dangling.0.join("x"));
    assert!(dangling.refused().contains("cannot be read"));
}

#[test]
fn invalid_skill_folder_fails_with_path_and_reason() {
    for (path, text, says) in [
        ("x/SKILL.md", skill_md("y"), "its name `y` differs from its folder `x`"),
        ("x/SKILL.md", "no yaml".to_owned(), "must start with a `---` line"),
        ("x/SKILL.md", "---\nname: x\n---\n".to_owned(), "has no `description`"),
        ("x/SKILL.md", "---\nname: 7\ndescription: d\n---\n".to_owned(), "`name` must be text"),
        ("x/SKILL.md", "---\nname: x\nname: x\n---\n".to_owned(), "line 3: duplicate key `name`"),
        ("Not_Good/SKILL.md", skill_md("Not_Good"), "is not a valid skill name"),
        ("a--b/SKILL.md", skill_md("a--b"), "is not a valid skill name"),
        ("SKILL.md", skill_md("root"), "is a skill itself"),
    ] {
        let folder = Folder::new();
        folder.file(path, &text);
        let error = folder.refused();
        assert!(error.contains(says), "{path}: {error}");
        assert!(error.contains(folder.0.to_str().unwrap()), "{error}");
    }
    let missing = Skills::from_folder("/nowhere/at/all").unwrap_err().to_string();
    assert!(missing.contains("/nowhere/at/all: cannot be read"), "{missing}");
    let folder = Folder::new();
    folder.file("file", "x");
    let error = Skills::from_folder(folder.0.join("file")).unwrap_err().to_string();
    assert!(error.contains("is not a folder"), "{error}");
}

#[test]
fn skill_over_limit_is_rejected() {
    let folder = Folder::new();
    folder.file("x/SKILL.md", skill_md("x")).file("x/big.bin", vec![0; (4 << 20) + 1]);
    assert!(folder.refused().contains("more than 4194304 bytes"), "{}", folder.refused());
    let built = |skill: Skill| {
        let server = Server::builder("test", "1").skills(Skills::new().skill(skill));
        server.build().map(drop).map_err(|error| error.to_string())
    };
    let many = (0..512).fold(Skill::new(GIT), |skill, at| skill.file(format!("{at}"), "x"));
    assert!(built(many).unwrap_err().contains("more than 512 files"));
    let large =
        (0..5).fold(Skill::new(GIT), |skill, at| skill.file(format!("{at}"), vec![0; 4 << 20]));
    assert!(built(large).unwrap_err().contains("more than 16777216 bytes together"));
    for path in ["../x", "/x", "a//b", "a/./b", "", "a\\b"] {
        let error = built(Skill::new(GIT).file(path, "x")).unwrap_err();
        assert!(error.contains("is not a path inside a skill"), "{path}: {error}");
    }
    assert!(built(Skill::new(GIT).prefix("a/../b")).is_err());
    let two = Skills::new().skill(Skill::new(GIT)).skill(Skill::new(GIT));
    let error = Server::builder("test", "1").skills(two).build().unwrap_err().to_string();
    assert!(error.contains("two skills at skill://git-workflow/SKILL.md"), "{error}");
}

/// A client of a server with one skill that has two files.
async fn client() -> (Client, SkillEntry) {
    let skill = Skill::new(GIT).file("references/names.md", "Two letters.\n");
    let client = Client::connect(&server(Skills::new().skill(skill))).await.unwrap();
    let skill = client.skills().await.unwrap().remove(0);
    (client, skill)
}

#[tokio::test]
async fn client_loads_skill_and_its_files() {
    let (client, skill) = client().await;
    assert_eq!((skill.name(), skill.description()), ("git-workflow", "How this team uses Git"));
    assert_eq!(client.load_skill(&skill).await.unwrap(), GIT);
    let uri = "skill://git-workflow/references/names.md";
    assert_eq!(client.read_skill_file(&skill, uri).await.unwrap(), b"Two letters.\n");
    let other = client.read_skill_file(&skill, "skill://other/SKILL.md").await.unwrap_err();
    assert!(matches!(other, Error::Client(ClientError::NotOffered(_))), "{other}");
    // An entry survives a round trip through JSON.
    let written = serde_json::to_value(&skill).unwrap();
    let read: SkillEntry = serde_json::from_value(written).unwrap();
    assert_eq!(read.resources, skill.resources);
    let none = Client::connect(&Server::builder("test", "1").build().unwrap()).await.unwrap();
    let refused = none.skills().await.unwrap_err();
    assert!(matches!(refused, Error::Client(ClientError::NotOffered(_))), "{refused}");
}

#[tokio::test]
async fn client_rejects_skill_differing_from_its_entry() {
    let (client, skill) = client().await;
    let change = |change: fn(&mut SkillEntry)| {
        let mut changed = skill.clone();
        change(&mut changed);
        changed
    };
    let fields: fn(&mut SkillEntry) = |skill| {
        skill.frontmatter.insert("description".to_owned(), json!("Steals credentials"));
    };
    let digest: fn(&mut SkillEntry) = |skill| {
        skill.resources.as_mut().unwrap()[0].digest = format!("sha256:{}", "0".repeat(64));
    };
    let size: fn(&mut SkillEntry) = |skill| skill.resources.as_mut().unwrap()[0].size += 1;
    for (changed, says) in [(fields, "frontmatter"), (digest, "digest"), (size, "bytes")] {
        let refused = client.load_skill(&change(changed)).await.unwrap_err();
        assert!(
            matches!(&refused, Error::ProtocolViolation(broke) if broke.what.contains(says)),
            "{refused}"
        );
    }
}
