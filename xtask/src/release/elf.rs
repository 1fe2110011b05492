//! Reads the program headers of a 64-bit ELF file, to check that a binary is static.

use anyhow::{Context, Result, ensure};

/// Type of the program header that names the dynamic loader.
const PT_INTERP: u32 = 3;

/// Returns whether the kernel starts the file through a dynamic loader.
pub(super) fn needs_loader(elf: &[u8]) -> Result<bool> {
    ensure!(elf.starts_with(b"\x7fELF\x02\x01"), "not a 64-bit little-endian ELF file");
    let table = usize::try_from(u64::from_le_bytes(bytes(elf, 0x20)?))?;
    let size = usize::from(u16::from_le_bytes(bytes(elf, 0x36)?));
    let count = usize::from(u16::from_le_bytes(bytes(elf, 0x38)?));
    for index in 0..count {
        if u32::from_le_bytes(bytes(elf, table + index * size)?) == PT_INTERP {
            return Ok(true);
        }
    }
    Ok(false)
}

fn bytes<const N: usize>(elf: &[u8], at: usize) -> Result<[u8; N]> {
    let bytes = elf.get(at..at + N).context("the ELF file is truncated")?;
    Ok(bytes.try_into().expect("the slice has N bytes"))
}

#[cfg(test)]
mod tests {
    use super::needs_loader;

    /// An ELF file with program headers of these types.
    fn elf(types: &[u32]) -> Vec<u8> {
        let mut elf = vec![0; 0x40];
        elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
        elf[0x20] = 0x40;
        elf[0x36] = 56;
        elf[0x38] = u8::try_from(types.len()).unwrap();
        for kind in types {
            elf.extend(kind.to_le_bytes());
            elf.extend([0; 52]);
        }
        elf
    }

    #[test]
    fn binary_with_interpreter_needs_loader() {
        assert!(needs_loader(&elf(&[1, 3])).unwrap());
        assert!(!needs_loader(&elf(&[1, 2, 6])).unwrap());
    }

    #[test]
    fn file_that_is_not_complete_elf_is_rejected() {
        assert!(needs_loader(b"#!/bin/sh").is_err());
        assert!(needs_loader(&elf(&[1, 1])[..0x60]).is_err());
    }
}
