//! What `ptxas -v` says of a module. Every line must be one that is known: nothing is passed over.
//!
//! ```text
//! ptxas info    : Compiling entry function 'attention_forward' for 'sm_80'
//! ptxas info    : Function properties for attention_forward
//!     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
//! ptxas info    : Used 96 registers, used 1 barriers, 1024 bytes smem, 476 bytes cmem[0]
//! ```

/// What was said of the entries, and of other things.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    pub functions: Vec<Function>,
    /// Such as `(C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized …`.
    pub remarks: Vec<String>,
}

/// An entry, with the functions that it calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Function {
    pub entry: String,
    /// Per thread.
    pub registers: u32,
    pub barriers: u32,
    pub stack_bytes: u32,
    pub spill_store_bytes: u32,
    pub spill_load_bytes: u32,
    /// Declared in the PTX.
    pub shared_bytes: u32,
}

impl Said {
    pub fn read(lines: &[String]) -> Result<Said, String> {
        let mut said = Said::default();
        let mut lines = lines.iter().map(|line| line.trim());
        while let Some(line) = lines.next() {
            let unknown = || format!("ptxas said something unknown: `{line}`");
            let info = line.strip_prefix("ptxas info").and_then(|rest| rest.trim_start().strip_prefix(':'));
            let info = info.ok_or_else(unknown)?.trim();
            if let Some(rest) = info.strip_prefix("Compiling entry function '") {
                let entry = rest.split('\'').next().unwrap_or_default().to_string();
                said.functions.push(Function { entry, ..Function::default() });
            } else if info.starts_with("(C") {
                said.remarks.push(info.into());
            } else if info.starts_with("Function properties for ") {
                let properties = lines.next().ok_or_else(unknown)?;
                let function = said.functions.last_mut().ok_or_else(unknown)?;
                let unknown = || format!("ptxas said something unknown: `{properties}`");
                function.add_properties(properties).ok_or_else(unknown)?;
            } else if info.starts_with("Used ") {
                said.functions.last_mut().and_then(|function| function.add_usage(info)).ok_or_else(unknown)?;
            } else if !info.ends_with("bytes gmem") && !info.contains("bytes gmem, ") {
                return Err(unknown());
            }
        }
        match said.functions.iter().find(|function| function.registers == 0) {
            Some(function) => Err(format!("ptxas did not say how many registers `{}` uses", function.entry)),
            None => Ok(said),
        }
    }
}

impl Function {
    /// `0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads`, of the entry or of a function that it calls.
    fn add_properties(&mut self, line: &str) -> Option<()> {
        let units = ["bytes stack frame", "bytes spill stores", "bytes spill loads"];
        let parts: Vec<&str> = line.split(", ").collect();
        let value = |(part, unit): (&&str, &str)| part.strip_suffix(unit)?.trim().parse().ok();
        let values: Vec<u32> = parts.iter().zip(units).map(value).collect::<Option<_>>()?;
        let &[stack, stores, loads] = &values[..] else { return None };
        self.stack_bytes = self.stack_bytes.max(stack);
        self.spill_store_bytes += stores;
        self.spill_load_bytes += loads;
        (parts.len() == units.len()).then_some(())
    }

    /// `Used 96 registers, used 1 barriers, 1024 bytes smem, 476 bytes cmem[0]`
    fn add_usage(&mut self, info: &str) -> Option<()> {
        let mut parts = info.split(", ");
        self.registers = parts.next()?.strip_prefix("Used ")?.strip_suffix(" registers")?.parse().ok()?;
        for part in parts {
            if let Some(bytes) = part.strip_suffix(" bytes smem") {
                self.shared_bytes = bytes.parse().ok()?;
            } else if let Some(bytes) = part.strip_suffix(" bytes cumulative stack size") {
                self.stack_bytes = self.stack_bytes.max(bytes.parse().ok()?);
            } else if let Some(count) = part.strip_prefix("used ") {
                self.barriers = count.strip_suffix(" barriers")?.parse().ok()?;
            } else if !part.contains(" bytes cmem[") {
                return None;
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'attention_forward' for 'sm_80'
ptxas info    : Function properties for attention_forward
    0 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 96 registers, used 1 barriers, 1024 bytes smem, 476 bytes cmem[0]";

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(String::from).collect()
    }

    #[test]
    fn every_figure_is_read() {
        let expected = Function {
            entry: "attention_forward".into(),
            registers: 96,
            barriers: 1,
            stack_bytes: 0,
            spill_store_bytes: 8,
            spill_load_bytes: 12,
            shared_bytes: 1024,
        };
        assert_eq!(Said::read(&lines(SAID)).unwrap().functions, [expected]);
    }

    #[test]
    fn functions_that_an_entry_calls_are_part_of_it() {
        let called = "\nptxas info    : Function properties for helper\n    40 bytes stack frame, 40 bytes spill stores, \
                      44 bytes spill loads\nptxas info    : (C7510) Potential Performance Loss: serialized";
        let text = SAID.replace("1024 bytes smem", "64 bytes cumulative stack size") + called;
        let said = Said::read(&lines(&text)).unwrap();
        let function = &said.functions[0];
        let spilled = (function.spill_store_bytes, function.spill_load_bytes);
        assert_eq!((function.stack_bytes, spilled, function.registers), (64, (48, 56), 96));
        assert_eq!(said.remarks, ["(C7510) Potential Performance Loss: serialized"]);
    }

    #[test]
    fn a_line_that_is_not_known_is_an_error() {
        for (from, to) in [
            ("spill loads", "spilled"),
            ("bytes smem", "bytes of smem"),
            ("used 1 barriers", "used one barrier"),
            ("Used 96", "Uses 96"),
            ("Used 96", "Used some"),
            ("0 bytes gmem", "all is well"),
            ("    0 bytes stack", "    no bytes stack"),
        ] {
            assert!(Said::read(&lines(&SAID.replace(from, to))).is_err(), "{from} {to}");
        }
        let cut: Vec<String> = lines(SAID)[..4].to_vec();
        assert!(Said::read(&cut).unwrap_err().contains("how many registers"));
    }
}
