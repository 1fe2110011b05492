//! Writes a container image with one layer as an OCI archive: `oci-layout`, `index.json` and blobs.
//!
//! Format: <https://github.com/opencontainers/image-spec/blob/main/image-layout.md>

use anyhow::Result;
use serde_json::{Value, json};

use super::archive::{Entry, gzip, sha256, tar};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// An image before it is written.
pub(super) struct Image<'a> {
    /// Name and tag, such as `outlive:1.0.0`.
    pub(super) name: &'a str,
    /// Architecture as in Go: `amd64` or `arm64`.
    pub(super) architecture: &'a str,
    /// The member `config` of the image configuration.
    pub(super) config: Value,
    /// Files of the only layer.
    pub(super) files: &'a [Entry],
}

impl Image<'_> {
    /// Returns the archive.
    pub(super) fn archive(&self) -> Result<Vec<u8>> {
        let layer = tar(self.files)?;
        let diff_id = format!("sha256:{}", sha256(&layer));
        let layer = gzip(&layer)?;
        let config = json!({
            "architecture": self.architecture,
            "os": "linux",
            "config": self.config,
            "rootfs": { "type": "layers", "diff_ids": [diff_id] },
        });
        let config = config.to_string().into_bytes();
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": descriptor(CONFIG, &config),
            "layers": [descriptor(LAYER, &layer)],
        });
        let manifest = manifest.to_string().into_bytes();
        let mut pointer = descriptor(MANIFEST, &manifest);
        pointer["platform"] = json!({ "architecture": self.architecture, "os": "linux" });
        let tag = self.name.rsplit_once(':').map_or(self.name, |(_, tag)| tag);
        pointer["annotations"] = json!({
            "io.containerd.image.name": self.name,
            "org.opencontainers.image.ref.name": tag,
        });
        let index = json!({ "schemaVersion": 2, "manifests": [pointer] });
        let mut entries = vec![
            Entry::file("oci-layout", json!({ "imageLayoutVersion": "1.0.0" }).to_string()),
            Entry::file("index.json", index.to_string()),
            Entry::folder("blobs", 0o755, 0),
            Entry::folder("blobs/sha256", 0o755, 0),
        ];
        for blob in [config, manifest, layer] {
            entries.push(Entry::file(&format!("blobs/sha256/{}", sha256(&blob)), blob));
        }
        tar(&entries)
    }
}

/// Returns the reference to a blob.
fn descriptor(media_type: &str, blob: &[u8]) -> Value {
    json!({
        "mediaType": media_type,
        "digest": format!("sha256:{}", sha256(blob)),
        "size": blob.len(),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Read;

    use serde_json::{Value, json};

    use super::super::archive::{Entry, sha256};
    use super::Image;

    fn files(archive: &[u8]) -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::new();
        for entry in tar::Archive::new(archive).entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            files.insert(entry.path().unwrap().display().to_string(), content);
        }
        files
    }

    #[test]
    fn index_leads_to_manifest_configuration_and_layer() {
        let image = Image {
            name: "a:1",
            architecture: "amd64",
            config: json!({ "User": "7:7" }),
            files: &[Entry::program("a", "run")],
        };
        let files = files(&image.archive().unwrap());
        let blob = |descriptor: &Value| {
            let digest = descriptor["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
            let blob = &files[&format!("blobs/sha256/{digest}")];
            assert_eq!(sha256(blob), digest);
            assert_eq!(descriptor["size"], blob.len());
            blob
        };
        let index: Value = serde_json::from_slice(&files["index.json"]).unwrap();
        let manifest: Value = serde_json::from_slice(blob(&index["manifests"][0])).unwrap();
        let config: Value = serde_json::from_slice(blob(&manifest["config"])).unwrap();
        assert_eq!(config["config"]["User"], "7:7");
        let mut layer = Vec::new();
        let packed = blob(&manifest["layers"][0]).as_slice();
        flate2::read::GzDecoder::new(packed).read_to_end(&mut layer).unwrap();
        assert_eq!(config["rootfs"]["diff_ids"][0], format!("sha256:{}", sha256(&layer)));
        assert_eq!(self::files(&layer)["a"], b"run");
        assert!(files.contains_key("oci-layout"));
    }
}
